// RUN: tp-opt %s --tp-grad --split-input-file | FileCheck %s
// RUN: tp-opt %s --canonicalize --split-input-file | FileCheck %s --check-prefix=FOLD

// Only one factor has a gradient, and the op is removed.

// CHECK-LABEL: func.func @square
// CHECK-NOT: nn.stop_gradient
// CHECK: %[[Y:.*]] = nn.linear %[[X:.*]], %
// CHECK: nn.mul %[[Y]], %[[Y]]
// CHECK: %[[ONES:.*]] = nn.broadcast
// CHECK-NEXT: %[[G:.*]] = nn.mul %[[ONES]], %[[Y]]
// CHECK-NEXT: %[[GW:.*]] = nn.outer_sum %[[G]], %[[X]]
// CHECK-NEXT: return %{{.*}}, %[[GW]]
// FOLD-LABEL: func.func @square
// FOLD: nn.stop_gradient
func.func @square(%x: tensor<4x8xf32>) -> tensor<f32> {
  %w = nn.parameter "w" : tensor<6x8xf32>
  %y = nn.linear %x, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %s = nn.stop_gradient %y : tensor<4x6xf32>
  %m = nn.mul %y, %s : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %l = nn.reduce sum %m dims [0, 1] : tensor<4x6xf32> -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// Ops before it need no gradient: linalg.exp has none.

// CHECK-LABEL: func.func @before
// CHECK-SAME: -> (tensor<f32>, tensor<6xf32> {tp.name = "grad.w"})
// FOLD-LABEL: func.func @before
// FOLD: %[[E:.*]] = linalg.exp
// FOLD-NEXT: %[[S:.*]] = nn.stop_gradient %[[E]]
// FOLD-NOT: nn.stop_gradient
func.func @before() -> tensor<f32> {
  %w = nn.parameter "w" : tensor<6xf32>
  %p = tensor.empty() : tensor<6xf32>
  %e = linalg.exp ins(%w : tensor<6xf32>) outs(%p : tensor<6xf32>) -> tensor<6xf32>
  %s = nn.stop_gradient %e : tensor<6xf32>
  %t = nn.stop_gradient %s : tensor<6xf32>
  %m = nn.mul %w, %t : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  %l = nn.reduce sum %m dims [0] : tensor<6xf32> -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// In a branch.

// FOLD-LABEL: func.func @branch
// CHECK-LABEL: func.func @branch
// CHECK-NOT: nn.stop_gradient
// CHECK: %[[ONES:.*]] = nn.broadcast
// CHECK-NEXT: %[[G:.*]] = scf.if
// CHECK-NEXT: %[[EXP:.*]] = nn.exp %[[W:.*]] :
// CHECK-NEXT: %[[GW:.*]] = nn.mul %[[ONES]], %[[EXP]]
// CHECK-NEXT: scf.yield %[[GW]]
func.func @branch(%c: i1) -> tensor<f32> {
  %w = nn.parameter "w" : tensor<6xf32>
  %r = scf.if %c -> tensor<6xf32> {
    %e = nn.exp %w : tensor<6xf32>
    %s = nn.stop_gradient %e : tensor<6xf32>
    %m = nn.mul %w, %s : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    scf.yield %m : tensor<6xf32>
  } else {
    scf.yield %w : tensor<6xf32>
  }
  %l = nn.reduce sum %r dims [0] : tensor<6xf32> -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// A parameter that is reached through a step function has a gradient, of zeros: an optimizer decays it, as in PyTorch.

// CHECK-LABEL: func.func @step
// CHECK-SAME: -> (tensor<f32>, tensor<6xf32> {tp.name = "grad.w"})
// CHECK: %[[ZERO:.*]] = nn.constant dense<0.000000e+00> : tensor<6xf32>
// CHECK: return %{{.*}}, %[[ZERO]]
func.func @step() -> tensor<f32> {
  %w = nn.parameter "w" : tensor<6xf32>
  %f = nn.floor %w : tensor<6xf32>
  %l = nn.reduce sum %f dims [0] : tensor<6xf32> -> tensor<f32>
  return %l : tensor<f32>
}
