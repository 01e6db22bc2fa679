// RUN: tp-opt %s --convert-tprt-to-calls --canonicalize | FileCheck %s

// The type, f32. Activation, batch, groups, channels of a group in and out; for three dimensions, size, window, count, stride, padding, dilation.
// CHECK-DAG: llvm.mlir.constant(dense<0> : tensor<2xi32>)
// CHECK-DAG: llvm.mlir.constant(dense<[1, 2, 2, 2, 3, 1, 1, 8, 1, 1, 3, 1, 1, 4, 1, 1, 2, 0, 0, 1, 1, 1, 1]> : tensor<23xi64>)

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[CTX:.+]]: !llvm.ptr {tprt.role = "context"}
// CHECK: %[[NULL:.+]] = llvm.mlir.zero : !llvm.ptr
// CHECK: call @tprt_convolution(%[[CTX]], %{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %[[S:[^,]+]], %[[B:[^,]+]], %[[NULL]], %{{[^,]+}})
func.func @main(%x: memref<2x4x8xf32>, %w: memref<6x2x3xf32>, %s: memref<6xf32>, %b: memref<6xf32>, %o: memref<2x6x4xf32>) {
  tprt.convolution %x, %w scale %s bias %b activation relu into %o groups 2 stride [2] padding [1] dilation [1]
    : memref<2x4x8xf32>, memref<6x2x3xf32> scale memref<6xf32> bias memref<6xf32> into memref<2x6x4xf32>
  return
}
