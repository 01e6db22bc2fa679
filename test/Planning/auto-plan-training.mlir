// Norms are split along the sequence, and blocks are computed again for the backward pass.

// RUN: rm -rf %t && mkdir %t && echo 'loss: mse' > %t/train.yaml && echo 'optimizer: SGD' >> %t/train.yaml

// Splitting norms along the sequence saves time.
// RUN: sed 's/tensor<16x/tensor<1x/g' %s > %t/one.mlir
// RUN: tp-opt %t/one.mlir --tp-auto-plan="mesh=tp=4 machine=cpu file=%t/plan.yaml"
// RUN: FileCheck %s --check-prefix=SEQUENCE < %t/plan.yaml
// RUN: tp-opt %t/one.mlir --tp-parallelize=plan=%t/plan.yaml -o %t/ranks.mlir
// RUN: tp-opt %t/ranks.mlir --tp-verify-spmd=reference=%t/one.mlir -o /dev/null
// SEQUENCE: layers.*.norm: SequenceParallel

// With enough memory, nothing is computed again. `train-file` is then the training file itself.
// RUN: tp-opt %s --tp-auto-plan="mesh=dp=2 machine=cpu train=%t/train.yaml train-file=%t/same.yaml" | FileCheck %s --check-prefix=KEEP
// RUN: diff %t/train.yaml %t/same.yaml
// KEEP-NOT: checkpoint

// With less, the blocks are. The plan and the training file that are written are a program that fits, and that is proven.
// RUN: tp-opt %s --tp-auto-plan="mesh=dp=2 machine=cpu memory-limit=7000000 train=%t/train.yaml train-file=%t/again.yaml file=%t/again-plan.yaml"
// RUN: FileCheck %s --check-prefix=AGAIN < %t/again-plan.yaml
// RUN: FileCheck %s --check-prefix=FILE < %t/again.yaml
// RUN: tp-opt %s --tp-parallelize="plan=%t/again-plan.yaml train=%t/again.yaml" -o %t/step.mlir
// RUN: tp-opt %t/step.mlir --tp-verify-spmd="reference=%s train=%t/again.yaml" -o /dev/null
// AGAIN:      # the training file also needs:
// AGAIN-NEXT: # checkpoint: ["layers.*"]
// FILE:      optimizer: SGD
// FILE-NEXT: checkpoint: ["layers.*"]

// The same for a file in JSON.
// RUN: echo '{"loss": "mse", "optimizer": "SGD"}' > %t/train.json
// RUN: tp-opt %s --tp-auto-plan="mesh=dp=2 machine=cpu memory-limit=7000000 train=%t/train.json train-file=%t/again.json file=%t/json-plan.yaml"
// RUN: FileCheck %s --check-prefix=JSON < %t/again.json
// JSON: {"checkpoint": ["layers.*"]{{.*}},"loss": "mse", "optimizer": "SGD"}

// What the training file says isn't changed.
// RUN: cp %t/train.yaml %t/fixed.yaml && echo 'checkpoint: ["layers.0"]' >> %t/fixed.yaml
// RUN: tp-opt %s --tp-auto-plan="mesh=dp=2 machine=cpu train=%t/fixed.yaml train-file=%t/unchanged.yaml" | FileCheck %s --check-prefix=KEEP
// RUN: diff %t/fixed.yaml %t/unchanged.yaml

// RUN: not tp-opt %s --tp-auto-plan="mesh=dp=2 machine=cpu memory-limit=1000 train=%t/train.yaml" 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: not tp-opt %s --tp-auto-plan="mesh=dp=2 machine=cpu train-file=%t/none.yaml" 2>&1 | FileCheck %s --check-prefix=TRAIN
// LIMIT: error: no plan fits: the memory limit is 1000 bytes per rank, and the plan that needs the least (dp=2 {{.*}} recomputation) needs {{[0-9]+}}; the largest value there is {{an activation, the result of [a-z_]+ in 'layers.*'}}, of {{[0-9]+}} bytes
// TRAIN: error: the option 'train-file' needs the option 'train'

