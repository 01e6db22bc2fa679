// All errors of a training file are reported, with line and column.
// RUN: split-file %s %t
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/list.yaml -o %t/out.mlir 2>&1 | FileCheck %t/list.yaml
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/missing.yaml -o %t/out.mlir 2>&1 | FileCheck %t/missing.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/keys.yaml -o %t/out.mlir 2>&1 | FileCheck %t/keys.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/names.yaml -o %t/out.mlir 2>&1 | FileCheck %t/names.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/maps.yaml -o %t/out.mlir 2>&1 | FileCheck %t/maps.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/nameless.yaml -o %t/out.mlir 2>&1 | FileCheck %t/nameless.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/cross-entropy.yaml -o %t/out.mlir 2>&1 | FileCheck %t/cross-entropy.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/output.yaml -o %t/out.mlir 2>&1 | FileCheck %t/output.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/mse.yaml -o %t/out.mlir 2>&1 | FileCheck %t/mse.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/sgd.yaml -o %t/out.mlir 2>&1 | FileCheck %t/sgd.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/adam.yaml -o %t/out.mlir 2>&1 | FileCheck %t/adam.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/betas.yaml -o %t/out.mlir 2>&1 | FileCheck %t/betas.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/cosine.yaml -o %t/out.mlir 2>&1 | FileCheck %t/cosine.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/total.yaml -o %t/out.mlir 2>&1 | FileCheck %t/total.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/patterns.yaml -o %t/out.mlir 2>&1 | FileCheck %t/patterns.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/keep.yaml -o %t/out.mlir 2>&1 | FileCheck %t/keep.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/weights.yaml -o %t/out.mlir 2>&1 | FileCheck %t/weights.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/classes.yaml -o %t/out.mlir 2>&1 | FileCheck %t/classes.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/result.yaml -o %t/out.mlir 2>&1 | FileCheck %t/result.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/everything.yaml -o %t/out.mlir 2>&1 | FileCheck %t/everything.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-grad=train=%t/absent.yaml -o %t/out.mlir 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not tp-opt %t/model.mlir --tp-parallelize=train=%t/absent.yaml -o %t/out.mlir 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not ls %t/out.mlir
// ABSENT: absent.yaml:1:1: error: can't read the training file '{{.*}}absent.yaml': No such file or directory

