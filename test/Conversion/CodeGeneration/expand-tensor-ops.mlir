// RUN: tp-opt %s --tp-expand-tensor-ops --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @elementwise
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>, %[[Y:.*]]: tensor<8xf32>, %[[C:.*]]: i1
func.func @elementwise(%x: tensor<8xf32>, %y: tensor<8xf32>, %c: i1) -> tensor<8xf32> {
  // CHECK: linalg.generic {{.*}} ins(%[[X]], %[[Y]] : tensor<8xf32>, tensor<8xf32>)
  // CHECK: arith.addf
  %0 = arith.addf %x, %y : tensor<8xf32>
  // CHECK: linalg.generic
  // CHECK: arith.select
  %1 = arith.select %c, %0, %x : tensor<8xf32>
  // CHECK: linalg.generic
  // CHECK: math.exp
  %2 = math.exp %1 : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// CHECK-LABEL: func.func @softmax
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  // CHECK-NOT: linalg.softmax
  // CHECK: arith.maxnumf
  // CHECK: math.exp
  // CHECK: arith.divf
  %0 = linalg.softmax dimension(1) ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @concat
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<2xf32>
func.func @concat(%x: tensor<4xf32>, %y: tensor<2xf32>) -> tensor<6xf32> {
  // CHECK: %[[E:.*]] = tensor.empty() : tensor<6xf32>
  // CHECK: %[[A:.*]] = tensor.insert_slice %[[X]] into %[[E]][0] [4] [1]
  // CHECK: tensor.insert_slice %[[Y]] into %[[A]][4] [2] [1]
  %0 = tensor.concat dim(0) %x, %y : (tensor<4xf32>, tensor<2xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// A rank's block of zeros is made as such.
// CHECK-LABEL: func.func @block
func.func @block(%at: index) -> tensor<2x4xf32> {
  %zero = arith.constant 0.0 : f32
  // CHECK: %[[E:.*]] = tensor.empty() : tensor<2x4xf32>
  // CHECK: linalg.fill {{.*}} outs(%[[E]] : tensor<2x4xf32>)
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = tensor.extract_slice %f[%at, 0][2, 4][1, 1] : tensor<4x4xf32> to tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
