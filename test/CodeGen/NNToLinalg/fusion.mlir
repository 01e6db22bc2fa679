// RUN: tp-opt %s --convert-nn-to-linalg --linalg-fuse-elementwise-ops --canonicalize | FileCheck %s

// A chain of elementwise ops, broadcast operands and scalars included, is one op.

// CHECK-LABEL: @chain
// CHECK: linalg.generic
// CHECK: arith.uitofp
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: math.erf
// CHECK-NOT: linalg.generic
func.func @chain(%x: tensor<2x3x8xi1>, %bias: tensor<8xf32>, %row: tensor<2x3xf32>) -> tensor<2x3x8xf32> {
  %c = nn.constant dense<0.5> : tensor<f32>
  %0 = nn.cast %x : tensor<2x3x8xi1> -> tensor<2x3x8xf32>
  %1 = nn.mul %0, %c : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3x8xf32>
  %2 = nn.add %1, %bias : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  %3 = nn.reshape %row : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %4 = nn.sub %2, %3 : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %5 = nn.gelu %4 : tensor<2x3x8xf32>
  return %5 : tensor<2x3x8xf32>
}
