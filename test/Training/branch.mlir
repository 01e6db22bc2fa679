// A branch's gradient is a branch on the same condition, which computes what it needs again; a loop of few iterations is unrolled.
// RUN: tp-opt %s --tp-grad --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @branch
// CHECK-SAME: %[[C:.*]]: i1
// CHECK-SAME: tensor<4xf32> {tp.name = "grad.v"}, tensor<4xf32> {tp.name = "grad.w"}
// CHECK: %[[V:.*]] = nn.parameter "v"
// CHECK: %[[W:.*]] = nn.parameter "w"
// CHECK: scf.if %[[C]] -> (tensor<4xf32>)
// CHECK: %[[G:.*]] = nn.broadcast
// CHECK: %[[BACK:.*]]:2 = scf.if %[[C]] -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: %[[E:.*]] = nn.exp %[[W]]
// CHECK-DAG: %[[DW:.*]] = nn.mul %[[G]], %[[E]]
// CHECK-DAG: %[[ZERO:.*]] = nn.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK: scf.yield %[[DW]], %[[ZERO]]
// CHECK: } else {
// CHECK: %[[DW2:.*]] = nn.mul %[[G]], %[[V]]
// CHECK: %[[DV:.*]] = nn.mul %[[G]], %[[W]]
// CHECK: scf.yield
// CHECK: return %{{.*}}, %[[BACK]]#1, %[[BACK]]#0
func.func @branch(%c: i1) -> tensor<f32> {
  %w = nn.parameter "w" : tensor<4xf32>
  %l = scf.if %c -> tensor<4xf32> {
    %a = nn.exp %w : tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  } else {
    %v = nn.parameter "v" : tensor<4xf32>
    %a = nn.mul %w, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  }
  %s = nn.reduce sum %l dims [0] : tensor<4xf32> -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// CHECK-LABEL: func.func @loop
// CHECK-NOT: scf.for
// CHECK-COUNT-3: nn.sin
// CHECK-COUNT-3: nn.cos
// CHECK: return
func.func @loop() -> tensor<f32> {
  %w = nn.parameter "w" : tensor<f32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %l = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %w) -> tensor<f32> {
    %b = nn.sin %a : tensor<f32>
    scf.yield %b : tensor<f32>
  }
  return %l : tensor<f32>
}
