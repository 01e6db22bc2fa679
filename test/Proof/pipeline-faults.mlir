// Faults that are planted in the programs of stages, for each schedule: every one of them is refused. The first and the last
// module have one weight, so two stages exchange their gradients.
// RUN: split-file %s %t && cd %t
// RUN: tp-opt model.mlir --tp-parallelize="plan=1F1B.yaml train=train.yaml" -o 1F1B.mlir
// RUN: %python %S/Inputs/pipeline_faults.py 1F1B.mlir "reference=model.mlir train=train.yaml" | FileCheck %s
// RUN: tp-opt model.mlir --tp-parallelize="plan=interleaved.yaml train=train.yaml" -o interleaved.mlir
// RUN: %python %S/Inputs/pipeline_faults.py interleaved.mlir "reference=model.mlir train=train.yaml" | FileCheck %s
// RUN: tp-opt model.mlir --tp-parallelize="plan=zero.yaml train=train.yaml" -o zero.mlir
// RUN: %python %S/Inputs/pipeline_faults.py zero.mlir "reference=model.mlir train=train.yaml" | FileCheck %s
// CHECK: neighbor: {{[1-9][0-9]*}} faults are refused
// CHECK: microbatch: {{[1-9][0-9]*}} faults are refused
// CHECK: sum: {{[1-9][0-9]*}} faults are refused

//--- 1F1B.yaml
mesh: {pp: 3}
pipeline: {pp: {split: [layers.1, layers.2], microbatches: 2}}

//--- interleaved.yaml
mesh: {pp: 2}
pipeline: {pp: {split: [layers.1, layers.2, layers.3], schedule: Interleaved1F1B, microbatches: 2}}

//--- zero.yaml
mesh: {pp: 2}
pipeline: {pp: {split: [layers.2], schedule: InterleavedZeroBubble, microbatches: 2}}

//--- train.yaml
loss: mse
optimizer: {name: SGD, lr: 0.5}

//--- model.mlir
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = nn.module "layers.0" class "Layer" (%x as "input" at 0) {
  ^bb0(%input: tensor<2x4xf32>):
    %w = nn.parameter "layers.0.weight" : tensor<4x4xf32>
    %y = nn.linear %input, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %z = nn.relu %y : tensor<2x4xf32>
    nn.yield %z : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = nn.module "layers.1" class "Layer" (%0 as "input" at 0) {
  ^bb0(%input: tensor<2x4xf32>):
    %w = nn.parameter "layers.1.weight" : tensor<4x4xf32>
    %y = nn.linear %input, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %z = nn.relu %y : tensor<2x4xf32>
    nn.yield %z : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = nn.module "layers.2" class "Layer" (%1 as "input" at 0) {
  ^bb0(%input: tensor<2x4xf32>):
    %w = nn.parameter "layers.2.weight" : tensor<4x4xf32>
    %y = nn.linear %input, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %z = nn.relu %y : tensor<2x4xf32>
    nn.yield %z : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = nn.module "layers.3" class "Layer" (%2 as "input" at 0) {
  ^bb0(%input: tensor<2x4xf32>):
    %w = nn.parameter "layers.0.weight" : tensor<4x4xf32>
    %y = nn.linear %input, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %z = nn.relu %y : tensor<2x4xf32>
    nn.yield %z : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %3 : tensor<2x4xf32>
}
