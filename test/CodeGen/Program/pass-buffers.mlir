// RUN: tp-opt %s --tp-outline-repeats | FileCheck %s

// Calls take the buffers of arguments that no other op uses. Each function below has one argument
// for which this would be wrong.

func.func private @read(%rank: index, %w: memref<4xf32>, %y: memref<4xf32>) attributes {tprt.repeated} {
  return
}
func.func private @update(%rank: index, %v: memref<4xf32>, %w: memref<4xf32>, %y: memref<4xf32>) attributes {tprt.repeated} {
  return
}

// Another op uses %w, which may be overwritten, and %v, which may not.

// CHECK-LABEL: func.func @other
// CHECK: %[[W:.+]] = bufferization.to_tensor %arg1
// CHECK: %[[V:.+]] = bufferization.to_tensor %arg2
// CHECK: tprt.call @read rank %arg0 ins(%[[W]] : tensor<4xf32>)
// CHECK: %[[R:.+]] = tprt.call @read rank %arg0 ins(%arg2 : memref<4xf32>)
// CHECK: nn.mul %[[V]], %[[R]]
func.func @other(%rank: index {tprt.role = "rank"}, %arg1: memref<4xf32>, %arg2: memref<4xf32>, %out: memref<4xf32>)
    attributes {tp.ranks = array<i64: 0>} {
  %w = bufferization.to_tensor %arg1 restrict writable : memref<4xf32> to tensor<4xf32>
  %v = bufferization.to_tensor %arg2 restrict : memref<4xf32> to tensor<4xf32>
  %0 = tensor.empty() : tensor<4xf32>
  %1 = tprt.call @read rank %rank ins(%w : tensor<4xf32>) outs(%0 : tensor<4xf32>) origins [] collectives [] -> tensor<4xf32>
  %2 = tprt.call @read rank %rank ins(%v : tensor<4xf32>) outs(%0 : tensor<4xf32>) origins [] collectives [] -> tensor<4xf32>
  %3 = nn.mul %v, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = nn.add %3, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  bufferization.materialize_in_destination %4 in restrict writable %out : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}

// A call reads the old value after the call that updates it, so bufferization has to copy it.

// CHECK-LABEL: func.func @old
// CHECK: %[[W:.+]] = bufferization.to_tensor %arg1
// CHECK: %[[R:.+]]:2 = tprt.call @update rank %arg0 ins(%arg2 : memref<4xf32>) updates(%[[W]] : tensor<4xf32>)
// CHECK: tprt.call @read rank %arg0 ins(%[[W]] : tensor<4xf32>)
// CHECK: bufferization.materialize_in_destination %[[R]]#0 in %[[W]]
func.func @old(%rank: index {tprt.role = "rank"}, %arg1: memref<4xf32>, %arg2: memref<4xf32>, %out: memref<4xf32>)
    attributes {tp.ranks = array<i64: 1>} {
  %w = bufferization.to_tensor %arg1 restrict writable : memref<4xf32> to tensor<4xf32>
  %v = bufferization.to_tensor %arg2 restrict : memref<4xf32> to tensor<4xf32>
  %0 = tensor.empty() : tensor<4xf32>
  %1:2 = tprt.call @update rank %rank ins(%v : tensor<4xf32>) updates(%w : tensor<4xf32>) outs(%0 : tensor<4xf32>)
    origins [] collectives [] -> tensor<4xf32>, tensor<4xf32>
  %2 = tprt.call @read rank %rank ins(%w : tensor<4xf32>) outs(%0 : tensor<4xf32>) origins [] collectives [] -> tensor<4xf32>
  %3 = nn.add %1#1, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  bufferization.materialize_in_destination %3 in restrict writable %out : (tensor<4xf32>, memref<4xf32>) -> ()
  %4 = bufferization.materialize_in_destination %1#0 in %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  bufferization.materialize_in_destination %4 in restrict writable %arg1 : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}

// The next value is also an output.

// CHECK-LABEL: func.func @output
// CHECK: %[[W:.+]] = bufferization.to_tensor %arg1
// CHECK: tprt.call @update rank %arg0 ins(%arg2 : memref<4xf32>) updates(%[[W]] : tensor<4xf32>)
func.func @output(%rank: index {tprt.role = "rank"}, %arg1: memref<4xf32>, %arg2: memref<4xf32>, %out: memref<4xf32>)
    attributes {tp.ranks = array<i64: 2>} {
  %w = bufferization.to_tensor %arg1 restrict writable : memref<4xf32> to tensor<4xf32>
  %v = bufferization.to_tensor %arg2 restrict : memref<4xf32> to tensor<4xf32>
  %0 = tensor.empty() : tensor<4xf32>
  %1:2 = tprt.call @update rank %rank ins(%v : tensor<4xf32>) updates(%w : tensor<4xf32>) outs(%0 : tensor<4xf32>)
    origins [] collectives [] -> tensor<4xf32>, tensor<4xf32>
  bufferization.materialize_in_destination %1#0 in restrict writable %out : (tensor<4xf32>, memref<4xf32>) -> ()
  %4 = bufferization.materialize_in_destination %1#0 in %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  bufferization.materialize_in_destination %4 in restrict writable %arg1 : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}
