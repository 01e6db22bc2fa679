// RUN: tp-opt %s --tp-outline-kernels=whole-only | FileCheck %s

// The buffer of one row is the kernel's; the one that rows have parts of is not: each of them would have a copy of all of it.

#id = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func @main
// CHECK: %[[WHOLE:.+]] = memref.alloc() : memref<8x16xf32>
// CHECK: call @kernel_0(%{{.+}}, %[[WHOLE]])
// CHECK: func.func private @kernel_0
// CHECK: memref.alloca() {{.*}} : memref<16xf32>
// CHECK-NOT: memref.alloca
func.func @main(%x: memref<8x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %row = memref.alloc() : memref<16xf32>
  %whole = memref.alloc() : memref<8x16xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    %a = memref.subview %x[%i, 0] [1, 16] [1, 1] : memref<8x16xf32> to memref<16xf32, strided<[1], offset: ?>>
    %b = memref.subview %whole[%i, 0] [1, 16] [1, 1] : memref<8x16xf32> to memref<16xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%a : memref<16xf32, strided<[1], offset: ?>>)
        outs(%row, %b : memref<16xf32>, memref<16xf32, strided<[1], offset: ?>>) {
    ^bb0(%v: f32, %o: f32, %p: f32):
      linalg.yield %v, %v : f32, f32
    }
  }
  return
}
