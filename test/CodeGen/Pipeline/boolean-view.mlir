// RUN: tp-opt %s --convert-tprt-to-calls --canonicalize | FileCheck %s

// A boolean takes a byte: a view that starts at the sixth is 6 bytes along.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %{{.*}}: !llvm.ptr {tprt.role = "context"}, %[[X:[^:]+]]: memref<1x8x3xi1>
func.func @main(%x: memref<1x8x3xi1>, %out: memref<2x4x3xi1>) {
  // CHECK: %[[START:.*]] = memref.extract_aligned_pointer_as_index %{{.*}} : memref<1x4x3xi1
  // CHECK: %[[ADDRESS:.*]] = arith.addi %[[START]], %c6
  // CHECK: %[[INTEGER:.*]] = arith.index_cast %[[ADDRESS]]
  // CHECK: %[[POINTER:.*]] = llvm.inttoptr %[[INTEGER]]
  // CHECK: call @tprt_collective(%{{.*}}, %{{.*}}, %[[POINTER]],
  %view = memref.subview %x[0, 2, 0] [1, 4, 3] [1, 1, 1] : memref<1x8x3xi1> to memref<1x4x3xi1, strided<[24, 3, 1], offset: 6>>
  tprt.collective 0 %view : memref<1x4x3xi1, strided<[24, 3, 1], offset: 6>> into %out : memref<2x4x3xi1>
  return
}