//--- model.mlir
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x6xf32> {
  %0 = nn.module "proj" class "Linear" (%x as "input" at 0) {
  ^bb0(%a: tensor<4x8xf32>):
    %w = nn.parameter "proj.weight" : tensor<6x8xf32>
    %y = nn.linear %a, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
    nn.yield %y : tensor<4x6xf32>
  } : (tensor<4x8xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

//--- list.yaml
# CHECK: list.yaml:1:1: error: a training file is a map with the keys 'loss' and 'optimizer', found a list
- mse

//--- missing.yaml
seed: 1
# CHECK: missing.yaml:1:1: error: key 'loss' is missing: cross_entropy, mse, or output, where the model's result is the loss
# CHECK: missing.yaml:1:1: error: key 'optimizer' is missing: SGD, Adam or AdamW

//--- keys.yaml
loss: mse
optimizer: SGD
# CHECK: keys.yaml:[[#@LINE+1]]:17: error: clip_grad_norm must be a number above 0, found '0'
clip_grad_norm: 0
# CHECK: keys.yaml:[[#@LINE+1]]:13: error: accumulate must be an integer from 1 to 1024, found '0'
accumulate: 0
# CHECK: keys.yaml:[[#@LINE+1]]:10: error: compute must be f32, bf16 or f16, found 'f64'
compute: f64
# CHECK: keys.yaml:[[#@LINE+1]]:13: error: checkpoint must be a list of patterns, found 'proj'
checkpoint: proj
# CHECK: keys.yaml:[[#@LINE+1]]:1: error: a pattern is a string, found a map
frozen: [{proj: 1}]
# CHECK: keys.yaml:[[#@LINE+1]]:7: error: seed must be an integer from 0 to 4294967295, found '4294967296'
seed: 4294967296

//--- names.yaml
# CHECK: names.yaml:[[#@LINE+1]]:7: error: loss must be cross_entropy, mse or output, found 'l1'
loss: l1
# CHECK: names.yaml:[[#@LINE+1]]:19: error: optimizer must be SGD, Adam or AdamW, found 'Lion'
optimizer: {name: Lion}
# CHECK: names.yaml:[[#@LINE+1]]:11: error: schedule must be constant or cosine, found 'linear'
schedule: linear

//--- maps.yaml
# CHECK: maps.yaml:[[#@LINE+1]]:1: error: unknown key 'epochs'; keys are loss, optimizer, schedule, clip_grad_norm, accumulate, compute, checkpoint, keep, frozen, seed
epochs: 3
# CHECK: maps.yaml:[[#@LINE+1]]:1: error: loss must be a name, or a map with the key 'name', found a list
loss: [mse]
# CHECK: maps.yaml:[[#@LINE+1]]:1: error: optimizer must be a name, or a map with the key 'name', found a list
optimizer: [SGD]

//--- nameless.yaml
# CHECK: nameless.yaml:[[#@LINE+1]]:1: error: key 'name' is missing
loss: {reduction: sum}
# CHECK: nameless.yaml:[[#@LINE+1]]:1: error: key 'name' is missing
optimizer: {lr: 1}

//--- cross-entropy.yaml
loss:
  name: cross_entropy
# CHECK: :[[#@LINE+1]]:11: error: output must be an integer of at least 0, found '-1'
  output: -1
# CHECK: :[[#@LINE+1]]:14: error: reduction must be mean or sum, found 'none'
  reduction: none
# CHECK: :[[#@LINE+1]]:17: error: ignore_index must be an integer, found 'first'
  ignore_index: first
# CHECK: :[[#@LINE+1]]:20: error: label_smoothing must be a number from 0 to 1, found '1.5'
  label_smoothing: 1.5
# CHECK: :[[#@LINE+1]]:14: error: class_dim must be an integer, found 'last'
  class_dim: last
# CHECK: :[[#@LINE+1]]:11: error: weight must be a list with a number for each class, found '1'
  weight: 1
optimizer: SGD

//--- output.yaml
# CHECK-DAG: :[[#@LINE+2]]:22: error: 'reduction' is for cross_entropy and mse
# CHECK-DAG: :[[#@LINE+1]]:38: error: 'class_dim' is for cross_entropy
loss: {name: output, reduction: sum, class_dim: 1}
optimizer: SGD

//--- mse.yaml
# CHECK-DAG: :[[#@LINE+3]]:19: error: 'weight' is for cross_entropy
# CHECK-DAG: :[[#@LINE+2]]:32: error: 'ignore_index' is for cross_entropy
# CHECK-DAG: :[[#@LINE+1]]:49: error: 'label_smoothing' is for cross_entropy
loss: {name: mse, weight: [1], ignore_index: 0, label_smoothing: 0.1}
optimizer: SGD

//--- sgd.yaml
loss: mse
optimizer:
  name: SGD
# CHECK-DAG: :[[#@LINE+1]]:7: error: lr must be a number of at least 0, found '-1'
  lr: -1
# CHECK-DAG: :[[#@LINE+1]]:3: error: 'betas' is for Adam and AdamW
  betas: [0.9, 0.99]
# CHECK-DAG: :[[#@LINE+1]]:3: error: 'eps' is for Adam and AdamW
  eps: 0.1
# CHECK-DAG: :[[#@LINE+1]]:3: error: 'amsgrad' is for Adam and AdamW
  amsgrad: true
# CHECK-DAG: :[[#@LINE+1]]:14: error: dampening must be a number from 0 to 1, found '1.5'
  dampening: 1.5
# CHECK-DAG: :[[#@LINE+1]]:13: error: nesterov needs a momentum, and no dampening
  nesterov: true
# CHECK-DAG: :[[#@LINE+1]]:13: error: maximize must be true or false, found '1'
  maximize: 1
# CHECK-DAG: :[[#@LINE+1]]:17: error: weight_decay must be a number of at least 0, found 'nan'
  weight_decay: nan

//--- adam.yaml
loss: mse
optimizer:
  name: AdamW
# CHECK-DAG: :[[#@LINE+1]]:3: error: 'momentum' is for SGD
  momentum: 0.9
# CHECK-DAG: :[[#@LINE+1]]:3: error: 'nesterov' is for SGD
  nesterov: false
# CHECK-DAG: :[[#@LINE+1]]:3: error: 'dampening' is for SGD
  dampening: 0
# CHECK-DAG: :[[#@LINE+1]]:3: error: betas must be a list of two numbers, found one of 1
  betas: [0.9]
# CHECK-DAG: :[[#@LINE+1]]:8: error: eps must be a number of at least 0, found 'tiny'
  eps: tiny

//--- betas.yaml
loss: mse
# CHECK-DAG: :[[#@LINE+2]]:33: error: a beta must be below 1
# CHECK-DAG: :[[#@LINE+1]]:36: error: a beta must be a number from 0 to 1, found '2'
optimizer: {name: Adam, betas: [1, 2]}

//--- cosine.yaml
loss: mse
optimizer: Adam
# CHECK-DAG: :[[#@LINE+3]]:28: error: 'total_steps' is for cosine
# CHECK-DAG: :[[#@LINE+2]]:44: error: 'min_lr' is for cosine
# CHECK-DAG: :[[#@LINE+1]]:69: error: warmup_steps must be an integer of at least 0, found '-2'
schedule: {name: constant, total_steps: 3, min_lr: 0, warmup_steps: -2}

//--- total.yaml
loss: mse
optimizer: Adam
# CHECK: :[[#@LINE+1]]:1: error: a cosine needs 'total_steps', at which it ends
schedule: {name: cosine, warmup_steps: 3}

//--- patterns.yaml
loss: mse
# CHECK-DAG: :[[#@LINE+1]]:36: error: no_decay: pattern 'norm' matches no parameter: the model has the parameters 'proj.weight'
optimizer: {name: Adam, no_decay: [norm]}
# CHECK-DAG: :[[#@LINE+1]]:10: error: frozen: pattern 'prj.weight' matches no parameter: did you mean 'proj.weight'?
frozen: [prj.weight]
# CHECK-DAG: :[[#@LINE+1]]:14: error: checkpoint: pattern 'pro' matches no module: no submodule 'pro' in the root module; did you mean 'proj'?
checkpoint: [pro]
# CHECK-DAG: :[[#@LINE+1]]:8: error: keep: pattern 'proj.x' matches no module: 'proj' has no submodules
keep: [proj.x]

//--- keep.yaml
loss: mse
optimizer: SGD
# CHECK: :[[#@LINE+1]]:8: error: keep: pattern 'proj' matches no module that 'checkpoint' matches, nor one inside of these
keep: [proj]

//--- weights.yaml
# CHECK: weights.yaml:[[#@LINE+2]]:29: error: the loss has 2 weights for 6 classes
# CHECK: model.mlir:1:1: note: the model is here
loss: {name: cross_entropy, weight: [1, 2]}
optimizer: Adam

//--- classes.yaml
# CHECK: classes.yaml:[[#@LINE+1]]:40: error: class_dim 2 isn't a dimension of the logits, 'tensor<4x6xf32>'
loss: {name: cross_entropy, class_dim: 2}
optimizer: Adam

//--- result.yaml
# CHECK: result.yaml:[[#@LINE+1]]:27: error: the loss is of result 1, but '@main' has 1 results
loss: {name: mse, output: 1}
optimizer: Adam

//--- everything.yaml
loss: mse
optimizer: Adam
# CHECK: model.mlir:1:1: error: there is nothing to differentiate with respect to: every parameter is frozen
frozen: ["*"]
