// RUN: tp-opt %s --convert-tp-to-tprt --canonicalize --split-input-file | FileCheck %s

// CHECK: tprt.manifest = {collectives = [
// CHECK-SAME: {axes = ["tp"], bytes_by_rank = array<i64: 32, 32, 32, 32>, concat_dim = 0 : i64, dim = 1 : i64, dtype = "f32", fqn = "a", groups = [array<i64: 0, 1>, array<i64: 2, 3>], kind = "all_gather", operand_shapes = [array<i64: 2, 4>, array<i64: 2, 4>, array<i64: 2, 4>, array<i64: 2, 4>], reason = "plan.yaml:1:1: x", reduction = "sum", result_shapes = [array<i64: 2, 8>, array<i64: 2, 8>, array<i64: 2, 8>, array<i64: 2, 8>]
// CHECK-SAME: {axes = ["dp"], {{.*}}groups = [array<i64: 0, 2>, array<i64: 1, 3>], kind = "all_reduce", {{.*}}reduction = "max"
// CHECK-SAME: kind = "permute", {{.*}}source = array<i64: 1, 0>
// CHECK-NOT: tp.mesh
tp.mesh @mesh(dp = 2, tp = 2)

// CHECK-LABEL: @main
// CHECK-SAME: %[[RANK:.+]]: index
// CHECK-SAME: %[[X:.+]]: memref<2x4xf32>
func.func @main(%rank: index {tprt.role = "rank"}, %x: memref<2x4xf32> {tprt.role = "input"})
    -> (tensor<2x8xf32>, tensor<2x4xf32>, tensor<2x2xf32>, tensor<i64>) {
  // CHECK-DAG: %[[OFFSETS:.+]] = arith.constant dense<[0, 2, 0, 2]> : tensor<4xi64>
  // CHECK-DAG: %[[INDICES:.+]] = arith.constant dense<[0, 0, 1, 1]> : tensor<4xi64>
  %0 = bufferization.to_tensor %x restrict : memref<2x4xf32> to tensor<2x4xf32>
  // CHECK: %[[IN:.+]] = bufferization.to_tensor %[[X]]
  // The operand is the caller's: a new buffer.
  // CHECK: %[[INIT:.+]] = tensor.empty() : tensor<2x8xf32>
  // CHECK: tprt.collective 0 %[[IN]] : tensor<2x4xf32> into %[[INIT]] : tensor<2x8xf32> -> tensor<2x8xf32>
  %1 = tp.all_gather %0 dim 1 over @mesh {tp} {fqn = "a", reason = "plan.yaml:1:1: x"} : tensor<2x4xf32> -> tensor<2x8xf32>
  // CHECK: %[[COPY:.+]] = tensor.empty() : tensor<2x4xf32>
  // CHECK: %[[MAX:.+]] = tprt.collective 1 %[[IN]] : tensor<2x4xf32> into %[[COPY]]
  %2 = tp.all_reduce max %0 over @mesh {dp} : tensor<2x4xf32>
  // The others read the operand while the result is written.
  // CHECK: %[[OTHER:.+]] = tensor.empty() : tensor<2x4xf32>
  // CHECK: %[[SWAPPED:.+]] = tprt.collective 2 %[[MAX]] : tensor<2x4xf32> into %[[OTHER]]
  %6 = tp.permute %2 from [1, 0] over @mesh {tp} : tensor<2x4xf32> -> tensor<2x4xf32>
  // Nothing else uses the operand of an all-reduce: in place.
  // CHECK: tprt.collective 3 into %[[SWAPPED]] : tensor<2x4xf32>
  %3 = tp.all_reduce min %6 over @mesh {dp} : tensor<2x4xf32>
  // An offset that differs from rank to rank is looked up.
  // CHECK: %[[OFFSET64:.+]] = tensor.extract %[[OFFSETS]][%[[RANK]]]
  // CHECK: %[[OFFSET:.+]] = arith.index_cast %[[OFFSET64]]
  // CHECK: tensor.extract_slice %[[IN]][0, %[[OFFSET]]] [2, 2] [1, 1]
  %4 = tp.local_slice %0 dim 1 over @mesh {tp} : tensor<2x4xf32> -> tensor<2x2xf32>
  // CHECK: %[[INDEX:.+]] = tensor.extract %[[INDICES]][%[[RANK]]]
  // CHECK: tensor.from_elements %[[INDEX]]
  %5 = tp.shard_offset of 2 over @mesh {dp} : tensor<i64>
  return %1, %3, %4, %5 : tensor<2x8xf32>, tensor<2x4xf32>, tensor<2x2xf32>, tensor<i64>
}

