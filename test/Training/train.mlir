// A training step: the effect of each key of the training file.
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-grad=train=%t/sgd.yaml | FileCheck %t/sgd.yaml
// RUN: tp-opt %t/model.mlir --tp-grad=train=%t/momentum.yaml | FileCheck %t/momentum.yaml
// RUN: tp-opt %t/model.mlir --tp-grad=train=%t/dampening.yaml | FileCheck %t/dampening.yaml
// RUN: tp-opt %t/model.mlir --tp-grad=train=%t/amsgrad.yaml | FileCheck %t/amsgrad.yaml
// RUN: tp-opt %t/narrow.mlir --tp-grad=train=%t/narrow.yaml | FileCheck %t/narrow.yaml
// RUN: tp-opt %t/model.mlir --tp-grad=train=%t/adam.yaml | FileCheck %t/adam.yaml
// RUN: tp-opt %t/model.mlir --tp-grad=train=%t/adamw.yaml | FileCheck %t/adamw.yaml
// RUN: tp-opt %t/model.mlir --tp-grad=train=%t/schedule.json | FileCheck %s --check-prefix=SCHEDULE
// RUN: tp-opt %t/model.mlir --tp-grad=train=%t/clip.yaml | FileCheck %t/clip.yaml
// RUN: tp-opt %t/model.mlir --tp-grad=train=%t/checkpoint.yaml | FileCheck %t/checkpoint.yaml
// RUN: tp-opt %t/nested.mlir --tp-grad=train=%t/keep.yaml | FileCheck %t/keep.yaml
// RUN: tp-opt %t/model.mlir --tp-grad=train=%t/bf16.yaml | FileCheck %t/bf16.yaml
// RUN: tp-opt %t/model.mlir --tp-grad=train=%t/accumulate.yaml | FileCheck %t/accumulate.yaml
// RUN: tp-opt %t/table.mlir --tp-grad=train=%t/accumulate.yaml | FileCheck %t/table.mlir
// RUN: tp-opt %t/model.mlir --tp-grad=train=%t/frozen.yaml | FileCheck %t/frozen.yaml
// RUN: tp-opt %t/model.mlir --tp-grad=train=%t/classes.yaml | FileCheck %t/classes.yaml

