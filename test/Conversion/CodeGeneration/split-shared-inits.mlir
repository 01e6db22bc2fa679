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