// -----

// Four elements over three ranks in chunks of two: the last rank has none. Each
// shape has a program, one entry describes the collective of all.

// CHECK: tprt.manifest = {collectives = [
// CHECK-SAME: bytes_by_rank = array<i64: 8, 8, 16>, {{.*}}kind = "all_gather"
// CHECK-SAME: operand_shapes = [array<i64: 2>, array<i64: 2>, array<i64: 0>]
// CHECK-SAME: result_shapes = [array<i64: 4>, array<i64: 4>, array<i64: 4>]
// CHECK-SAME: kind = "exchange", operand_shapes = [array<i64: 2>, array<i64: 2>, array<i64: 0>]
// CHECK-SAME: result_shapes = [array<i64: 4>, array<i64: 4>, array<i64: 4>]
// CHECK-SAME: transfers = [
// CHECK-SAME: {dst = array<i64: 0>, from = 0 : i64, size = array<i64: 2>, src = array<i64: 0>}, {dst = array<i64: 2>, from = 1 : i64, size = array<i64: 2>, src = array<i64: 0>}]
tp.mesh @mesh(tp = 3)

// CHECK-LABEL: @full
// CHECK-SAME: %[[RANK:.+]]: index
func.func @full(%rank: index {tprt.role = "rank"}, %x: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<i64>)
    attributes {tp.ranks = array<i64: 0, 1>} {
  // CHECK: %[[TABLE:.+]] = arith.constant dense<[0, 2, 4]> : tensor<3xi64>
  // CHECK: tprt.collective 0
  %0 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<2xf32> -> tensor<4xf32>
  // CHECK: tprt.collective 1
  %1 = tp.exchange %x of [4] from <@mesh, [{tp}]> to <@mesh, [{}]> over @mesh {tp} : tensor<2xf32> -> tensor<4xf32>
  // CHECK: tensor.extract %[[TABLE]][%[[RANK]]]
  %2 = tp.shard_offset of 4 over @mesh {tp} : tensor<i64>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<i64>
}

// CHECK-LABEL: @empty
func.func @empty(%rank: index {tprt.role = "rank"}, %x: tensor<0xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<i64>)
    attributes {tp.ranks = array<i64: 2>} {
  // One rank needs no table.
  // CHECK: arith.constant dense<4> : tensor<i64>
  // CHECK: tprt.collective 0 %{{.*}} : tensor<0xf32> into
  %0 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<0xf32> -> tensor<4xf32>
  // CHECK: tprt.collective 1 %{{.*}} : tensor<0xf32> into
  %1 = tp.exchange %x of [4] from <@mesh, [{tp}]> to <@mesh, [{}]> over @mesh {tp} : tensor<0xf32> -> tensor<4xf32>
  %2 = tp.shard_offset of 4 over @mesh {tp} : tensor<i64>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<i64>
}

// -----

// A collective that one rank starts may be run by others.

// CHECK: tprt.manifest = {collectives = [
// CHECK-SAME: kind = "all_gather", {{[^}]*}}started = true}
// CHECK-SAME: reduction = "sum", {{[^}]*}}started = true}
// CHECK-SAME: reduction = "max", {{[^}]*}}split_dim = 0 : i64}]
tp.mesh @mesh(tp = 2)

