// Scalars are the same on all ranks; a plan places tensors alone.
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/plan.yaml -o /dev/null 2>&1 | count 0

//--- model.mlir
func.func @main(%x: tensor<8x10xf32>) -> (tensor<8x10xf32>, index) {
  %zero = arith.constant 0 : index
  %sum = arith.addi %zero, %zero : index
  %r = nn.module "" class "MLP" (%x as "x" at 0) {
  ^bb0(%a: tensor<8x10xf32>):
    %h = nn.module "net1" class "Linear" (%a as "input" at 0) {
    ^bb0(%input: tensor<8x10xf32>):
      %w = nn.parameter "net1.weight" : tensor<16x10xf32>
      %y = nn.linear %input, %w : (tensor<8x10xf32>, tensor<16x10xf32>) -> tensor<8x16xf32>
      nn.yield %y : tensor<8x16xf32>
    } : (tensor<8x10xf32>) -> tensor<8x16xf32>
    %o = nn.module "net2" class "Linear" (%h as "input" at 0) {
    ^bb0(%input: tensor<8x16xf32>):
      %w = nn.parameter "net2.weight" : tensor<10x16xf32>
      %y = nn.linear %input, %w : (tensor<8x16xf32>, tensor<10x16xf32>) -> tensor<8x10xf32>
      nn.yield %y : tensor<8x10xf32>
    } : (tensor<8x16xf32>) -> tensor<8x10xf32>
    nn.yield %o : tensor<8x10xf32>
  } : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return %r, %sum : tensor<8x10xf32>, index
}

//--- plan.yaml
mesh: {tp: 2}
plan:
  net1: ColwiseParallel
  net2: RowwiseParallel
