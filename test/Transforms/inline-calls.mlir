// RUN: tp-opt %s --split-input-file --tp-inline-calls | FileCheck %s

// Private functions are inlined and erased.
// CHECK-NOT: @layer
// CHECK-NOT: @unused
// CHECK: func.func @forward(%[[X:.+]]: tensor<4x8xf32>)
// CHECK-NEXT: %[[Y:.+]] = nn.relu %[[X]]
// CHECK-NEXT: %[[Z:.+]] = nn.relu %[[Y]]
// CHECK-NEXT: return %[[Z]]
func.func private @layer(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = nn.relu %x : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
func.func private @unused(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
func.func @forward(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = call @layer(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %z = call @layer(%y) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

// -----

// Public functions stay.
// CHECK: func.func @layer
// CHECK: func.func @forward
// CHECK-NEXT: call @layer
func.func @layer(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = nn.relu %x : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
func.func @forward(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = call @layer(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
