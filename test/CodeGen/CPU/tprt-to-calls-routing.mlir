// RUN: tp-opt %s --convert-tprt-to-calls --canonicalize | FileCheck %s

// The types of rows and bounds (f32, i32). Whether rows are summed, the numbers of groups, rows, columns and depth; strides of a, of b, of the output.
// CHECK-DAG: llvm.mlir.constant(dense<[0, 5]> : tensor<2xi32>)
// CHECK-DAG: llvm.mlir.constant(dense<[0, 4, 16, 6, 8, 8, 1, 48, 1, 8, 0, 6]> : tensor<12xi64>)
// CHECK-DAG: llvm.mlir.constant(dense<[1, 4, 16, 6, 8, 8, 1, 0, 6, 1, 48, 6]> : tensor<12xi64>)

// Outer, size, inner, count.
// CHECK-DAG: llvm.mlir.constant(dense<[2, 3, 4, 2]> : tensor<4xi64>)

#a = affine_map<(g, m, n, k) -> (m, k)>
#b = affine_map<(g, m, n, k) -> (g, n, k)>
#c = affine_map<(g, m, n, k) -> (m, n)>
#w = affine_map<(g, m, n, k) -> (g, k, n)>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[CTX:.+]]: !llvm.ptr {tprt.role = "context"}
func.func @main(%x: memref<16x8xf32>, %w: memref<4x6x8xf32>, %b: memref<5xi32>, %y: memref<16x6xf32>, %g: memref<4x8x6xf32>,
                %s: memref<2x3x4xi64>, %v: memref<2x2x4xi64>, %i: memref<2x2x4xi64>) {
  // CHECK: call @tprt_grouped_gemm(%[[CTX]],
  tprt.grouped_gemm %x, %w bounds %b into %y maps [#a, #b, #c] : memref<16x8xf32>, memref<4x6x8xf32> bounds memref<5xi32> into memref<16x6xf32>
  // CHECK: call @tprt_grouped_gemm(%[[CTX]],
  tprt.grouped_gemm %x, %y bounds %b into %g maps [#a, #c, #w] : memref<16x8xf32>, memref<16x6xf32> bounds memref<5xi32> into memref<4x8x6xf32>
  // CHECK: call @tprt_sort(%[[CTX]],
  tprt.sort descending %s into %v, %i dim 1 : memref<2x3x4xi64> into memref<2x2x4xi64>, memref<2x2x4xi64>
  return
}
