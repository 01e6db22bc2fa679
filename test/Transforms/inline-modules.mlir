// RUN: tp-opt %s --nn-inline-modules | FileCheck %s

// CHECK-LABEL: func.func @nested
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>
// CHECK-NEXT: %[[A:.*]] = nn.relu %[[X]] {tp.fqn = "outer.inner"}
// CHECK-NEXT: %[[B:.*]] = nn.neg %[[A]] {tp.fqn = "outer"}
// CHECK-NEXT: return %[[B]], %[[A]]
func.func @nested(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %r:2 = nn.module "outer" class "Outer" (%x as "x" at 0) {
  ^bb0(%a: tensor<8xf32>):
    %i = nn.module "outer.inner" class "Inner" (%a as "x" at 0) {
    ^bb0(%b: tensor<8xf32>):
      %0 = nn.relu %b : tensor<8xf32>
      nn.yield %0 : tensor<8xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    %1 = nn.neg %i : tensor<8xf32>
    nn.yield %1, %i : tensor<8xf32>, tensor<8xf32>
  } : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}
