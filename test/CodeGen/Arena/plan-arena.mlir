// RUN: tp-opt %s --tp-plan-arena | FileCheck %s
// RUN: tp-opt %s --tp-plan-arena --remarks-filter=tp-plan-arena --remark-format=emitRemark 2>&1 >%t | FileCheck %s --check-prefix=REMARK

// a lives from the first to the second op, b from the second to the third, c from
// the third to the fourth. c takes a's place; 100 bytes count as 128.

// CHECK: tprt.manifest = {arena_bytes = 320 : i64}
// REMARK: remark: {{.*}}ArenaBytes=320, Buffers=3, LiveBytes=320
// CHECK-LABEL: @main
// CHECK-SAME: %[[ARENA:[^:]+]]: memref<320xi8> {tprt.role = "arena"}
// CHECK: %[[OA:.+]] = arith.constant 0 : index
// CHECK: memref.view %[[ARENA]][%[[OA]]][] : memref<320xi8> to memref<48xf32>
// CHECK: %[[OB:.+]] = arith.constant 192 : index
// CHECK: memref.view %[[ARENA]][%[[OB]]][] : memref<320xi8> to memref<25xf32>
// CHECK: %[[OC:.+]] = arith.constant 0 : index
// CHECK: memref.view %[[ARENA]][%[[OC]]][] : memref<320xi8> to memref<4x4xf32>
func.func private @kernel(memref<?xf32>, memref<?xf32>)
func.func @main(%x: memref<48xf32>) {
  %a = memref.alloc() : memref<48xf32>
  %b = memref.alloc() : memref<25xf32>
  %c = memref.alloc() : memref<4x4xf32>
  %a1 = memref.cast %a : memref<48xf32> to memref<?xf32>
  %b1 = memref.cast %b : memref<25xf32> to memref<?xf32>
  %c0 = memref.collapse_shape %c [[0, 1]] : memref<4x4xf32> into memref<16xf32>
  %c1 = memref.cast %c0 : memref<16xf32> to memref<?xf32>
  %x1 = memref.cast %x : memref<48xf32> to memref<?xf32>
  call @kernel(%x1, %a1) : (memref<?xf32>, memref<?xf32>) -> ()
  call @kernel(%a1, %b1) : (memref<?xf32>, memref<?xf32>) -> ()
  call @kernel(%b1, %c1) : (memref<?xf32>, memref<?xf32>) -> ()
  call @kernel(%c1, %x1) : (memref<?xf32>, memref<?xf32>) -> ()
  return
}
