// RUN: tp-opt %s --convert-tprt-to-calls | FileCheck %s

// Where a call's buffers are: %x in the table of inputs, at 1 and no bytes behind its address; the
// constant at 0 in the program's own table, since there is no arena. The program only keeps the
// argument that it uses itself.

// CHECK: llvm.mlir.global internal constant @[[NUMBERS:.+]](dense<[0, 1, 0, 3, 0, 0]> : tensor<6xi64>)
// CHECK: func.func @main(
// CHECK-SAME: %[[TABLES:[^:]+]]: !llvm.ptr {tprt.role = "tables"}, %{{[^:]+}}: index {tprt.role = "rank"}, %[[Z:[^:]+]]: memref<8xf32> {tprt.place = 2 : i64, tprt.role = "input"}) -> i32
// CHECK: %[[OWN:.+]] = llvm.alloca
// CHECK: %[[OWNSLOT:.+]] = llvm.getelementptr %[[TABLES]][3]
// CHECK: llvm.store %[[OWN]], %[[OWNSLOT]]
// CHECK: memref.extract_aligned_pointer_as_index %[[Z]]
// CHECK: %[[TABLE:.+]] = memref.get_global @table
// CHECK: memref.extract_aligned_pointer_as_index %[[TABLE]]
// CHECK: %[[POINTER:.+]] = llvm.inttoptr
// CHECK: %[[SLOT:.+]] = llvm.getelementptr %[[OWN]][0]
// CHECK: llvm.store %[[POINTER]], %[[SLOT]]
// CHECK: %[[ADDRESS:.+]] = llvm.mlir.addressof @[[NUMBERS]]
// CHECK: llvm.call @layer_call(%{{.+}}, %{{.+}}, %[[TABLES]], %[[ADDRESS]])
memref.global "private" constant @table : memref<8xf32> = dense<1.0>
func.func private @layer(%rank: index {tprt.role = "rank"}, %x: memref<2x4xf32>, %y: memref<8xf32>) attributes {tprt.repeated} {
  return
}
func.func @main(%rank: index {tprt.role = "rank"}, %w: memref<8xf32> {tprt.role = "input"},
                %x: memref<8xf32> {tprt.role = "input"}, %z: memref<8xf32> {tprt.role = "input"}) {
  tprt.collective 0 into %z : memref<8xf32>
  %0 = memref.expand_shape %x [[0, 1]] output_shape [2, 4] : memref<8xf32> into memref<2x4xf32>
  %1 = memref.get_global @table : memref<8xf32>
  tprt.call @layer rank %rank ins(%0, %1 : memref<2x4xf32>, memref<8xf32>) origins [] collectives []
  return
}
