// RUN: tp-opt %s --tp-expand-tensor-ops --split-input-file --verify-diagnostics

func.func @computed(%u: tensor<2xf32>, %x: tensor<4xf32>, %i: tensor<2x1xi64>) -> tensor<4xf32> {
  // expected-error @+1 {{'tensor.scatter' can be compiled only with constant indices, but these are computed at run time}}
  %0 = tensor.scatter %u into %x[%i] scatter_dims([0]) unique : (tensor<2xf32>, tensor<4xf32>, tensor<2x1xi64>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @outside(%u: tensor<2xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %i = arith.constant dense<[[3], [4]]> : tensor<2x1xindex>
  // expected-error @+1 {{'tensor.scatter' has index 4 along dimension 0, which has 4 elements}}
  %0 = tensor.scatter %u into %x[%i] scatter_dims([0]) unique : (tensor<2xf32>, tensor<4xf32>, tensor<2x1xindex>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @twice(%u: tensor<3xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %i = arith.constant dense<[[3], [1], [3]]> : tensor<3x1xindex>
  // expected-error @+1 {{'tensor.scatter' is marked unique, but its index vectors 0 and 2 name the same place}}
  %0 = tensor.scatter %u into %x[%i] scatter_dims([0]) unique : (tensor<3xf32>, tensor<4xf32>, tensor<3x1xindex>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
