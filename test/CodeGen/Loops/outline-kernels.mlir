// RUN: tp-opt %s --tp-outline-kernels | FileCheck %s

// Two equal ops are one kernel; the view is taken inside; the small buffer that
// only the kernel uses is its stack, the large one an argument.

#id = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.+]]: memref<16xf32>, %[[Y:.+]]: memref<16xf32>
// CHECK-NEXT: call @kernel_0(%[[X]], %[[Y]])
// CHECK-NEXT: call @kernel_0(%[[Y]], %[[X]])
// CHECK-NEXT: %[[LARGE:.+]] = memref.alloc() : memref<32768xf32>
// CHECK-NEXT: call @kernel_1(%[[X]], %[[LARGE]])
// CHECK-NEXT: return

// CHECK: func.func private @kernel_0(%[[A:.+]]: memref<16xf32> {llvm.align = 64 : i64, llvm.dereferenceable = 64 : i64, llvm.noalias}, %[[B:.+]]: memref<16xf32> {{.*}}) {
// CHECK: %[[V:.+]] = memref.subview %[[A]][8] [8] [1]
// CHECK: %[[W:.+]] = memref.subview %[[B]][0] [8] [1]
// CHECK: linalg.generic {{.*}} ins(%[[V]] : {{.*}}) outs(%[[W]]

// CHECK: func.func private @kernel_1
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<4xf32>
// CHECK: scf.for
// CHECK-NOT: @kernel_2
func.func @main(%x: memref<16xf32>, %y: memref<16xf32>) {
  %0 = memref.subview %x[8] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1], offset: 8>>
  %1 = memref.subview %y[0] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1]>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%0 : memref<8xf32, strided<[1], offset: 8>>) outs(%1 : memref<8xf32, strided<[1]>>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  }
  %2 = memref.subview %y[8] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1], offset: 8>>
  %3 = memref.subview %x[0] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1]>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%2 : memref<8xf32, strided<[1], offset: 8>>) outs(%3 : memref<8xf32, strided<[1]>>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  }
  %small = memref.alloc() : memref<4xf32>
  %large = memref.alloc() : memref<32768xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %a = memref.load %x[%i] : memref<16xf32>
    memref.store %a, %small[%i] : memref<4xf32>
    %b = memref.load %small[%i] : memref<4xf32>
    memref.store %b, %large[%i] : memref<32768xf32>
  }
  return
}
