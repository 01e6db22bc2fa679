// RUN: tp-opt %s --tp-grad --split-input-file --verify-diagnostics

func.func @no_gradient() -> tensor<f32> {
  %w = nn.parameter "w" : tensor<6xf32>
  %p = tensor.empty() : tensor<6xf32>
  // expected-error@+1 {{'linalg.exp' has no gradient, and the loss depends on a parameter through it; freeze the parameters before it, or implement GradientOpInterface}}
  %e = linalg.exp ins(%w : tensor<6xf32>) outs(%p : tensor<6xf32>) -> tensor<6xf32>
  %l = nn.reduce sum %e dims [0] : tensor<6xf32> -> tensor<f32>
  return %l : tensor<f32>
}

// -----

func.func @inside(%c: i1) -> tensor<f32> {
  %w = nn.parameter "w" : tensor<6xf32>
  %p = tensor.empty() : tensor<6xf32>
  %r = scf.if %c -> tensor<6xf32> {
    // expected-error@+1 {{'linalg.exp' has no gradient, and the loss depends on a parameter through it}}
    %e = linalg.exp ins(%w : tensor<6xf32>) outs(%p : tensor<6xf32>) -> tensor<6xf32>
    scf.yield %e : tensor<6xf32>
  } else {
    scf.yield %w : tensor<6xf32>
  }
  %l = nn.reduce sum %r dims [0] : tensor<6xf32> -> tensor<f32>
  return %l : tensor<f32>
}

// -----

func.func @loop(%n: index) -> tensor<f32> {
  %w = nn.parameter "w" : tensor<f32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{'scf.for' has no gradient, and the loss depends on a parameter through it; only an 'scf.for' of constant bounds and at most 64 iterations is differentiated}}
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%a = %w) -> tensor<f32> {
    %b = nn.exp %a : tensor<f32>
    scf.yield %b : tensor<f32>
  }
  return %l : tensor<f32>
}

// -----

// expected-error@+1 {{the loss, result 0, should be a scalar, found 'tensor<6xf32>'; reduce it, or give a training file with another 'loss'}}
func.func @no_scalar() -> tensor<6xf32> {
  %w = nn.parameter "w" : tensor<6xf32>
  return %w : tensor<6xf32>
}

// -----

// expected-error@+1 {{the loss is of result 0, which should be a float tensor, found 'tensor<i64>'}}
func.func @no_float() -> tensor<i64> {
  %w = nn.parameter "w" : tensor<i64>
  return %w : tensor<i64>
}

// -----

// expected-error@+1 {{the loss is of result 0, but '@none' has 0 results}}
func.func @none() {
  return
}

// -----

// expected-error@+1 {{there is nothing to differentiate with respect to: every parameter is frozen}}
func.func @frozen() -> tensor<f32> {
  %w = nn.parameter "w" frozen : tensor<f32>
  %0 = nn.exp %w : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// expected-error@+1 {{'@blocks' has several blocks; straight-line code is differentiated}}
func.func @blocks() -> tensor<f32> {
  %w = nn.parameter "w" : tensor<f32>
  cf.br ^bb1
^bb1:
  return %w : tensor<f32>
}

// -----

// expected-error@+1 {{there are several entry points, and none of them is '@main', to differentiate}}
module {
  func.func @a() -> tensor<f32> {
    %w = nn.parameter "w" : tensor<f32>
    return %w : tensor<f32>
  }
  func.func @b() -> tensor<f32> {
    %w = nn.parameter "w" : tensor<f32>
    return %w : tensor<f32>
  }
}

// -----

// expected-error@+1 {{there is no function to differentiate}}
module {
}

// -----

func.func @unused() -> tensor<f32> {
  %w = nn.parameter "w" : tensor<f32>
  // expected-warning@+1 {{parameter "v" has no gradient: the loss doesn't depend on it}}
  %v = nn.parameter "v" : tensor<f32>
  %0 = nn.exp %w : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// expected-error@+1 {{there is nothing to train: the loss depends on no parameter that has a gradient}}
func.func @stopped() -> tensor<f32> {
  // expected-warning@+1 {{parameter "w" has no gradient: the loss doesn't depend on it}}
  %w = nn.parameter "w" : tensor<6xf32>
  %s = nn.stop_gradient %w : tensor<6xf32>
  %l = nn.reduce sum %s dims [0] : tensor<6xf32> -> tensor<f32>
  return %l : tensor<f32>
}
