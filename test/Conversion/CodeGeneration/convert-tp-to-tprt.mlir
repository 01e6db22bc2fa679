// RUN: tp-opt %s --convert-tp-to-tprt --canonicalize | FileCheck %s

// CHECK: tprt.manifest = {collectives = [
// CHECK-SAME: {axes = ["tp"], bytes_by_rank = array<i64: 32, 32, 32, 32>, concat_dim = 0 : i64, dim = 1 : i64, dtype = "f32", fqn = "a", groups = [array<i64: 0, 1>, array<i64: 2, 3>], kind = "all_gather", operand_shape = array<i64: 2, 4>, reason = "plan.yaml:1:1: x", reduction = "sum", result_shape = array<i64: 2, 8>
// CHECK-SAME: {axes = ["dp"], {{.*}}groups = [array<i64: 0, 2>, array<i64: 1, 3>], kind = "all_reduce", {{.*}}reduction = "max"
// CHECK-SAME: kind = "permute", {{.*}}source = array<i64: 1, 0>
// CHECK-NOT: tp.mesh
tp.mesh @mesh(dp = 2, tp = 2)

// CHECK-LABEL: @main
// CHECK-SAME: %[[RANK:.+]]: index
// CHECK-SAME: %[[X:.+]]: memref<2x4xf32>
func.func @main(%rank: index {tprt.role = "rank"}, %x: memref<2x4xf32> {tprt.role = "input"})
    -> (tensor<2x8xf32>, tensor<2x4xf32>, tensor<2x2xf32>, tensor<i64>) {
  %0 = bufferization.to_tensor %x restrict : memref<2x4xf32> to tensor<2x4xf32>
  // CHECK: %[[IN:.+]] = bufferization.to_tensor %[[X]]
  // The operand is the caller's: a new buffer.
  // CHECK: %[[INIT:.+]] = tensor.empty() : tensor<2x8xf32>
  // CHECK: tprt.collective 0 %[[IN]] : tensor<2x4xf32> into %[[INIT]] : tensor<2x8xf32> -> tensor<2x8xf32>
  %1 = tp.all_gather %0 dim 1 over @mesh {tp} {fqn = "a", reason = "plan.yaml:1:1: x"} : tensor<2x4xf32> -> tensor<2x8xf32>
  // CHECK: %[[COPY:.+]] = tensor.empty() : tensor<2x4xf32>
  // CHECK: %[[MAX:.+]] = tprt.collective 1 %[[IN]] : tensor<2x4xf32> into %[[COPY]]
  %2 = tp.all_reduce max %0 over @mesh {dp} : tensor<2x4xf32>
  // Nothing else uses the operand: in place.
  // CHECK: tprt.collective 2 into %[[MAX]] : tensor<2x4xf32>
  %3 = tp.permute %2 from [1, 0] over @mesh {tp} : tensor<2x4xf32>
  // rank % 2 is the index along tp.
  // CHECK-DAG: %[[TP:.+]] = arith.remui %[[RANK]], %c2
  // CHECK-DAG: %[[OFFSET:.+]] = arith.muli %[[TP]], %c2
  // CHECK: tensor.extract_slice %[[IN]][0, %[[OFFSET]]] [2, 2] [1, 1]
  %4 = tp.local_slice %0 dim 1 over @mesh {tp} : tensor<2x4xf32> -> tensor<2x2xf32>
  // CHECK: arith.divui %[[RANK]], %c2
  // CHECK: tensor.from_elements
  %5 = tp.shard_index over @mesh {dp} : tensor<i64>
  return %1, %3, %4, %5 : tensor<2x8xf32>, tensor<2x4xf32>, tensor<2x2xf32>, tensor<i64>
}
