// RUN: tp-opt %s --tp-grad --split-input-file | FileCheck %s
// RUN: tp-opt %s --tp-grad=inputs=true --split-input-file | FileCheck %s --check-prefix=INPUTS

// An op of each family; gradients come in the parameters' order, in the op's module.

// CHECK-LABEL: func.func @main
// CHECK-SAME: -> (tensor<f32>, tensor<10x8xf32> {tp.name = "grad.table"}, tensor<6x8xf32> {tp.name = "grad.w"}, tensor<6xf32> {tp.name = "grad.b"})
// CHECK: %[[E:.*]] = nn.embedding %[[IDS:.*]], %{{.*}} padding 3
// CHECK: %[[W:.*]] = nn.parameter "w"
// CHECK: %[[R:.*]] = nn.relu
// CHECK: %[[S:.*]] = nn.softmax %[[R]]
// CHECK: %[[LOSS:.*]] = nn.reduce mean %[[S]]
// The mean's: 1 / 48.
// CHECK: nn.constant dense<0.020833334>
// CHECK: %[[GS:.*]] = nn.broadcast %{{.*}} : tensor<1x1x1xf32> -> tensor<2x4x6xf32>
// The softmax's: y * (g - Σ g * y).
// CHECK: %[[GY:.*]] = nn.mul %[[GS]], %[[S]]
// CHECK: %[[SUM:.*]] = nn.reduce sum %[[GY]] dims [2] keepdim
// CHECK: %[[REST:.*]] = nn.sub %[[GS]], %[[SUM]]
// CHECK: %[[GR:.*]] = nn.mul %[[S]], %[[REST]]
// CHECK: %[[CUT:.*]] = nn.compare le %[[R]],
// CHECK: %[[G:.*]] = nn.where %[[CUT]], %{{.*}}, %[[GR]]
// The gradient of a broadcast is a sum.
// CHECK: %[[GB:.*]] = nn.reduce sum %[[G]] dims [0, 1] : tensor<2x4x6xf32> -> tensor<6xf32>
// CHECK: %[[WT:.*]] = nn.transpose %[[W]] [1, 0] {tp.fqn = "proj"}
// CHECK: %[[GE:.*]] = nn.linear %[[G]], %[[WT]] {tp.fqn = "proj"}
// CHECK: %[[GW:.*]] = nn.outer_sum %[[G]], %[[E]] {tp.fqn = "proj"}
// The padding row gets nothing.
// CHECK: %[[OTHER:.*]] = nn.compare ne %[[IDS]], %{{.*}}
// CHECK: nn.reshape %[[OTHER]]
// CHECK: %[[ROWS:.*]] = nn.where %{{.*}}, %[[GE]]
// CHECK: %[[GT:.*]] = nn.scatter_add_rows %[[IDS]], %[[ROWS]]
// CHECK: return %[[LOSS]], %[[GT]], %[[GW]], %[[GB]]
func.func @main(%ids: tensor<2x4xi64>) -> tensor<f32> {
  %t = nn.parameter "table" : tensor<10x8xf32>
  %e = nn.embedding %ids, %t padding 3 : (tensor<2x4xi64>, tensor<10x8xf32>) -> tensor<2x4x8xf32>
  %w = nn.parameter "w" {tp.fqn = "proj"} : tensor<6x8xf32>
  %y = nn.linear %e, %w {tp.fqn = "proj"} : (tensor<2x4x8xf32>, tensor<6x8xf32>) -> tensor<2x4x6xf32>
  %b = nn.parameter "b" : tensor<6xf32>
  %z = nn.add %y, %b : (tensor<2x4x6xf32>, tensor<6xf32>) -> tensor<2x4x6xf32>
  %r = nn.relu %z : tensor<2x4x6xf32>
  %s = nn.softmax %r dim 2 : tensor<2x4x6xf32>
  %l = nn.reduce mean %s dims [0, 1, 2] : tensor<2x4x6xf32> -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// Each row's gradient is divided by how often its index is there.

// CHECK-LABEL: func.func @by_frequency
// CHECK-SAME: (%[[IDS:.*]]: tensor<2x4xi64>
// CHECK: %[[ONES:.*]] = nn.constant dense<1.000000e+00> : tensor<2x4x1xf32>
// CHECK: %[[COUNTS:.*]] = nn.scatter_add_rows %[[IDS]], %[[ONES]] : (tensor<2x4xi64>, tensor<2x4x1xf32>) -> tensor<10x1xf32>
// CHECK: %[[COUNT:.*]] = nn.embedding %[[IDS]], %[[COUNTS]] : (tensor<2x4xi64>, tensor<10x1xf32>) -> tensor<2x4x1xf32>
// CHECK: %[[ROWS:.*]] = nn.div %{{.*}}, %[[COUNT]]
// CHECK: nn.scatter_add_rows %[[IDS]], %[[ROWS]]
func.func @by_frequency(%ids: tensor<2x4xi64>) -> tensor<f32> {
  %t = nn.parameter "table" : tensor<10x8xf32>
  %e = nn.embedding %ids, %t scale_grad_by_freq : (tensor<2x4xi64>, tensor<10x8xf32>) -> tensor<2x4x8xf32>
  %s = nn.mul %e, %e : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %l = nn.reduce mean %s dims [0, 1, 2] : tensor<2x4x8xf32> -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// Parts of a fused weight: one concatenation, with zeros where no part is.

// CHECK-LABEL: func.func @fused
// CHECK: %[[LAST:.*]] = nn.outer_sum
// CHECK: %[[FIRST:.*]] = nn.outer_sum
// CHECK: %[[ZERO:.*]] = nn.constant dense<0.000000e+00> : tensor<4x8xf32>
// CHECK: %[[G:.*]] = nn.concat %[[FIRST]], %[[ZERO]], %[[LAST]] dim 0
// CHECK-NOT: nn.add
// CHECK: return %{{.*}}, %[[G]]
// INPUTS-LABEL: func.func @fused
// INPUTS-SAME: tensor<12x8xf32> {tp.name = "grad.qkv"}, tensor<4x8xf32> {tp.name = "grad.x"})
func.func @fused(%x: tensor<4x8xf32> {tp.name = "x"}) -> tensor<f32> {
  %w = nn.parameter "qkv" : tensor<12x8xf32>
  %q = nn.slice %w dim 0 start 0 step 1 : tensor<12x8xf32> -> tensor<4x8xf32>
  %v = nn.slice %w dim 0 start 8 step 1 : tensor<12x8xf32> -> tensor<4x8xf32>
  %0 = nn.linear %x, %q : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
  %1 = nn.linear %x, %v : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
  %2 = nn.mul %0, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %2 dims [0, 1] : tensor<4x4xf32> -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// Slices that overlap are added.

// CHECK-LABEL: func.func @overlap
// CHECK-COUNT-2: nn.concat
// CHECK: %[[G:.*]] = nn.add
// CHECK: return %{{.*}}, %[[G]]
func.func @overlap() -> tensor<f32> {
  %w = nn.parameter "w" : tensor<6xf32>
  %a = nn.slice %w dim 0 start 0 step 1 : tensor<6xf32> -> tensor<4xf32>
  %b = nn.slice %w dim 0 start 2 step 1 : tensor<6xf32> -> tensor<4xf32>
  %2 = nn.mul %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %l = nn.reduce sum %2 dims [0] : tensor<4xf32> -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// A slice with a step is spread by zeros. Other dimensions aren't merged: each stays split as it is.

// CHECK-LABEL: func.func @every_third
// CHECK: %[[G:.*]] = nn.add {{.*}} -> tensor<2x3x4xf32>
// CHECK-NOT: nn.scatter_add_rows
// CHECK: %[[COLUMN:.*]] = nn.reshape %[[G]] : tensor<2x3x4xf32> -> tensor<2x3x1x4xf32>
// CHECK: %[[WIDE:.*]] = nn.concat %[[COLUMN]], %{{.*}} dim 2 : (tensor<2x3x1x4xf32>, tensor<2x3x2x4xf32>) -> tensor<2x3x3x4xf32>
// CHECK: %[[FLAT:.*]] = nn.reshape %[[WIDE]] : tensor<2x3x3x4xf32> -> tensor<2x9x4xf32>
// CHECK: %[[CUT:.*]] = nn.slice %[[FLAT]] dim 1 start 0 step 1 : tensor<2x9x4xf32> -> tensor<2x8x4xf32>
// CHECK: nn.concat %{{.*}}, %[[CUT]] dim 1 : (tensor<2x2x4xf32>, tensor<2x8x4xf32>) -> tensor<2x10x4xf32>
func.func @every_third() -> tensor<f32> {
  %w = nn.parameter "w" : tensor<2x10x4xf32>
  %a = nn.slice %w dim 1 start 2 step 3 : tensor<2x10x4xf32> -> tensor<2x3x4xf32>
  %2 = nn.mul %a, %a : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %l = nn.reduce sum %2 dims [0, 1, 2] : tensor<2x3x4xf32> -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// A parameter that two ops read has one gradient, the sum; a frozen one has none, and the graph ends before what only
// leads to frozen ones. Cross entropy keeps the maximum of its logits and the logarithm of the sum for its gradient.

// CHECK-LABEL: func.func @tied
// CHECK-SAME: -> (tensor<f32> {tp.name = "loss"}, tensor<10x8xf32> {tp.name = "grad.embed"})
// CHECK: %[[LOGITS:.*]] = nn.linear %[[X:.*]], %{{.*}} : (tensor<4x8xf32>, tensor<10x8xf32>)
// CHECK: %[[MAX:.*]] = nn.reduce max %[[LOGITS]] dims [1] keepdim
// CHECK: %[[SHIFTED:.*]] = nn.sub %[[LOGITS]], %[[MAX]]
// CHECK: %[[EXPS:.*]] = nn.exp %[[SHIFTED]]
// CHECK: %[[SUM:.*]] = nn.reduce sum %[[EXPS]] dims [1] keepdim
// CHECK: nn.gather %[[LOGITS]], %{{.*}} dim 1
// CHECK: %[[LOG:.*]] = nn.log %[[SUM]]
// CHECK-NOT: nn.cross_entropy
// CHECK: %[[AGAIN:.*]] = nn.sub %[[LOGITS]], %[[MAX]]
// CHECK: %[[LOGP:.*]] = nn.sub %[[AGAIN]], %[[LOG]]
// CHECK: nn.exp %[[LOGP]]
// CHECK: %[[HEAD:.*]] = nn.outer_sum %{{.*}}, %[[X]]
// CHECK-NOT: nn.outer_sum
// CHECK: %[[TABLE:.*]] = nn.scatter_add_rows
// CHECK: %[[G:.*]] = nn.add %[[HEAD]], %[[TABLE]]
// CHECK: return %{{.*}}, %[[G]]
func.func @tied(%ids: tensor<4xi64>) -> (tensor<f32> {tp.name = "loss"}) {
  %w0 = nn.parameter "embed" : tensor<10x8xf32>
  %e = nn.embedding %ids, %w0 : (tensor<4xi64>, tensor<10x8xf32>) -> tensor<4x8xf32>
  %f = nn.parameter "frozen" frozen : tensor<8x8xf32>
  %g = nn.linear %e, %f : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %w1 = nn.parameter "embed" : tensor<10x8xf32>
  %0 = nn.linear %g, %w1 : (tensor<4x8xf32>, tensor<10x8xf32>) -> tensor<4x10xf32>
  %l = nn.cross_entropy mean %0, %ids ignore -100 smoothing 0.0 : (tensor<4x10xf32>, tensor<4xi64>) -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// CHECK-LABEL: func.func @cut
// CHECK: %[[H:.*]] = nn.linear
// CHECK: nn.linear %[[H]]
// CHECK-NOT: nn.linear
// CHECK: nn.outer_sum %{{.*}}, %[[H]]
// CHECK-NOT: nn.linear
// CHECK-NOT: nn.outer_sum
// INPUTS-LABEL: func.func @cut
// INPUTS-COUNT-4: nn.linear
// INPUTS-NOT: nn.linear
func.func @cut(%x: tensor<4x8xf32>) -> tensor<f32> {
  %f = nn.parameter "f" frozen : tensor<8x8xf32>
  %h = nn.linear %x, %f : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %w = nn.parameter "w" : tensor<8x8xf32>
  %y = nn.linear %h, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %l = nn.reduce sum %y dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %l : tensor<f32>
}
