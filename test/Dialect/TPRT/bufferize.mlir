// RUN: tp-opt %s --one-shot-bufferize | FileCheck %s

// The runtime takes dense blocks: a view with gaps goes through a copy.

// CHECK-LABEL: func.func @slice
func.func @slice(%x: memref<4x6xf32>, %out: memref<8x1xf32>) {
  %t = bufferization.to_tensor %x restrict : memref<4x6xf32> to tensor<4x6xf32>
  // CHECK: %[[VIEW:.*]] = memref.subview
  %column = tensor.extract_slice %t[0, 2] [4, 1] [1, 1] : tensor<4x6xf32> to tensor<4x1xf32>
  %init = tensor.empty() : tensor<8x1xf32>
  // CHECK: %[[DENSE:.*]] = memref.alloc() {{.*}} : memref<4x1xf32>
  // CHECK: memref.copy %[[VIEW]], %[[DENSE]]
  // CHECK: tprt.collective 0 %[[DENSE]] : memref<4x1xf32> into
  %r = tprt.collective 0 %column : tensor<4x1xf32> into %init : tensor<8x1xf32> -> tensor<8x1xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8x1xf32>, memref<8x1xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @rows
func.func @rows(%x: memref<4x6xf32>, %out: memref<4x6xf32>) {
  %t = bufferization.to_tensor %x restrict : memref<4x6xf32> to tensor<4x6xf32>
  // CHECK: %[[VIEW:.*]] = memref.subview
  %rows = tensor.extract_slice %t[2, 0] [2, 6] [1, 1] : tensor<4x6xf32> to tensor<2x6xf32>
  %init = tensor.empty() : tensor<4x6xf32>
  // CHECK-NOT: memref.copy
  // CHECK: tprt.collective 0 %[[VIEW]]
  %r = tprt.collective 0 %rows : tensor<2x6xf32> into %init : tensor<4x6xf32> -> tensor<4x6xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<4x6xf32>, memref<4x6xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @destination
// CHECK-SAME: %[[X:.*]]: memref<4x1xf32>
func.func @destination(%x: memref<4x1xf32>, %out: memref<4x2xf32>) {
  %t = bufferization.to_tensor %x restrict : memref<4x1xf32> to tensor<4x1xf32>
  %whole = tensor.empty() : tensor<4x2xf32>
  // CHECK: %[[VIEW:.*]] = memref.subview
  %init = tensor.extract_slice %whole[0, 1] [4, 1] [1, 1] : tensor<4x2xf32> to tensor<4x1xf32>
  // CHECK: %[[DENSE:.*]] = memref.alloc() {{.*}} : memref<4x1xf32>
  // CHECK-NOT: memref.copy
  // CHECK: tprt.collective 0 %[[X]] : memref<4x1xf32> into %[[DENSE]]
  // CHECK: memref.copy %[[DENSE]], %[[VIEW]]
  %r = tprt.collective 0 %t : tensor<4x1xf32> into %init : tensor<4x1xf32> -> tensor<4x1xf32>
  %all = tensor.insert_slice %r into %whole[0, 1] [4, 1] [1, 1] : tensor<4x1xf32> into tensor<4x2xf32>
  bufferization.materialize_in_destination %all in restrict writable %out : (tensor<4x2xf32>, memref<4x2xf32>) -> ()
  return
}