//--- model.mlir
func.func @main(%x: tensor<4x8xf32> {tp.name = "x"}) -> tensor<4x6xf32> {
  %h = nn.module "up" class "Up" (%x as "input" at 0) {
  ^bb0(%a: tensor<4x8xf32>):
    %w = nn.parameter "up.weight" : tensor<8x8xf32>
    %y = nn.linear %a, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %r = nn.gelu %y : tensor<4x8xf32>
    nn.yield %r : tensor<4x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %0 = nn.module "down" class "Linear" (%h as "input" at 0) {
  ^bb0(%a: tensor<4x8xf32>):
    %w = nn.parameter "down.weight" : tensor<6x8xf32>
    %y = nn.linear %a, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
    nn.yield %y : tensor<4x6xf32>
  } : (tensor<4x8xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

//--- sgd.yaml
loss: {name: mse, reduction: sum}
optimizer: {name: SGD, lr: 0.25, weight_decay: 0.5}
# CHECK: func.func @main(%arg0: tensor<4x8xf32> {tp.name = "x"}, %[[TARGET:.*]]: tensor<4x6xf32> {tp.name = "target"})
# CHECK-SAME: -> (tensor<f32> {tp.name = "loss"}, tensor<f32> {tp.name = "lr"})
# CHECK: %[[STEP:.*]] = nn.parameter "optimizer.step" frozen : tensor<i64>
# CHECK: %[[W:.*]] = nn.parameter "up.weight"
# CHECK: %[[D:.*]] = nn.sub %{{.*}}, %[[TARGET]]
# CHECK: %[[SQUARE:.*]] = nn.mul %[[D]], %[[D]]
# CHECK: %[[LOSS:.*]] = nn.reduce sum %[[SQUARE]] dims [0, 1]
# CHECK: %[[G:.*]] = nn.outer_sum %{{.*}}, %arg0
# CHECK: nn.constant dense<2.500000e-01> : tensor<f64>
# CHECK: %[[DECAY:.*]] = nn.mul %[[W]],
# CHECK: %[[SUM:.*]] = nn.add %[[G]], %[[DECAY]]
# CHECK: %[[CHANGE:.*]] = nn.mul %[[SUM]],
# CHECK: %[[NEXT:.*]] = nn.sub %[[W]], %[[CHANGE]]
# CHECK: nn.assign "up.weight", %[[NEXT]] : tensor<8x8xf32>
# CHECK: nn.assign "down.weight",
# CHECK: %[[AFTER:.*]] = nn.add %[[STEP]],
# CHECK: nn.assign "optimizer.step", %[[AFTER]] init 0.000000e+00 : tensor<i64>
# CHECK: return %[[LOSS]],

//--- momentum.yaml
loss: mse
optimizer: {name: SGD, lr: 0.25, momentum: 0.9, nesterov: true}
# CHECK: nn.reduce mean
# CHECK: %[[V:.*]] = nn.parameter "optimizer.momentum_buffer.up.weight" frozen : tensor<8x8xf32>
# CHECK: %[[W1:.*]], %[[V1:.*]] = nn.sgd nesterov %{{.*}}, %{{.*}}, %[[V]] lr %{{.*}} momentum 9.000000e-01 weight_decay 0.000000e+00
# CHECK: nn.assign "up.weight", %[[W1]] : tensor<8x8xf32>
# CHECK: nn.assign "optimizer.momentum_buffer.up.weight", %[[V1]] init 0.000000e+00

//--- dampening.yaml
loss: mse
optimizer: {name: SGD, lr: 0.25, momentum: 0.9, dampening: 0.75, weight_decay: 0.5, maximize: true}
# The first step's velocity is the gradient.
# CHECK: %[[W:.*]] = nn.parameter "up.weight"
# CHECK: %[[G:.*]] = nn.outer_sum %{{.*}}, %arg0
# CHECK: %[[UP:.*]] = nn.neg %[[G]]
# CHECK: %[[FIRST:.*]] = nn.compare eq
# CHECK: %[[ONE:.*]] = nn.constant dense<1.000000e+00> : tensor<f64>
# CHECK: %[[REST:.*]] = nn.constant dense<2.500000e-01> : tensor<f64>
# CHECK: %[[SHARE:.*]] = nn.where %[[FIRST]], %[[ONE]], %[[REST]]
# CHECK: %[[SHARE32:.*]] = nn.cast %[[SHARE]]
# CHECK: %[[DECAY:.*]] = nn.mul %[[W]],
# CHECK: %[[SUM:.*]] = nn.add %[[UP]], %[[DECAY]]
# CHECK: %[[DAMPED:.*]] = nn.mul %[[SUM]], %[[SHARE32]]
# CHECK: nn.sgd %[[W]], %[[DAMPED]], %{{.*}} momentum 9.000000e-01 weight_decay 0.000000e+00

//--- amsgrad.yaml
loss: mse
optimizer: {name: Adam, amsgrad: true}
# CHECK: %[[X:.*]] = nn.parameter "optimizer.max_exp_avg_sq.up.weight" frozen : tensor<8x8xf32>
# CHECK: %[[W1:[^,]*]], %[[M1:[^,]*]], %[[S1:[^,]*]], %[[X1:[^,]*]] = nn.amsgrad %{{.*}}, %[[X]] lr
# CHECK: nn.assign "up.weight", %[[W1]]
# CHECK: nn.assign "optimizer.exp_avg.up.weight", %[[M1]] init 0.000000e+00
# CHECK: nn.assign "optimizer.exp_avg_sq.up.weight", %[[S1]] init 0.000000e+00
# CHECK: nn.assign "optimizer.max_exp_avg_sq.up.weight", %[[X1]] init 0.000000e+00

//--- narrow.mlir
func.func @main(%x: tensor<4x8xbf16>) -> tensor<4x6xbf16> {
  %w = nn.parameter "w" : tensor<6x8xbf16>
  %y = nn.linear %x, %w : (tensor<4x8xbf16>, tensor<6x8xbf16>) -> tensor<4x6xbf16>
  return %y : tensor<4x6xbf16>
}

//--- narrow.yaml
loss: mse
optimizer: {name: SGD, lr: 0.001}
# The rate of parameters in bf16 is in f32, and so is the update.
# CHECK: %[[W:.*]] = nn.parameter "w" : tensor<6x8xbf16>
# CHECK: %[[G:.*]] = nn.outer_sum
# CHECK: %[[LR:.*]] = nn.cast %{{.*}} : tensor<f64> -> tensor<f32>
# CHECK: %[[OLD:.*]] = nn.cast %[[W]] {{.*}}: tensor<6x8xbf16> -> tensor<6x8xf32>
# CHECK: %[[G32:.*]] = nn.cast %[[G]] {{.*}}: tensor<6x8xbf16> -> tensor<6x8xf32>
# CHECK: %[[CHANGE:.*]] = nn.mul %[[G32]], %{{.*}} {{.*}}: (tensor<6x8xf32>, tensor<f32>)
# CHECK: %[[NEW:.*]] = nn.sub %[[OLD]], %[[CHANGE]]
# CHECK: %[[NARROW:.*]] = nn.cast %[[NEW]] {{.*}}: tensor<6x8xf32> -> tensor<6x8xbf16>
# CHECK: nn.assign "w", %[[NARROW]]

//--- adam.yaml
loss: mse
optimizer: Adam
# PyTorch's defaults.
# CHECK: nn.constant dense<1.000000e-03> : tensor<f64>
# The corrections are 1 - beta^(t + 1), in f64, made once.
# CHECK: %[[POWER:.*]] = nn.pow
# CHECK: %[[C:.*]] = nn.sub %{{.*}}, %[[POWER]] : (tensor<f64>, tensor<f64>)
# CHECK: %[[C1:.*]] = nn.cast %[[C]] : tensor<f64> -> tensor<f32>
# CHECK: nn.pow
# CHECK-NOT: nn.pow
# CHECK: %[[W1:[^,]*]], %[[M1:[^,]*]], %[[S1:[^,]*]] = nn.adam %{{.*}} corrections %[[C1]], %{{.*}} betas 9.000000e-01, {{.*}} eps 1.000000e-08 weight_decay 0.000000e+00
# CHECK: nn.assign "up.weight", %[[W1]]
# CHECK: nn.assign "optimizer.exp_avg.up.weight", %[[M1]] init 0.000000e+00
# CHECK: nn.assign "optimizer.exp_avg_sq.up.weight", %[[S1]] init 0.000000e+00

//--- adamw.yaml
loss: mse
optimizer: {name: AdamW, betas: [0.5, 0.75], eps: 0.125, no_decay: [down]}
# CHECK: nn.adam decoupled {{.*}} betas 5.000000e-01, 7.500000e-01 eps 1.250000e-01 weight_decay 1.000000e-02 {tp.fqn = "up.weight"} : tensor<8x8xf32>
# CHECK: nn.adam decoupled {{.*}} weight_decay 0.000000e+00 {tp.fqn = "down.weight"} : tensor<6x8xf32>

//--- schedule.json
{"loss": "mse", "optimizer": {"name": "SGD", "lr": 0.5},
 "schedule": {"name": "cosine", "warmup_steps": 2, "total_steps": 10, "min_lr": 0.25}}

//--- clip.yaml
loss: mse
optimizer: {name: SGD, lr: 0.1}
clip_grad_norm: 0.5
# CHECK: tensor<f32> {tp.name = "grad_norm"})
# CHECK: %[[G0:.*]] = nn.outer_sum
# CHECK: %[[G1:.*]] = nn.outer_sum
# CHECK: %[[Q1:.*]] = nn.mul %[[G1]], %[[G1]]
# CHECK: nn.reduce sum %[[Q1]] dims [0, 1]
# CHECK: %[[Q0:.*]] = nn.mul %[[G0]], %[[G0]]
# CHECK: nn.reduce sum %[[Q0]] dims [0, 1]
# CHECK: %[[NORM:.*]] = nn.sqrt
# CHECK: nn.constant dense<5.000000e-01>
# CHECK: nn.constant dense<9.99999997E-7>
# CHECK: %[[MORE:.*]] = nn.add %[[NORM]],
# CHECK: %[[RATIO:.*]] = nn.div %{{.*}}, %[[MORE]]
# CHECK: %[[SCALE:.*]] = nn.minimum %[[RATIO]],
# CHECK: nn.mul %[[G1]], %[[SCALE]]
# CHECK: nn.mul %[[G0]], %[[SCALE]]
# CHECK: return %{{.*}}, %{{.*}}, %[[NORM]]

//--- checkpoint.yaml
loss: mse
optimizer: SGD
checkpoint: [up]
# Of the module's values only the input is kept.
# CHECK: %[[W:.*]] = nn.parameter "up.weight"
# CHECK: %[[Y:.*]] = nn.linear %arg0, %[[W]]
# CHECK: nn.gelu %[[Y]]
# CHECK: %[[X1:.*]] = nn.recompute %arg0 {tp.pass = 1 : i64} : tensor<4x8xf32>
# CHECK: %[[W1:.*]] = nn.recompute %[[W]] {tp.pass = 1 : i64} : tensor<8x8xf32>
# CHECK: %[[Y1:.*]] = nn.linear %[[X1]], %[[W1]]
# CHECK: %[[R1:.*]] = nn.gelu %[[Y1]]
# CHECK: nn.outer_sum %{{.*}}, %[[R1]]
# CHECK: nn.erf
# CHECK-NOT: %[[Y]]{{[ ,]}}
# CHECK: return

//--- nested.mlir
func.func @main(%x: tensor<4x8xf32> {tp.name = "x"}) -> tensor<4x8xf32> {
  %0 = nn.module "block" class "Block" (%x as "x" at 0) {
  ^bb0(%a: tensor<4x8xf32>):
    %e = nn.exp %a : tensor<4x8xf32>
    %1 = nn.module "block.up" class "Linear" (%e as "x" at 0) {
    ^bb0(%b: tensor<4x8xf32>):
      %w = nn.parameter "block.up.weight" : tensor<8x8xf32>
      %y = nn.linear %b, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      nn.yield %y : tensor<4x8xf32>
    } : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %r = nn.relu %1 : tensor<4x8xf32>
    nn.yield %r : tensor<4x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

//--- keep.yaml
loss: mse
optimizer: SGD
checkpoint: [block]
keep: [block.up]
# The product is kept; what it is computed from isn't.
# CHECK: %[[E:.*]] = nn.exp %arg0
# CHECK: %[[Y:.*]] = nn.linear %[[E]],
# CHECK: %[[X1:.*]] = nn.recompute %arg0 {tp.pass = 1 : i64} : tensor<4x8xf32>
# CHECK: %[[E1:.*]] = nn.exp %[[X1]]
# CHECK-NOT: nn.linear
# CHECK: nn.outer_sum %{{.*}}, %[[E1]]
# CHECK-NOT: %[[E]]{{[ ,]}}
# CHECK: return

//--- bf16.yaml
loss: mse
optimizer: {name: SGD, lr: 0.1}
compute: bf16
# The masters are f32, the passes bf16, the update f32 again.
# CHECK: %[[X:.*]] = nn.cast %arg0 : tensor<4x8xf32> -> tensor<4x8xbf16>
# CHECK: %[[W:.*]] = nn.parameter "up.weight" {{.*}}: tensor<8x8xf32>
# CHECK: %[[W16:.*]] = nn.cast %[[W]] : tensor<8x8xf32> -> tensor<8x8xbf16>
# CHECK: nn.linear %[[X]], %[[W16]] {{.*}}: (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
# CHECK: %[[G:.*]] = nn.outer_sum %{{.*}}, %[[X]] {{.*}}-> tensor<8x8xbf16>
# CHECK: %[[G32:.*]] = nn.cast %[[G]] {{.*}}: tensor<8x8xbf16> -> tensor<8x8xf32>
# CHECK: nn.mul %[[G32]],
# CHECK: nn.assign "up.weight", %{{.*}} : tensor<8x8xf32>

//--- accumulate.yaml
loss: mse
optimizer: {name: SGD, lr: 0.1}
accumulate: 2
# CHECK: func.func @main(%arg0: tensor<8x8xf32> {tp.name = "x"}, %arg1: tensor<8x6xf32> {tp.name = "target"})
# CHECK: nn.slice %{{.*}} start 0 step 1 : tensor<1x2x4x8xf32> -> tensor<1x1x4x8xf32>
# CHECK: %[[FIRST:.*]] = nn.outer_sum {{.*}} -> tensor<8x8xf32>
# CHECK: nn.slice %{{.*}} start 1 step 1 : tensor<1x2x4x8xf32> -> tensor<1x1x4x8xf32>
# CHECK: %[[SECOND:.*]] = nn.outer_sum {{.*}} -> tensor<8x8xf32>
# CHECK: %[[SUM:.*]] = nn.add %[[FIRST]], %[[SECOND]]
# CHECK: %[[MEAN:.*]] = nn.mul %[[SUM]],
# CHECK: nn.mul %[[MEAN]],
# CHECK: nn.assign "up.weight"

//--- table.mlir
// Every part takes all of a table that isn't as large as the batch.
// CHECK: func.func @main(%arg0: tensor<8x8xf32>, %[[TABLE:.*]]: tensor<8xf32>, %arg2: tensor<8x8xf32> {tp.name = "target"})
// CHECK-COUNT-2: nn.add %{{.*}}, %[[TABLE]]
func.func @main(%x: tensor<4x8xf32>, %table: tensor<8xf32>) -> tensor<4x8xf32> {
  %w = nn.parameter "up.weight" : tensor<8x8xf32>
  %y = nn.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %z = nn.add %y, %table : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

//--- frozen.yaml
loss: mse
optimizer: SGD
frozen: [up]
# CHECK-NOT: nn.assign "up.weight"
# CHECK: nn.assign "down.weight"
# CHECK-NOT: nn.assign "up.weight"

//--- classes.yaml
loss: {name: cross_entropy, reduction: sum, class_dim: 0, ignore_index: 3, weight: [1, 1, 2, 1]}
optimizer: SGD
# The dimension of the classes comes second.
# CHECK: tensor<6xi64> {tp.name = "target"}
# CHECK: %[[T:.*]] = nn.transpose %{{.*}} [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
# CHECK: nn.constant dense<[1.000000e+00, 1.000000e+00, 2.000000e+00, 1.000000e+00]>
# CHECK: nn.constant dense<3> : tensor<i64>
# CHECK: nn.reduce max %[[T]] dims [1] keepdim

//--- checks
// SCHEDULE: %[[STEP:.*]] = nn.parameter "optimizer.step"
// SCHEDULE: %[[TIME:.*]] = nn.cast %[[STEP]] : tensor<i64> -> tensor<f64>
// SCHEDULE: nn.constant dense<-2.000000e+00> : tensor<f64>
// SCHEDULE: %[[AFTER:.*]] = nn.add %[[TIME]],
// SCHEDULE: nn.constant dense<1.250000e-01> : tensor<f64>
// SCHEDULE: nn.mul %[[AFTER]],
// SCHEDULE: nn.minimum
// SCHEDULE: nn.cos
// SCHEDULE: %[[RATE:.*]] = nn.add
// SCHEDULE: nn.constant dense<2.500000e-01> : tensor<f64>
// SCHEDULE: %[[RISING:.*]] = nn.mul %[[TIME]],
// SCHEDULE: %[[EARLY:.*]] = nn.compare lt %[[TIME]],
// SCHEDULE: %[[LR:.*]] = nn.where %[[EARLY]], %[[RISING]], %{{.*}}