func.func @main(%x: tensor<16x64x128xf32> {tp.name = "x"}) -> (tensor<16x64x128xf32> {tp.name = "y"}) {
  %l0 = nn.module "layers.0" class "Block" (%x as "x" at 0) {
  ^bb0(%a: tensor<16x64x128xf32>):
    %0 = nn.module "layers.0.norm" class "LayerNorm" (%a as "input" at 0) {
    ^bb0(%in: tensor<16x64x128xf32>):
      %w = nn.parameter "layers.0.norm.weight" : tensor<128xf32>
      %b = nn.parameter "layers.0.norm.bias" : tensor<128xf32>
      %y = nn.layer_norm %in weight %w bias %b over 1 eps 1.0e-5 : (tensor<16x64x128xf32>, tensor<128xf32>, tensor<128xf32>) -> tensor<16x64x128xf32>
      nn.yield %y : tensor<16x64x128xf32>
    } : (tensor<16x64x128xf32>) -> tensor<16x64x128xf32>
    %1 = nn.module "layers.0.up" class "Linear" (%0 as "input" at 0) {
    ^bb0(%in: tensor<16x64x128xf32>):
      %w = nn.parameter "layers.0.up.weight" : tensor<512x128xf32>
      %y = nn.linear %in, %w : (tensor<16x64x128xf32>, tensor<512x128xf32>) -> tensor<16x64x512xf32>
      nn.yield %y : tensor<16x64x512xf32>
    } : (tensor<16x64x128xf32>) -> tensor<16x64x512xf32>
    %2 = nn.gelu %1 : tensor<16x64x512xf32>
    %3 = nn.module "layers.0.down" class "Linear" (%2 as "input" at 0) {
    ^bb0(%in: tensor<16x64x512xf32>):
      %w = nn.parameter "layers.0.down.weight" : tensor<128x512xf32>
      %y = nn.linear %in, %w : (tensor<16x64x512xf32>, tensor<128x512xf32>) -> tensor<16x64x128xf32>
      nn.yield %y : tensor<16x64x128xf32>
    } : (tensor<16x64x512xf32>) -> tensor<16x64x128xf32>
    %4 = nn.add %a, %3 : (tensor<16x64x128xf32>, tensor<16x64x128xf32>) -> tensor<16x64x128xf32>
    nn.yield %4 : tensor<16x64x128xf32>
  } : (tensor<16x64x128xf32>) -> tensor<16x64x128xf32>
  %l1 = nn.module "layers.1" class "Block" (%l0 as "x" at 0) {
  ^bb0(%a: tensor<16x64x128xf32>):
    %0 = nn.module "layers.1.norm" class "LayerNorm" (%a as "input" at 0) {
    ^bb0(%in: tensor<16x64x128xf32>):
      %w = nn.parameter "layers.1.norm.weight" : tensor<128xf32>
      %b = nn.parameter "layers.1.norm.bias" : tensor<128xf32>
      %y = nn.layer_norm %in weight %w bias %b over 1 eps 1.0e-5 : (tensor<16x64x128xf32>, tensor<128xf32>, tensor<128xf32>) -> tensor<16x64x128xf32>
      nn.yield %y : tensor<16x64x128xf32>
    } : (tensor<16x64x128xf32>) -> tensor<16x64x128xf32>
    %1 = nn.module "layers.1.up" class "Linear" (%0 as "input" at 0) {
    ^bb0(%in: tensor<16x64x128xf32>):
      %w = nn.parameter "layers.1.up.weight" : tensor<512x128xf32>
      %y = nn.linear %in, %w : (tensor<16x64x128xf32>, tensor<512x128xf32>) -> tensor<16x64x512xf32>
      nn.yield %y : tensor<16x64x512xf32>
    } : (tensor<16x64x128xf32>) -> tensor<16x64x512xf32>
    %2 = nn.gelu %1 : tensor<16x64x512xf32>
    %3 = nn.module "layers.1.down" class "Linear" (%2 as "input" at 0) {
    ^bb0(%in: tensor<16x64x512xf32>):
      %w = nn.parameter "layers.1.down.weight" : tensor<128x512xf32>
      %y = nn.linear %in, %w : (tensor<16x64x512xf32>, tensor<128x512xf32>) -> tensor<16x64x128xf32>
      nn.yield %y : tensor<16x64x128xf32>
    } : (tensor<16x64x512xf32>) -> tensor<16x64x128xf32>
    %4 = nn.add %a, %3 : (tensor<16x64x128xf32>, tensor<16x64x128xf32>) -> tensor<16x64x128xf32>
    nn.yield %4 : tensor<16x64x128xf32>
  } : (tensor<16x64x128xf32>) -> tensor<16x64x128xf32>
  return %l1 : tensor<16x64x128xf32>
}
