// Dropout is a product with a mask that only step, seed and each element's index in the whole tensor decide; also where no gradient passes.
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-grad=train=%t/train.yaml | FileCheck %s

// CHECK: func.func @main(%[[X:.*]]: tensor<4x8xf32>
// CHECK: %[[STEP:.*]] = nn.parameter "optimizer.step" frozen : tensor<i64>
// CHECK: %[[COLUMN:.*]] = nn.iota dim 1 start 0.000000e+00 step 1.000000e+00 : tensor<1x8xi64>
// CHECK: %[[ROW:.*]] = nn.iota dim 0 start 0.000000e+00 step 8.000000e+00 : tensor<4x1xi64>
// CHECK: %[[INDEX:.*]] = nn.add %[[COLUMN]], %[[ROW]]
// CHECK: %[[STREAM:.*]] = nn.constant dense<0> : tensor<i64>
// CHECK: %[[RANDOM:.*]] = nn.random_uniform %[[STEP]], %[[INDEX]] stream %[[STREAM]] seed 7
// CHECK: %[[P:.*]] = nn.constant dense<5.000000e-01>
// CHECK: %[[KEPT:.*]] = nn.compare ge %[[RANDOM]], %[[P]]
// CHECK: %[[TWO:.*]] = nn.constant dense<2.000000e+00>
// CHECK: %[[SCALED:.*]] = nn.mul %[[X]], %[[TWO]]
// CHECK: %[[DROPPED:.*]] = nn.where %[[KEPT]], %[[SCALED]], %{{.*}}
// CHECK: %[[Y:.*]] = nn.linear %[[DROPPED]],
// A dropout of its own has numbers of its own, and its gradient has its mask.
// CHECK: %[[STREAM1:.*]] = nn.constant dense<1> : tensor<i64>
// CHECK: nn.random_uniform %[[STEP]], %{{.*}} stream %[[STREAM1]] seed 7
// CHECK: %[[KEPT1:.*]] = nn.compare ge
// CHECK: nn.mul %[[Y]],
// CHECK: nn.where %[[KEPT1]]
// CHECK: %[[G:.*]] = nn.where %[[KEPT1]]
// CHECK: nn.outer_sum %[[G]], %[[DROPPED]]
// CHECK-NOT: nn.dropout

//--- model.mlir
func.func @main(%x: tensor<4x8xf32> {tp.name = "x"}) -> tensor<4x6xf32> {
  %d = nn.dropout %x p 0.5 : tensor<4x8xf32>
  %w = nn.parameter "w" : tensor<6x8xf32>
  %0 = nn.linear %d, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %d1 = nn.dropout %0 p 0.25 : tensor<4x6xf32>
  return %d1 : tensor<4x6xf32>
}

//--- train.yaml
{loss: mse, optimizer: {name: SGD, lr: 0.1}, seed: 7}
