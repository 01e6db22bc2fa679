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

// Indices that are computed are checked, each coordinate against its dimension.
// CHECK-LABEL: func.func @gather
// CHECK-SAME: %[[X:.*]]: tensor<4x6x5xf32>, %[[I:.*]]: tensor<3x2xindex>
func.func @gather(%x: tensor<4x6x5xf32>, %i: tensor<3x2xindex>) -> tensor<3x6xf32> {
  // CHECK: %[[FIRST:.*]] = tensor.extract_slice %[[I]][0, 0] [3, 1] [1, 1] : tensor<3x2xindex> to tensor<3xindex>
  // CHECK: tprt.check_index %{{.*}} below 4 what "gather" : tensor<3xi64>
  // CHECK: %[[SECOND:.*]] = tensor.extract_slice %[[I]][0, 1] [3, 1] [1, 1] : tensor<3x2xindex> to tensor<3xindex>
  // CHECK: tprt.check_index %{{.*}} below 5 what "gather" : tensor<3xi64>
  // CHECK: linalg.generic
  // CHECK: tensor.extract %[[X]]
  // CHECK-NOT: tensor.gather
  %0 = tensor.gather %x[%i] gather_dims([0, 2]) : (tensor<4x6x5xf32>, tensor<3x2xindex>) -> tensor<3x6xf32>
  return %0 : tensor<3x6xf32>
}

// CHECK-LABEL: func.func @gather_constant
func.func @gather_constant(%x: tensor<4xf32>) -> tensor<2xf32> {
  %i = arith.constant dense<[[3], [0]]> : tensor<2x1xi8>
  // CHECK-NOT: tprt.check_index
  // CHECK: tensor.extract
  %0 = tensor.gather %x[%i] gather_dims([0]) : (tensor<4xf32>, tensor<2x1xi8>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// Each place knows which index stands for it.
// CHECK-LABEL: func.func @scatter
// CHECK-SAME: %[[U:.*]]: tensor<2x3xf32>, %[[X:.*]]: tensor<4x3xf32>
func.func @scatter(%u: tensor<2x3xf32>, %x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  // CHECK: %[[NUMBERS:.*]] = arith.constant dense<[1, -1, -1, 0]> : tensor<4xi64>
  %i = arith.constant dense<[[3], [0]]> : tensor<2x1xindex>
  // CHECK: linalg.generic {{.*}} ins(%[[X]], %[[NUMBERS]] : tensor<4x3xf32>, tensor<4xi64>)
  // CHECK: tensor.extract %[[U]]
  // CHECK: arith.select
  %0 = tensor.scatter %u into %x[%i] scatter_dims([0]) unique : (tensor<2x3xf32>, tensor<4x3xf32>, tensor<2x1xindex>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}
