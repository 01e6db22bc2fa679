// RUN: tp-opt %s --tp-split-batch --split-input-file --verify-diagnostics | FileCheck %s

// Each rank of dp takes its own examples of every microbatch, and they are joined in the order of the input.
tp.mesh @mesh(pp = 2, dp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 2

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<8x3xf32> {tp.batch = ["dp"], tp.sharding = {{.*}}}, %[[M:.*]]: tensor<3xf32>) -> tensor<8x3xf32>
// CHECK: %[[ALL:.*]] = nn.reshape %[[X]] {tp.pass = 0 : i64} : tensor<8x3xf32> -> tensor<2x2x2x3xf32>
// CHECK: %[[S:.*]] = nn.slice %{{.*}} dim 1 start 0 step 1 {{.*}} : tensor<2x2x2x3xf32> -> tensor<2x1x2x3xf32>
// CHECK: %[[X0:.*]] = nn.reshape %[[S]] {{.*}} : tensor<2x1x2x3xf32> -> tensor<4x3xf32>
// CHECK: %[[Y0:.*]] = nn.mul %[[X0]], %[[M]] {tp.fqn = "a", tp.pass = 0 : i64, tp.stage = 0 : i64}
// CHECK: nn.slice %{{.*}} dim 1 start 1 step 1
// CHECK: %[[Y1:.*]] = nn.mul %{{.*}}, %[[M]] {tp.fqn = "a", tp.pass = 2 : i64, tp.stage = 0 : i64}
// CHECK: %[[R0:.*]] = nn.reshape %[[Y0]] : tensor<4x3xf32> -> tensor<2x1x2x3xf32>
// CHECK: %[[R1:.*]] = nn.reshape %[[Y1]] : tensor<4x3xf32> -> tensor<2x1x2x3xf32>
// CHECK: %[[C:.*]] = nn.concat %[[R0]], %[[R1]] dim 1
// CHECK: %[[Y:.*]] = nn.reshape %[[C]] : tensor<2x2x2x3xf32> -> tensor<8x3xf32>
// CHECK: return %[[Y]]
func.func @main(%x: tensor<4x3xf32> {tp.batch = ["dp"], tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}, %m: tensor<3xf32>) -> tensor<4x3xf32> {
  %r = nn.module "a" class "A" (%x as "x" at 0) {
  ^bb0(%y: tensor<4x3xf32>):
    %0 = nn.mul %y, %m {tp.stage = 0 : i64} : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    nn.yield %0 : tensor<4x3xf32>
  } : (tensor<4x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 2
// expected-error@+1 {{result 1 can't be joined from the microbatches: its dimension 0 must count the examples, as the inputs' batch does, found 'tensor<f32>'}}
func.func @scalar(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
  %0 = nn.reduce sum %x dims [0] : tensor<4xf32> -> tensor<f32>
  return %x, %0 : tensor<4xf32>, tensor<f32>
}

// -----

// The model returns its input.
tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 2
// CHECK-LABEL: func.func @input
// CHECK: %[[X0:.*]] = nn.reshape {{.*}} tensor<1x1x4xf32> -> tensor<4xf32>
// CHECK: %[[X1:.*]] = nn.reshape {{.*}} tensor<1x1x4xf32> -> tensor<4xf32>
// CHECK: nn.reshape %[[X0]] : tensor<4xf32> -> tensor<1x1x4xf32>
// CHECK: nn.reshape %[[X1]] : tensor<4xf32> -> tensor<1x1x4xf32>
func.func @input(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// One microbatch is the batch.
tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
// CHECK-LABEL: func.func @one
// CHECK: nn.exp %{{.*}} {tp.pass = 0 : i64}
// CHECK-NEXT: return
func.func @one(%x: tensor<f32>) -> tensor<f32> {
  %0 = nn.exp %x : tensor<f32>
  return %0 : tensor<f32>
}
