// RUN: tp-opt %s --tp-split-shared-inits | FileCheck %s

// CHECK-LABEL: @fills
func.func @fills(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  // CHECK: %[[A:.+]] = linalg.fill
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: linalg.matmul {{.*}} outs(%[[A]] :
  %0 = linalg.matmul ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: %[[E:.+]] = tensor.empty
  // CHECK: %[[B:.+]] = linalg.fill {{.*}} outs(%[[E]] :
  // CHECK: linalg.matmul {{.*}} outs(%[[B]] :
  %1 = linalg.matmul ins(%0, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// Concatenations that begin alike.

// CHECK-LABEL: @concatenations
// CHECK-SAME: %[[X:.+]]: tensor<1x4xf32>, %[[Y:.+]]: tensor<1x4xf32>
func.func @concatenations(%x: tensor<1x4xf32>, %y: tensor<1x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  // CHECK: %[[E:.+]] = tensor.empty
  // CHECK: %[[A:.+]] = tensor.insert_slice %[[X]] into %[[E]]
  %e = tensor.empty() : tensor<2x4xf32>
  %both = tensor.insert_slice %x into %e[0, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<2x4xf32>
  // CHECK: tensor.insert_slice %[[Y]] into %[[A]]
  %0 = tensor.insert_slice %y into %both[1, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<2x4xf32>
  // CHECK: %[[F:.+]] = tensor.empty
  // CHECK: %[[B:.+]] = tensor.insert_slice %[[X]] into %[[F]]
  // CHECK: tensor.insert_slice %[[X]] into %[[B]]
  %1 = tensor.insert_slice %x into %both[1, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<2x4xf32>
  return %0, %1 : tensor<2x4xf32>, tensor<2x4xf32>
}

// Products that begin with one bias.

// CHECK-LABEL: @biases
// CHECK-SAME: %[[X:.+]]: tensor<4x4xf32>, %[[BIAS:.+]]: tensor<4xf32>
func.func @biases(%x: tensor<4x4xf32>, %bias: tensor<4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %e = tensor.empty() : tensor<4x4xf32>
  // CHECK: %[[A:.+]] = linalg.generic {{.*}} ins(%[[BIAS]] :
  %init = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%bias : tensor<4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x4xf32>
  // CHECK: linalg.matmul {{.*}} outs(%[[A]] :
  %0 = linalg.matmul ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: %[[E:.+]] = tensor.empty
  // CHECK: %[[B:.+]] = linalg.generic {{.*}} ins(%[[BIAS]] : {{.*}} outs(%[[E]] :
  // CHECK: linalg.matmul {{.*}} outs(%[[B]] :
  %1 = linalg.matmul ins(%0, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// What is written in part, and read afterwards, is copied.
// CHECK-LABEL: @written
// CHECK: %[[X:.+]] = linalg.generic
// CHECK: %[[COPY:.+]] = bufferization.alloc_tensor() copy(%[[X]]) : tensor<4x8xf32>
// CHECK: %[[Y:.+]] = tensor.insert_slice %{{.+}} into %[[COPY]][0, 2] [4, 3] [1, 1]
// CHECK: %[[Z:.+]] = tensor.extract_slice %[[X]]
// CHECK: return %[[Y]], %[[Z]]
func.func @written(%a: tensor<4x8xf32>, %b: tensor<4x3xf32>) -> (tensor<4x8xf32>, tensor<4x3xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %x = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %n = arith.negf %in : f32
    linalg.yield %n : f32
  } -> tensor<4x8xf32>
  %y = tensor.insert_slice %b into %x[0, 2] [4, 3] [1, 1] : tensor<4x3xf32> into tensor<4x8xf32>
  %z = tensor.extract_slice %x[0, 2] [4, 3] [1, 1] : tensor<4x8xf32> to tensor<4x3xf32>
  return %y, %z : tensor<4x8xf32>, tensor<4x3xf32>
}

// CHECK-LABEL: @loop
// CHECK: %[[X:.+]] = linalg.generic
// CHECK: %[[COPY:.+]] = bufferization.alloc_tensor() copy(%[[X]]) : tensor<8xf32>
// CHECK: scf.for {{.*}} iter_args(%{{.+}} = %[[COPY]])
func.func @loop(%a: tensor<8xf32>, %s: f32) -> (tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<8xf32>
  %x = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %n = arith.negf %in : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  %y = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %x) -> tensor<8xf32> {
    %u = tensor.insert %s into %t[%i] : tensor<8xf32>
    scf.yield %u : tensor<8xf32>
  }
  return %y, %x : tensor<8xf32>, tensor<8xf32>
}

// A concatenation begins with the output's buffer, and what an output reshapes is written in its own shape.

// CHECK-LABEL: func.func @outputs
// CHECK-SAME: %{{.+}}: tensor<4x2xf32>, %[[Y:.+]]: tensor<8xf32>, %[[OUT0:.+]]: memref<4x4xf32>, %[[OUT1:.+]]: memref<2x4xf32>
// CHECK-DAG: %[[BEGIN:.+]] = bufferization.to_tensor %[[OUT0]] restrict writable
// CHECK-DAG: %[[FLAT:.+]] = memref.collapse_shape %[[OUT1]]
// CHECK: tensor.insert_slice %{{.+}} into %[[BEGIN]]
// CHECK: bufferization.materialize_in_destination %[[Y]] in restrict writable %[[FLAT]] : (tensor<8xf32>, memref<8xf32>)
func.func @outputs(%x: tensor<4x2xf32>, %y: tensor<8xf32>, %out0: memref<4x4xf32>, %out1: memref<2x4xf32>) {
  %init = tensor.empty() : tensor<4x4xf32>
  %0 = tensor.insert_slice %x into %init[0, 0] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x4xf32>
  %1 = tensor.insert_slice %x into %0[0, 2] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x4xf32>
  %2 = tensor.expand_shape %y [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  bufferization.materialize_in_destination %1 in restrict writable %out0 : (tensor<4x4xf32>, memref<4x4xf32>) -> ()
  bufferization.materialize_in_destination %2 in restrict writable %out1 : (tensor<2x4xf32>, memref<2x4xf32>) -> ()
  return
}
