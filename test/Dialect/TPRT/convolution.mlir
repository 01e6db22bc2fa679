// RUN: tp-opt %s --split-input-file --verify-diagnostics
// RUN: tp-opt %s --one-shot-bufferize --split-input-file --verify-diagnostics 2>/dev/null | FileCheck %s

// CHECK-LABEL: @buffers
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<2x4x8xf32>, %[[W:[a-z0-9]+]]: memref<6x2x3xf32>, %[[S:[a-z0-9]+]]: memref<6xf32>, %[[B:[a-z0-9]+]]: memref<6xf32>, %[[Y:[a-z0-9]+]]: memref<2x6x8xf32>
// CHECK-NOT: memref.copy
// CHECK: tprt.convolution %[[X]], %[[W]] scale %[[S]] bias %[[B]] addend %[[Y]] activation silu into %{{.+}} groups 2 stride [1] padding [1] dilation [1] : memref<2x4x8xf32>, memref<6x2x3xf32> scale memref<6xf32> bias memref<6xf32> addend memref<2x6x8xf32> into memref<2x6x8xf32>
func.func @buffers(%xm: memref<2x4x8xf32>, %wm: memref<6x2x3xf32>, %sm: memref<6xf32>, %bm: memref<6xf32>, %ym: memref<2x6x8xf32>, %out: memref<2x6x8xf32>) {
  %x = bufferization.to_tensor %xm restrict : memref<2x4x8xf32> to tensor<2x4x8xf32>
  %w = bufferization.to_tensor %wm restrict : memref<6x2x3xf32> to tensor<6x2x3xf32>
  %s = bufferization.to_tensor %sm restrict : memref<6xf32> to tensor<6xf32>
  %b = bufferization.to_tensor %bm restrict : memref<6xf32> to tensor<6xf32>
  %y = bufferization.to_tensor %ym restrict : memref<2x6x8xf32> to tensor<2x6x8xf32>
  %init = tensor.empty() : tensor<2x6x8xf32>
  %r = tprt.convolution %x, %w scale %s bias %b addend %y activation silu into %init groups 2 stride [1] padding [1] dilation [1]
    : tensor<2x4x8xf32>, tensor<6x2x3xf32> scale tensor<6xf32> bias tensor<6xf32> addend tensor<2x6x8xf32> into tensor<2x6x8xf32> -> tensor<2x6x8xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<2x6x8xf32>, memref<2x6x8xf32>) -> ()
  return
}

// -----

func.func @element(%x: memref<2x4x8xi32>, %w: memref<6x4x3xi32>, %o: memref<2x6x6xi32>) {
  // expected-error @+1 {{computes f32, f64, f16 and bf16, not 'i32'}}
  tprt.convolution %x, %w into %o groups 1 stride [1] padding [0] dilation [1] : memref<2x4x8xi32>, memref<6x4x3xi32> into memref<2x6x6xi32>
  return
}

// -----

func.func @mixed(%x: memref<2x4x8xf32>, %w: memref<6x4x3xf64>, %o: memref<2x6x6xf32>) {
  // expected-error @+1 {{has operands of 'f32' and 'f64'}}
  tprt.convolution %x, %w into %o groups 1 stride [1] padding [0] dilation [1] : memref<2x4x8xf32>, memref<6x4x3xf64> into memref<2x6x6xf32>
  return
}

// -----

func.func @dims(%x: memref<2x4xf32>, %w: memref<6x4xf32>, %o: memref<2x6xf32>) {
  // expected-error @+1 {{needs 1 to 3 spatial dimensions, has strides of 0}}
  tprt.convolution %x, %w into %o groups 1 stride [] padding [] dilation [] : memref<2x4xf32>, memref<6x4xf32> into memref<2x6xf32>
  return
}

// -----

func.func @steps(%x: memref<2x4x8xf32>, %w: memref<6x4x3xf32>, %o: memref<2x6x6xf32>) {
  // expected-error @+1 {{needs a positive stride and dilation and a padding of at least 0 for each of 1 spatial dimensions}}
  tprt.convolution %x, %w into %o groups 1 stride [1] padding [-1] dilation [1] : memref<2x4x8xf32>, memref<6x4x3xf32> into memref<2x6x6xf32>
  return
}

// -----

func.func @groups(%x: memref<2x4x8xf32>, %w: memref<6x4x3xf32>, %o: memref<2x6x6xf32>) {
  // expected-error @+1 {{needs input (b, g * c, s…), weight (g * m, c, k…) and output (b, g * m, p…) for g = 2 groups}}
  tprt.convolution %x, %w into %o groups 2 stride [1] padding [0] dilation [1] : memref<2x4x8xf32>, memref<6x4x3xf32> into memref<2x6x6xf32>
  return
}

// -----

func.func @scale(%x: memref<2x4x8xf32>, %w: memref<6x4x3xf32>, %s: memref<1x6xf32>, %o: memref<2x6x6xf32>) {
  // expected-error @+1 {{needs a scale of 6 elements, found 'memref<1x6xf32>'}}
  tprt.convolution %x, %w scale %s into %o groups 1 stride [1] padding [0] dilation [1] : memref<2x4x8xf32>, memref<6x4x3xf32> scale memref<1x6xf32> into memref<2x6x6xf32>
  return
}

// -----

func.func @bias(%x: memref<2x4x8xf32>, %w: memref<6x4x3xf32>, %b: memref<4xf32>, %o: memref<2x6x6xf32>) {
  // expected-error @+1 {{needs a bias of 6 elements, found 'memref<4xf32>'}}
  tprt.convolution %x, %w bias %b into %o groups 1 stride [1] padding [0] dilation [1] : memref<2x4x8xf32>, memref<6x4x3xf32> bias memref<4xf32> into memref<2x6x6xf32>
  return
}

// -----

func.func @addend(%x: memref<2x4x8xf32>, %w: memref<6x4x3xf32>, %y: memref<2x6x5xf32>, %o: memref<2x6x6xf32>) {
  // expected-error @+1 {{needs an addend like the output 'memref<2x6x6xf32>', found 'memref<2x6x5xf32>'}}
  tprt.convolution %x, %w addend %y into %o groups 1 stride [1] padding [0] dilation [1] : memref<2x4x8xf32>, memref<6x4x3xf32> addend memref<2x6x5xf32> into memref<2x6x6xf32>
  return
}
