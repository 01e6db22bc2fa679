// RUN: tp-opt %s --nn-drop-gradient-forms | FileCheck %s

// CHECK-LABEL: @stopped
// CHECK-SAME: %[[X:.+]]: tensor<2x4xf32>
// CHECK-NEXT: return %[[X]]
func.func @stopped(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = nn.stop_gradient %x : tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// What picked the elements goes, too, unless something else reads it.

// CHECK-LABEL: @extrema
// CHECK-SAME: %[[X:.+]]: tensor<2x4xf32>
// CHECK-NEXT: %[[MAX:.+]] = nn.reduce max %[[X]] dims [1] keepdim {tp.fqn = "m"} : tensor<2x4xf32> -> tensor<2x1xf32>
// CHECK-NEXT: %[[NEG:.+]] = nn.neg %[[X]]
// CHECK-NEXT: %[[AT:.+]] = nn.argmax %[[NEG]] dim 1 keepdim
// CHECK-NEXT: %[[MIN:.+]] = nn.reduce min %[[X]] dims [1] keepdim : tensor<2x4xf32> -> tensor<2x1xf32>
// CHECK-NEXT: return %[[MAX]], %[[MIN]], %[[AT]]
func.func @extrema(%x: tensor<2x4xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xi64>) {
  %0 = nn.stop_gradient %x : tensor<2x4xf32>
  %i = nn.argmax %0 dim 1 keepdim : tensor<2x4xf32> -> tensor<2x1xi64>
  %max = nn.gather %x, %i dim 1 {tp.fqn = "m"} : (tensor<2x4xf32>, tensor<2x1xi64>) -> tensor<2x1xf32>
  %1 = nn.neg %x : tensor<2x4xf32>
  %j = nn.argmax %1 dim 1 keepdim : tensor<2x4xf32> -> tensor<2x1xi64>
  %min = nn.gather %x, %j dim 1 : (tensor<2x4xf32>, tensor<2x1xi64>) -> tensor<2x1xf32>
  return %max, %min, %j : tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xi64>
}

// Another dimension, or the index of another tensor.

// CHECK-LABEL: @others
// CHECK-COUNT-2: nn.gather
func.func @others(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> (tensor<1x4xf32>, tensor<4x1xf32>) {
  %i = nn.argmax %x dim 1 keepdim : tensor<4x4xf32> -> tensor<4x1xi64>
  %r = nn.reshape %i : tensor<4x1xi64> -> tensor<1x4xi64>
  %0 = nn.gather %x, %r dim 0 : (tensor<4x4xf32>, tensor<1x4xi64>) -> tensor<1x4xf32>
  %1 = nn.gather %y, %i dim 1 : (tensor<4x4xf32>, tensor<4x1xi64>) -> tensor<4x1xf32>
  return %0, %1 : tensor<1x4xf32>, tensor<4x1xf32>
}
