// RUN: tp-opt %s --tp-lower-to-llvm --mlir-print-ir-after=tp-plan-arena -o /dev/null 2>&1 | FileCheck %s
// RUN: tp-opt %s --tp-predict-memory -o - | FileCheck %s --check-prefix=PREDICTED
// A started collective through the whole pipeline: what is computed stays between start and wait, and until then operand and
// result keep their places in the arena, which others get behind it.

// PREDICTED: tp.arena_bytes = [[BYTES:.*]] : i64
// CHECK: tprt.manifest = {arena_bytes = 192 : i64
// CHECK-SAME: started = true
tp.mesh @mesh(tp = 2)

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<2x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>, tp.global_type = tensor<4x4xf32>},
                %y: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x8xf32> {
  // CHECK: %[[OPERAND:.*]] = memref.view %[[ARENA:.*]][%c0][] : memref<192xi8> to memref<2x4xf32>
  // CHECK: call @kernel_0(%{{.*}}, %[[OPERAND]])
  // CHECK: %[[RESULT:.*]] = memref.view %[[ARENA]][%c64][] : memref<192xi8> to memref<4x4xf32>
  // CHECK: tprt.collective_start 0 %[[OPERAND]] : memref<2x4xf32> into %[[RESULT]] : memref<4x4xf32>
  %0 = nn.relu %x : tensor<2x4xf32>
  %p = tp.start {
    %g = tp.all_gather %0 dim 0 over @mesh {tp} : tensor<2x4xf32> -> tensor<4x4xf32>
    tp.yield %g : tensor<4x4xf32>
  } : !tp.pending<tensor<4x4xf32>>
  // CHECK: memref.view %[[ARENA]][%c128][] : memref<192xi8> to memref<4x4xf32>
  // CHECK: tprt.gemm
  // The concatenation is the output. The collective's result isn't computed in its place there.
  // CHECK: %[[PIECE:.*]] = memref.subview %arg4[0, 0] [4, 4] [1, 1]
  // CHECK: tprt.gemm %{{.*}} into %[[PIECE]]
  %1 = nn.linear %y, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = nn.linear %1, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: tprt.collective_wait 0 of %[[OPERAND]] : memref<2x4xf32> into %[[RESULT]] : memref<4x4xf32>
  // CHECK-NOT: tprt.gemm
  %3 = tp.wait %p : !tp.pending<tensor<4x4xf32>>
  %4 = nn.concat %2, %3 dim 1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  return %4 : tensor<4x8xf32>
}