// CHECK-LABEL: @starts
func.func @starts(%rank: index {tprt.role = "rank"}, %x: tensor<2xf32>) -> (tensor<3xf32>, tensor<2xf32>, tensor<2xf32>)
    attributes {tp.ranks = array<i64: 0>} {
  // CHECK-SAME: %[[RANK:.+]]: index {{.*}}, %[[X:.+]]: tensor<2xf32>
  // CHECK-DAG: %[[INIT:.+]] = tensor.empty() : tensor<3xf32>
  // CHECK: %[[G:.+]] = tprt.collective_start 0 %[[X]] : tensor<2xf32> into %[[INIT]] : tensor<3xf32> -> tensor<3xf32>
  %p = tp.start {
    %0 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<2xf32> -> tensor<3xf32>
    tp.yield %0 : tensor<3xf32>
  } : !tp.pending<tensor<3xf32>>
  // CHECK: %[[E:.+]] = math.exp %[[X]]
  %e = math.exp %x : tensor<2xf32>
  // In place.
  // CHECK: %[[R:.+]] = tprt.collective_start 1 into %[[E]] : tensor<2xf32> -> tensor<2xf32>
  %q = tp.start {
    %1 = tp.all_reduce sum %e over @mesh {tp} : tensor<2xf32>
    tp.yield %1 : tensor<2xf32>
  } : !tp.pending<tensor<2xf32>>
  // CHECK: tprt.collective 2
  %2 = tp.all_reduce max %x over @mesh {tp} : tensor<2xf32>
  // CHECK: tprt.collective_wait 1 into %[[R]] : tensor<2xf32> -> tensor<2xf32>
  %3 = tp.wait %q : !tp.pending<tensor<2xf32>>
  // CHECK: tprt.collective_wait 0 of %[[X]] : tensor<2xf32> into %[[G]] : tensor<3xf32> -> tensor<3xf32>
  %4 = tp.wait %p : !tp.pending<tensor<3xf32>>
  return %4, %3, %2 : tensor<3xf32>, tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: @runs
func.func @runs(%rank: index {tprt.role = "rank"}, %x: tensor<1xf32>, %y: tensor<2xf32>) -> (tensor<3xf32>, tensor<2xf32>, tensor<2xf32>)
    attributes {tp.ranks = array<i64: 1>} {
  // CHECK: tprt.collective 0
  %0 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<1xf32> -> tensor<3xf32>
  // CHECK: tprt.collective 1
  %1 = tp.all_reduce sum %y over @mesh {tp} : tensor<2xf32>
  // CHECK: tprt.collective 2
  %2 = tp.all_reduce max %1 over @mesh {tp} : tensor<2xf32>
  return %0, %1, %2 : tensor<3xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// One piece of each segment.

tp.mesh @mesh(tp = 2)

// CHECK-LABEL: @main
// CHECK-SAME: %[[RANK:.+]]: index
// CHECK-SAME: %[[X:.+]]: tensor<3x8xf32>
func.func @main(%rank: index {tprt.role = "rank"}, %x: tensor<3x8xf32>) -> tensor<3x4xf32> {
  // CHECK-DAG: %[[FIRST:.+]] = arith.constant dense<[0, 3]> : tensor<2xi64>
  // CHECK-DAG: %[[SECOND:.+]] = arith.constant dense<[6, 7]> : tensor<2xi64>
  // CHECK: tensor.extract %[[FIRST]][%[[RANK]]]
  // CHECK: %[[A:.+]] = tensor.extract_slice %[[X]][0, %{{.+}}] [3, 3] [1, 1]
  // CHECK: tensor.extract %[[SECOND]][%[[RANK]]]
  // CHECK: %[[B:.+]] = tensor.extract_slice %[[X]][0, %{{.+}}] [3, 1] [1, 1]
  // CHECK: tensor.concat dim(1) %[[A]], %[[B]]
  %0 = tp.local_slice %x dim 1 over @mesh {tp | 6, 2} : tensor<3x8xf32> -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
