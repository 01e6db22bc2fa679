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

// Between start and wait nobody writes to the operand. What would be computed in its place gets a buffer.

// CHECK-LABEL: func.func @beside
func.func @beside(%x: memref<4xf32>, %y: memref<4xf32>, %out: memref<4xf32>, %gathered: memref<8xf32>) {
  %a = bufferization.to_tensor %x restrict writable : memref<4xf32> to tensor<4xf32>
  %b = bufferization.to_tensor %y restrict : memref<4xf32> to tensor<4xf32>
  %init = tensor.empty() : tensor<8xf32>
  // CHECK: %[[RESULT:.*]] = memref.alloc() {{.*}} : memref<8xf32>
  // CHECK: tprt.collective_start 0 %[[X:.*]] : memref<4xf32> into %[[RESULT]] : memref<8xf32>
  // CHECK: %[[OTHER:.*]] = memref.alloc() {{.*}} : memref<4xf32>
  // CHECK: linalg.exp ins(%{{.*}} : memref<4xf32>) outs(%[[OTHER]] : memref<4xf32>)
  // CHECK: tprt.collective_wait 0 of %[[X]] : memref<4xf32> into %[[RESULT]] : memref<8xf32>
  %started = tprt.collective_start 0 %a : tensor<4xf32> into %init : tensor<8xf32> -> tensor<8xf32>
  %e = linalg.exp ins(%b : tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>
  %r = tprt.collective_wait 0 of %a : tensor<4xf32> into %started : tensor<8xf32> -> tensor<8xf32>
  bufferization.materialize_in_destination %e in restrict writable %out : (tensor<4xf32>, memref<4xf32>) -> ()
  bufferization.materialize_in_destination %r in restrict writable %gathered : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// In place of what is still read: a copy, before the start.

// CHECK-LABEL: func.func @in_place
// CHECK-SAME: %[[X:[^:]*]]: memref<4xf32>
func.func @in_place(%x: memref<4xf32>, %out: memref<4xf32>, %sum: memref<4xf32>) {
  %a = bufferization.to_tensor %x restrict writable : memref<4xf32> to tensor<4xf32>
  %init = tensor.empty() : tensor<4xf32>
  // CHECK: memref.copy %[[X]], %[[COPY:.*]] : memref<4xf32> to memref<4xf32>
  // CHECK: tprt.collective_start 0 into %[[COPY]] : memref<4xf32>
  // CHECK: linalg.exp ins(%[[X]] : memref<4xf32>)
  // CHECK: tprt.collective_wait 0 into %[[COPY]] : memref<4xf32>
  // CHECK: memref.copy %[[COPY]],
  %started = tprt.collective_start 0 into %a : tensor<4xf32> -> tensor<4xf32>
  %e = linalg.exp ins(%a : tensor<4xf32>) outs(%init : tensor<4xf32>) -> tensor<4xf32>
  %r = tprt.collective_wait 0 into %started : tensor<4xf32> -> tensor<4xf32>
  bufferization.materialize_in_destination %e in restrict writable %out : (tensor<4xf32>, memref<4xf32>) -> ()
  bufferization.materialize_in_destination %r in restrict writable %sum : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}

// Views with gaps: the operand is copied before the start, the result behind the wait.

// CHECK-LABEL: func.func @gaps
func.func @gaps(%x: memref<4x6xf32>, %out: memref<4x2xf32>) {
  %t = bufferization.to_tensor %x restrict : memref<4x6xf32> to tensor<4x6xf32>
  %whole = bufferization.to_tensor %out restrict writable : memref<4x2xf32> to tensor<4x2xf32>
  // CHECK-DAG: %[[FROM:.*]] = memref.subview %{{.*}}[0, 2] [4, 1]
  // CHECK-DAG: %[[TO:.*]] = memref.subview %{{.*}}[0, 1] [4, 1]
  // CHECK-DAG: %[[OPERAND:.*]] = memref.alloc() {{.*}} : memref<4x1xf32>
  // CHECK-DAG: memref.copy %[[FROM]], %[[OPERAND]]
  // CHECK-DAG: %[[RESULT:.*]] = memref.alloc() {{.*}} : memref<4x1xf32>
  // CHECK: tprt.collective_start 0 %[[OPERAND]] : memref<4x1xf32> into %[[RESULT]] : memref<4x1xf32>
  // CHECK-NEXT: tprt.collective_wait 0 of %[[OPERAND]] : memref<4x1xf32> into %[[RESULT]] : memref<4x1xf32>
  // CHECK-NEXT: memref.copy %[[RESULT]], %[[TO]]
  %column = tensor.extract_slice %t[0, 2] [4, 1] [1, 1] : tensor<4x6xf32> to tensor<4x1xf32>
  %init = tensor.extract_slice %whole[0, 1] [4, 1] [1, 1] : tensor<4x2xf32> to tensor<4x1xf32>
  %started = tprt.collective_start 0 %column : tensor<4x1xf32> into %init : tensor<4x1xf32> -> tensor<4x1xf32>
  %r = tprt.collective_wait 0 of %column : tensor<4x1xf32> into %started : tensor<4x1xf32> -> tensor<4x1xf32>
  %all = tensor.insert_slice %r into %whole[0, 1] [4, 1] [1, 1] : tensor<4x1xf32> into tensor<4x2xf32>
  bufferization.materialize_in_destination %all in restrict writable %out : (tensor<4x2xf32>, memref<4x2xf32>) -> ()
  return
}

// In place of a view with gaps: copied to a dense buffer, and back.

// CHECK-LABEL: func.func @gaps_in_place
func.func @gaps_in_place(%out: memref<4x2xf32>) {
  %whole = bufferization.to_tensor %out restrict writable : memref<4x2xf32> to tensor<4x2xf32>
  // CHECK: %[[VIEW:.*]] = memref.subview
  // CHECK: %[[DENSE:.*]] = memref.alloc() {{.*}} : memref<4x1xf32>
  // CHECK-NEXT: memref.copy %[[VIEW]], %[[DENSE]]
  // CHECK-NEXT: tprt.collective_start 0 into %[[DENSE]] : memref<4x1xf32>
  // CHECK-NEXT: tprt.collective_wait 0 into %[[DENSE]] : memref<4x1xf32>
  // CHECK-NEXT: memref.copy %[[DENSE]], %[[VIEW]]
  %init = tensor.extract_slice %whole[0, 1] [4, 1] [1, 1] : tensor<4x2xf32> to tensor<4x1xf32>
  %started = tprt.collective_start 0 into %init : tensor<4x1xf32> -> tensor<4x1xf32>
  %r = tprt.collective_wait 0 into %started : tensor<4x1xf32> -> tensor<4x1xf32>
  %all = tensor.insert_slice %r into %whole[0, 1] [4, 1] [1, 1] : tensor<4x1xf32> into tensor<4x2xf32>
  bufferization.materialize_in_destination %all in restrict writable %out : (tensor<4x2xf32>, memref<4x2xf32>) -> ()
  return
}
