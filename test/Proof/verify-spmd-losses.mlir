// A training step with loss_parallel is proven against the model, which doesn't say loss_parallel: masks, offsets, reductions and
// the gradient of each rank's classes. With any of them changed it isn't.
//
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-parallelize="plan=%t/plan.yaml train=%t/train.yaml" -o %t/ranks.mlir
// RUN: %python %S/Inputs/mutants.py %t/ranks.mlir "reference=%t/model.mlir train=%t/train.yaml" \
// RUN:   "compare ge" "compare gt" "compare lt" "compare le" "compare eq" "compare ne" "compare ne" "compare eq" \
// RUN:   "shard_offset of 16" "shard_offset of 8" "all_reduce max" "all_reduce sum" "all_reduce sum" "all_reduce max" \
// RUN:   "all_reduce (\w+ %\w+) over @mesh {tp}" "all_reduce \1 over @mesh {dp}" \
// RUN:   "start 1 step 1 : tensor<12x2xf32>" "start 0 step 1 : tensor<12x2xf32>" "logical_and" "logical_or" \
// RUN:   "dense<-100>" "dense<-99>" "dense<8> : tensor<i64>" "dense<7> : tensor<i64>" | FileCheck %s
// CHECK-NOT: proven with
// CHECK: {{[0-9]+}} mutants aren't proven

// So is a loss of the model's own.
// RUN: tp-opt %t/own.mlir --tp-parallelize=plan=%t/own.yaml -o %t/ranks.mlir
// RUN: %python %S/Inputs/mutants.py %t/ranks.mlir reference=%t/own.mlir \
// RUN:   "compare ge" "compare gt" "compare lt" "compare le" "shard_offset of 16" "shard_offset of 8" | FileCheck %s

//--- model.mlir
func.func @main(%x: tensor<4x6x4xf32> {tp.name = "x"}) -> tensor<4x6x16xf32> {
  %0 = nn.module "head" class "Linear" (%x as "input" at 0) {
  ^bb0(%a: tensor<4x6x4xf32>):
    %w = nn.parameter "head.weight" : tensor<16x4xf32>
    %y = nn.linear %a, %w : (tensor<4x6x4xf32>, tensor<16x4xf32>) -> tensor<4x6x16xf32>
    nn.yield %y : tensor<4x6x16xf32>
  } : (tensor<4x6x4xf32>) -> tensor<4x6x16xf32>
  return %0 : tensor<4x6x16xf32>
}

//--- train.yaml
{loss: cross_entropy, optimizer: SGD}

//--- plan.yaml
mesh: {dp: 2, tp: 2}
data_parallel: {dp: ddp}
loss_parallel: true
plan: {head: {style: ColwiseParallel, use_local_output: false}}

//--- own.mlir
func.func @main(%x: tensor<8x4xf32>, %t: tensor<8xi64>) -> tensor<f32> {
  %0 = nn.module "" class "Model" (%x as "x" at 0, %t as "target" at 1) {
  ^bb0(%a: tensor<8x4xf32>, %b: tensor<8xi64>):
    %1 = nn.module "head" class "Linear" (%a as "input" at 0) {
    ^bb0(%c: tensor<8x4xf32>):
      %w = nn.parameter "head.weight" : tensor<16x4xf32>
      %y = nn.linear %c, %w : (tensor<8x4xf32>, tensor<16x4xf32>) -> tensor<8x16xf32>
      nn.yield %y : tensor<8x16xf32>
    } : (tensor<8x4xf32>) -> tensor<8x16xf32>
    %l = nn.cross_entropy mean %1, %b ignore -100 smoothing 0.0 : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
    nn.yield %l : tensor<f32>
  } : (tensor<8x4xf32>, tensor<8xi64>) -> tensor<f32>
  return %0 : tensor<f32>
}

//--- own.yaml
mesh: {tp: 2}
loss_parallel: true
plan: {head: {style: ColwiseParallel, use_local_output: false}}
