// RUN: tp-opt %s --split-input-file --verify-diagnostics --verify-roundtrip --one-shot-bufferize | FileCheck %s

// What is read and has gaps, or isn't at the begin of its buffer, goes through a copy. What is updated is overwritten where it is.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[RANK:.+]]: index, %[[X:.+]]: memref<4x8xf32>, %[[W:.+]]: memref<4xf32>
// CHECK: %[[PART:.+]] = memref.subview %[[X]][0, 4] [4, 4] [1, 1]
// CHECK: %[[OUT:.+]] = memref.alloc() {{.*}} : memref<4x4xf32>
// CHECK: %[[DENSE:.+]] = memref.alloc() {{.*}} : memref<4x4xf32>
// CHECK: memref.copy %[[PART]], %[[DENSE]]
// CHECK: tprt.call @layer rank %[[RANK]] ins(%[[DENSE]] : memref<4x4xf32>) updates(%[[W]] : memref<4xf32>) outs(%[[OUT]] : memref<4x4xf32>) origins ["net"] collectives [3]
// CHECK-NEXT: memref.copy %[[W]], %[[W]]
// CHECK-NEXT: return
func.func private @layer(%rank: index, %x: memref<4x4xf32>, %w: memref<4xf32>, %y: memref<4x4xf32>) attributes {tprt.repeated} {
  return
}
func.func @main(%rank: index, %x: memref<4x8xf32>, %w: memref<4xf32>, %out: memref<4x4xf32>) {
  %0 = bufferization.to_tensor %x restrict : memref<4x8xf32> to tensor<4x8xf32>
  %1 = bufferization.to_tensor %w restrict writable : memref<4xf32> to tensor<4xf32>
  %2 = tensor.extract_slice %0[0, 4] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
  %3 = tensor.empty() : tensor<4x4xf32>
  %4, %5 = tprt.call @layer rank %rank ins(%2 : tensor<4x4xf32>) updates(%1 : tensor<4xf32>) outs(%3 : tensor<4x4xf32>)
    origins ["net"] collectives [3] -> tensor<4xf32>, tensor<4x4xf32>
  bufferization.materialize_in_destination %4 in restrict writable %w : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}

// -----

func.func @missing(%rank: index) {
  // expected-error @+1 {{there is no function 'layer'}}
  tprt.call @layer rank %rank origins [] collectives []
  return
}

// -----

func.func private @layer(index)
func.func @kernel(%rank: index) {
  // expected-error @+1 {{'layer' has no attribute 'tprt.repeated'}}
  tprt.call @layer rank %rank origins [] collectives []
  return
}

// -----

// expected-note @+1 {{the function is here}}
func.func private @layer(index, memref<4xf32>) attributes {tprt.repeated}
func.func @shape(%rank: index, %x: memref<8xf32>) {
  // expected-error @+1 {{'layer' doesn't take an 'index' and buffers of the operands' shapes and element types}}
  tprt.call @layer rank %rank ins(%x : memref<8xf32>) origins [] collectives []
  return
}

// -----

func.func private @layer(%rank: index) attributes {tprt.repeated} {
  // expected-error @+1 {{is in a function with 'tprt.repeated'}}
  tprt.call @layer rank %rank origins [] collectives []
  return
}

// -----

func.func private @layer(index, memref<4xf32>, memref<4xf32>) attributes {tprt.repeated}
func.func @mixed(%rank: index, %x: tensor<4xf32>, %y: memref<4xf32>) {
  // expected-error @+1 {{must update either tensors or buffers, not both}}
  %0 = tprt.call @layer rank %rank updates(%x, %y : tensor<4xf32>, memref<4xf32>) origins [] collectives [] -> tensor<4xf32>
  return
}

// -----

// A buffer is passed on; the other results are those of tensors.

// CHECK-LABEL: func.func @buffers
// CHECK-SAME: %[[RANK:.+]]: index, %[[X:.+]]: memref<4xf32>, %[[W:.+]]: memref<4xf32>, %[[OUT:.+]]: memref<4xf32>
// CHECK-NEXT: tprt.call @layer rank %[[RANK]] ins(%[[X]] : memref<4xf32>) updates(%[[W]] : memref<4xf32>) outs(%[[OUT]] : memref<4xf32>)
// CHECK-NEXT: memref.copy %[[OUT]], %[[OUT]]
// CHECK-NEXT: return
func.func private @layer(index, memref<4xf32>, memref<4xf32>, memref<4xf32>) attributes {tprt.repeated}
func.func @buffers(%rank: index, %x: memref<4xf32>, %w: memref<4xf32>, %out: memref<4xf32>) {
  %0 = bufferization.to_tensor %out restrict writable : memref<4xf32> to tensor<4xf32>
  %1 = tprt.call @layer rank %rank ins(%x : memref<4xf32>) updates(%w : memref<4xf32>) outs(%0 : tensor<4xf32>)
    origins [] collectives [] -> tensor<4xf32>
  bufferization.materialize_in_destination %1 in restrict writable %out : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}
