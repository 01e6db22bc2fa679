// RUN: tp-opt %s --split-input-file --verify-diagnostics
// RUN: tp-opt %s --one-shot-bufferize --split-input-file --verify-diagnostics 2>/dev/null | FileCheck %s

#a = affine_map<(g, m, n, k) -> (m, k)>
#b = affine_map<(g, m, n, k) -> (g, n, k)>
#c = affine_map<(g, m, n, k) -> (m, n)>
// CHECK-LABEL: @buffers
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<16x8xf32>, %[[W:[a-z0-9]+]]: memref<4x6x8xf32>, %[[B:[a-z0-9]+]]: memref<5xi32>
// CHECK-NOT: memref.copy
// CHECK: tprt.grouped_gemm %[[X]], %[[W]] bounds %[[B]] into %{{.+}} maps [{{.*}}] : memref<16x8xf32>, memref<4x6x8xf32> bounds memref<5xi32> into memref<16x6xf32>
// CHECK: tprt.sort descending %[[X]] into %{{.+}}, %{{.+}} dim 1 : memref<16x8xf32> into memref<16x3xf32>, memref<16x3xi64>
func.func @buffers(%xm: memref<16x8xf32>, %wm: memref<4x6x8xf32>, %bm: memref<5xi32>, %out: memref<16x6xf32>, %indices: memref<16x3xi64>) {
  %x = bufferization.to_tensor %xm restrict : memref<16x8xf32> to tensor<16x8xf32>
  %w = bufferization.to_tensor %wm restrict : memref<4x6x8xf32> to tensor<4x6x8xf32>
  %b = bufferization.to_tensor %bm restrict : memref<5xi32> to tensor<5xi32>
  %init = tensor.empty() : tensor<16x6xf32>
  %r = tprt.grouped_gemm %x, %w bounds %b into %init maps [#a, #b, #c]
    : tensor<16x8xf32>, tensor<4x6x8xf32> bounds tensor<5xi32> into tensor<16x6xf32> -> tensor<16x6xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<16x6xf32>, memref<16x6xf32>) -> ()
  %v = tensor.empty() : tensor<16x3xf32>
  %i = tensor.empty() : tensor<16x3xi64>
  %s:2 = tprt.sort descending %x into %v, %i dim 1 : tensor<16x8xf32> into tensor<16x3xf32>, tensor<16x3xi64> -> tensor<16x3xf32>, tensor<16x3xi64>
  bufferization.materialize_in_destination %s#1 in restrict writable %indices : (tensor<16x3xi64>, memref<16x3xi64>) -> ()
  return
}

// -----

// The runtime takes dense buffers.

// CHECK-LABEL: @gaps
// CHECK: memref.copy %{{.+}}, %[[DENSE:.+]] : memref<16x4xf32, strided<[8, 1], offset: 2>>
// CHECK: tprt.sort %[[DENSE]] into
func.func @gaps(%xm: memref<16x8xf32>, %indices: memref<16x4xi64>) {
  %x = bufferization.to_tensor %xm restrict : memref<16x8xf32> to tensor<16x8xf32>
  %p = tensor.extract_slice %x[0, 2] [16, 4] [1, 1] : tensor<16x8xf32> to tensor<16x4xf32>
  %v = tensor.empty() : tensor<16x4xf32>
  %i = tensor.empty() : tensor<16x4xi64>
  %s:2 = tprt.sort %p into %v, %i dim 0 : tensor<16x4xf32> into tensor<16x4xf32>, tensor<16x4xi64> -> tensor<16x4xf32>, tensor<16x4xi64>
  bufferization.materialize_in_destination %s#1 in restrict writable %indices : (tensor<16x4xi64>, memref<16x4xi64>) -> ()
  return
}

// -----

#a = affine_map<(g, m, n, k) -> (m, k)>
#b = affine_map<(g, m, n, k) -> (g, n, k)>
#c = affine_map<(g, m, n, k) -> (n, m)>
func.func @order(%x: memref<16x8xf32>, %w: memref<4x6x8xf32>, %b: memref<5xi32>, %o: memref<6x16xf32>) {
  // expected-error @+1 {{needs maps of rows and depth for a}}
  tprt.grouped_gemm %x, %w bounds %b into %o maps [#a, #b, #c] : memref<16x8xf32>, memref<4x6x8xf32> bounds memref<5xi32> into memref<6x16xf32>
  return
}

// -----

#a = affine_map<(g, m, n, k) -> (m, k)>
#b = affine_map<(g, m, n, k) -> (n, k, g)>
#c = affine_map<(g, m, n, k) -> (m, n)>
func.func @last(%x: memref<16x8xf32>, %w: memref<6x8x4xf32>, %b: memref<5xi32>, %o: memref<16x6xf32>) {
  // expected-error @+1 {{needs groups before the last dimension of b}}
  tprt.grouped_gemm %x, %w bounds %b into %o maps [#a, #b, #c] : memref<16x8xf32>, memref<6x8x4xf32> bounds memref<5xi32> into memref<16x6xf32>
  return
}

// -----

#a = affine_map<(g, m, n, k) -> (m, k)>
#b = affine_map<(g, m, n, k) -> (g, n, k)>
#c = affine_map<(g, m, n, k) -> (m, n)>
func.func @bounds(%x: memref<16x8xf32>, %w: memref<4x6x8xf32>, %b: memref<4xi32>, %o: memref<16x6xf32>) {
  // expected-error @+1 {{needs 5 bounds, found 'memref<4xi32>'}}
  tprt.grouped_gemm %x, %w bounds %b into %o maps [#a, #b, #c] : memref<16x8xf32>, memref<4x6x8xf32> bounds memref<4xi32> into memref<16x6xf32>
  return
}

// -----

#a = affine_map<(g, m, n, k) -> (m, k)>
#b = affine_map<(g, m, n, k) -> (g, n, k)>
#c = affine_map<(g, m, n, k) -> (m, n)>
func.func @size(%x: memref<16x8xf32>, %w: memref<4x6x7xf32>, %b: memref<5xi32>, %o: memref<16x6xf32>) {
  // expected-error @+1 {{has sizes 8 and 7 along loop 3}}
  tprt.grouped_gemm %x, %w bounds %b into %o maps [#a, #b, #c] : memref<16x8xf32>, memref<4x6x7xf32> bounds memref<5xi32> into memref<16x6xf32>
  return
}

// -----

func.func @sort(%x: memref<4x8xf32>, %v: memref<4x9xf32>, %i: memref<4x9xi64>) {
  // expected-error @+1 {{can't sort 'memref<4x8xf32>' into 'memref<4x9xf32>' and 'memref<4x9xi64>'}}
  tprt.sort %x into %v, %i dim 1 : memref<4x8xf32> into memref<4x9xf32>, memref<4x9xi64>
  return
}

// -----

func.func @sort_dim(%x: memref<4x8xf32>, %v: memref<4x8xf32>, %i: memref<4x8xi64>) {
  // expected-error @+1 {{dimension 2 is out of range for 'memref<4x8xf32>'}}
  tprt.sort %x into %v, %i dim 2 : memref<4x8xf32> into memref<4x8xf32>, memref<4x8xi64>
  return
}
