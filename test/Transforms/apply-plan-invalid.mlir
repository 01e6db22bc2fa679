// Errors in the options of the pass, not in the plan.
// RUN: split-file %s %t
// RUN: not tp-opt %t/model.mlir --tp-apply-plan 2>&1 | FileCheck %t/none.check
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/missing.yaml 2>&1 | FileCheck %t/missing.check
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/mlp.yaml --tp-apply-plan=plan=%t/mlp.yaml 2>&1 | FileCheck %t/twice.check

//--- model.mlir
func.func @main(%x: tensor<8x10xf32>) -> tensor<8x10xf32> {
  %r = nn.module "" class "MLP" (%x as "x" at 0) {
  ^bb0(%a: tensor<8x10xf32>):
    %h = nn.module "net1" class "Linear" (%a as "input" at 0) {
    ^bb0(%input: tensor<8x10xf32>):
      %w = nn.parameter "net1.weight" : tensor<16x10xf32>
      %b = nn.parameter "net1.bias" : tensor<16xf32>
      %y = nn.linear %input, %w : (tensor<8x10xf32>, tensor<16x10xf32>) -> tensor<8x16xf32>
      %z = nn.add %y, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
      nn.yield %z : tensor<8x16xf32>
    } : (tensor<8x10xf32>) -> tensor<8x16xf32>
    %g = nn.relu %h : tensor<8x16xf32>
    %o = nn.module "net2" class "Linear" (%g as "input" at 0) {
    ^bb0(%input: tensor<8x16xf32>):
      %w = nn.parameter "net2.weight" : tensor<10x16xf32>
      %b = nn.parameter "net2.bias" : tensor<10xf32>
      %y = nn.linear %input, %w : (tensor<8x16xf32>, tensor<10x16xf32>) -> tensor<8x10xf32>
      %z = nn.add %y, %b : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
      nn.yield %z : tensor<8x10xf32>
    } : (tensor<8x16xf32>) -> tensor<8x10xf32>
    nn.yield %o : tensor<8x10xf32>
  } : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return %r : tensor<8x10xf32>
}

//--- none.check
CHECK: error: tp-apply-plan needs the option plan=FILE

//--- missing.check
CHECK: missing.yaml:1:1: error: can't read the plan '{{.*}}missing.yaml': No such file or directory

//--- twice.check
CHECK: error: the model has been given a plan before
CHECK: note: its mesh is declared here

//--- mlp.yaml
mesh: {tp: 2}
plan: {net1: ColwiseParallel}
