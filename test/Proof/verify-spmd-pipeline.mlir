// A transfer is the identity on values: the programs of all stages are proven together, for what each of them returns.
// Microbatches that are mixed up, and values that go to or come from another stage than they should, are found.
//
// RUN: split-file %s %t && cd %t
// RUN: tp-opt model.mlir --tp-parallelize=plan=plan.yaml -o ranks.mlir
// RUN: tp-opt ranks.mlir --tp-verify-spmd=reference=model.mlir -o out.mlir 2>&1 | FileCheck %s --check-prefix=PROVEN
// RUN: tp-opt model.mlir --tp-parallelize="plan=plan.yaml train=train.yaml" -o train.mlir
// RUN: tp-opt train.mlir --tp-verify-spmd="reference=model.mlir train=train.yaml" -o out.mlir 2>&1 | FileCheck %s --check-prefix=PROVEN
// PROVEN: remark: 'main' is proven for 4 ranks
// PROVEN: remark: 'main' is proven for 4 ranks

// Microbatch 0 is sent twice.
// RUN: sed '0,/start 1 step 1/s//start 0 step 1/' ranks.mlir > twice.mlir
// RUN: not tp-opt twice.mlir --tp-verify-spmd="reference=model.mlir accept-tested" -o out.mlir 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: not proven

// The joined result has them in the wrong order.
// RUN: sed 's/nn.concat \(%[0-9]*\), \(%[0-9]*\) dim 1/nn.concat \2, \1 dim 1/' ranks.mlir > swapped.mlir
// RUN: not tp-opt swapped.mlir --tp-verify-spmd="reference=model.mlir accept-tested" -o out.mlir 2>&1 | FileCheck %s --check-prefix=WRONG

// A value goes the wrong way.
// RUN: sed '0,/from 0 to 1 over/s//from 1 to 0 over/;0,/tensor<2x4xf32> -> tensor<0x0xf32>/b' train.mlir > neighbor.mlir
// RUN: not tp-opt neighbor.mlir --tp-verify-spmd="reference=model.mlir train=train.yaml accept-tested" -o out.mlir 2>&1 | FileCheck %s --check-prefix=NEIGHBOR
// NEIGHBOR: error: 'tp.transfer' op receives a value, so its operand must be empty on rank 0

// The second stage receives one value less than it is sent, and computes with the first one twice.
// RUN: %python drop.py ranks.mlir > dropped.mlir
// RUN: not tp-opt dropped.mlir --tp-verify-spmd="reference=model.mlir accept-tested" -o out.mlir 2>&1 | FileCheck %s --check-prefix=DROPPED
// DROPPED: error: stage 0 sends a value that stage 1 doesn't receive

// The parameters are exchanged.
// RUN: sed 's/nn.parameter "net2.weight"/nn.parameter "net3.weight"/' ranks.mlir > weights.mlir
// RUN: not tp-opt weights.mlir --tp-verify-spmd="reference=model.mlir accept-tested" -o out.mlir 2>&1 | FileCheck %s --check-prefix=WEIGHTS
// WEIGHTS: error

//--- drop.py
import re, sys
text = open(sys.argv[1]).read()
head, tail = text.split("func.func @main_stage1")
starts = list(re.finditer(r"    (%\d+) = tp.start \{\n.*\n.*\n.*\n    (%\d+) = tp.wait .*\n", tail))
first, second = starts[0], starts[1]
rest = tail[: second.start()] + re.sub(rf"{second[2]}\b", first[2], tail[second.end():])
print(head + "func.func @main_stage1" + rest)

//--- plan.yaml
mesh: {pp: 2, tp: 2}
pipeline: {pp: {split: [net2], microbatches: 2}}
plan: {net1: ColwiseParallel}

//--- train.yaml
loss: mse
optimizer: {name: AdamW, lr: 0.1}
clip_grad_norm: 1.0

//--- model.mlir
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %h = nn.module "net1" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<2x4xf32>):
    %w = nn.parameter "net1.weight" : tensor<4x4xf32>
    %y = nn.linear %input, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    nn.yield %y : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %g = nn.relu %h : tensor<2x4xf32>
  %o = nn.module "net2" class "Linear" (%g as "input" at 0) {
  ^bb0(%input: tensor<2x4xf32>):
    %w = nn.parameter "net2.weight" : tensor<4x4xf32>
    %y = nn.linear %input, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    nn.yield %y : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %o : tensor<2x4xf32>
}
