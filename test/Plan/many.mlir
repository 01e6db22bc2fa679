// A problem of many modules is reported once.
// RUN: split-file %s %t
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/many.yaml -o %t/out.mlir 2>&1 | FileCheck %t/many.yaml --implicit-check-not=error:

//--- model.mlir
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r0 = nn.module "layers.0" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<4x6xf32>):
    %w = nn.parameter "layers.0.weight" : tensor<6x6xf32>
    %y = nn.linear %input, %w : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
    nn.yield %y : tensor<4x6xf32>
  } : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %r1 = nn.module "layers.1" class "Linear" (%r0 as "input" at 0) {
  ^bb0(%input: tensor<4x6xf32>):
    %w = nn.parameter "layers.1.weight" : tensor<6x6xf32>
    %y = nn.linear %input, %w : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
    nn.yield %y : tensor<4x6xf32>
  } : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %r2 = nn.module "layers.2" class "Linear" (%r1 as "input" at 0) {
  ^bb0(%input: tensor<4x6xf32>):
    %w = nn.parameter "layers.2.weight" : tensor<6x6xf32>
    %y = nn.linear %input, %w : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
    nn.yield %y : tensor<4x6xf32>
  } : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r2 : tensor<4x6xf32>
}

//--- many.yaml
mesh: {tp: 4}
plan:
# CHECK: :[[#@LINE+2]]:38: error: Shard(2) is out of range for output 0 of 'layers.0', which has 2 dimensions
# CHECK: :[[#@LINE+1]]:3: note: the pattern matches 2 more modules that can't have this style, such as 'layers.1'
  layers.*: {style: ColwiseParallel, output_layouts: Shard(2)}
