// Updates follow their gradients directly, after the last use of the parameter.
// RUN: tp-opt %s --pass-pipeline="builtin.module(func.func(tp-hoist-parameter-updates))" | FileCheck %s

tp.mesh @mesh(dp = 2)

// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<4x8xf32>, %g: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %w = nn.parameter "w" : tensor<8x8xf32>
  %v = nn.parameter "v" : tensor<8x8xf32>
  // CHECK: %[[DV:.*]] = nn.outer_sum %arg1, %arg0
  // CHECK-NEXT: %[[RATE:.*]] = nn.constant dense<1.000000e-01>
  // CHECK-NEXT: %[[SCALED:.*]] = nn.mul %[[DV]], %[[RATE]]
  // CHECK-NEXT: nn.sub %{{.*}}, %[[SCALED]]
  // CHECK-NEXT: nn.assign "v",
  %dv = nn.outer_sum %g, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  // CHECK-NEXT: %[[DW:.*]] = nn.outer_sum %arg0, %arg1
  %dw = nn.outer_sum %x, %g : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  // CHECK-NEXT: nn.mul %[[DW]], %[[RATE]]
  // Its parameter is read once more.
  // CHECK-NEXT: nn.linear
  // CHECK-NEXT: nn.sub
  // CHECK-NEXT: nn.assign "w",
  %y = nn.linear %g, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: nn.relu
  %z = nn.relu %y : tensor<4x8xf32>
  %rate = nn.constant dense<0.1> : tensor<f32>
  %w0 = nn.mul %dw, %rate : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %w1 = nn.sub %w, %w0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  nn.assign "w", %w1 : tensor<8x8xf32>
  %v0 = nn.mul %dv, %rate : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %v1 = nn.sub %v, %v0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  nn.assign "v", %v1 : tensor<8x8xf32>
  // CHECK-NEXT: return
  return %z : tensor<4x8xf32>
}

// Updates that need a collective's result stay behind it, and the collective stays in place.
// CHECK-LABEL: func.func @reduced
func.func @reduced(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %w = nn.parameter "w" : tensor<8x8xf32>
  %dw = nn.outer_sum %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  // CHECK: nn.relu
  // CHECK-NEXT: tp.all_reduce
  // CHECK-NEXT: nn.sub
  // CHECK-NEXT: nn.assign
  // CHECK-NEXT: nn.gelu
  %y = nn.relu %x : tensor<4x8xf32>
  %sum = tp.all_reduce sum %dw over @mesh {dp} : tensor<8x8xf32>
  %z = nn.gelu %y : tensor<4x8xf32>
  %w1 = nn.sub %w, %sum : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  nn.assign "w", %w1 : tensor<8x8xf32>
  return %z : tensor<4x8xf32>
}

// What another stage waits for comes before the update.
// CHECK-LABEL: func.func @stage
func.func @stage(%x: tensor<4x8xf32>, %g: tensor<4x8xf32>) attributes {tp.ranks = array<i64: 1>, tp.stage = 1 : i64} {
  %v = nn.parameter "v" : tensor<8x8xf32>
  // CHECK: %[[DV:.*]] = nn.outer_sum
  // CHECK-NEXT: nn.relu
  // CHECK-NEXT: tp.transfer
  // CHECK-NEXT: nn.sub %{{.*}}, %[[DV]]
  // CHECK-NEXT: nn.assign "v",
  // CHECK-NEXT: nn.exp
  %dv = nn.outer_sum %g, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %z = nn.relu %g : tensor<4x8xf32>
  %sent = tp.transfer %z from 1 to 0 over @mesh {dp} : tensor<4x8xf32> -> tensor<0x0xf32>
  %last = nn.exp %g : tensor<4x8xf32>
  %rest = nn.relu %last : tensor<4x8xf32>
  %v1 = nn.sub %v, %dv : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  nn.assign "v", %v1 : tensor<8x8xf32>
  return
}
