// Layouts that don't fit the tensors that they are for.
// RUN: split-file %s %t
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/count.yaml -o %t/out.mlir 2>&1 | FileCheck %t/count.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/keyword.yaml -o %t/out.mlir 2>&1 | FileCheck %t/keyword.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/range.yaml -o %t/out.mlir 2>&1 | FileCheck %t/range.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/required.yaml -o %t/out.mlir 2>&1 | FileCheck %t/required.yaml --implicit-check-not=error:

//--- model.mlir
func.func @main(%ids: tensor<2x8xi64>, %mask: tensor<2x8xf32>) -> (tensor<2x8x16xf32>, tensor<2x16xf32>) {
  %r:2 = nn.module "" class "Encoder" (%ids as "ids" at 0, %mask as "mask" at 1) {
  ^bb0(%i: tensor<2x8xi64>, %m: tensor<2x8xf32>):
    %e = nn.module "embed" class "Embedding" (%i as "input" at 0) {
    ^bb0(%input: tensor<2x8xi64>):
      %w = nn.parameter "embed.weight" : tensor<32x16xf32>
      %y = nn.embedding %input, %w : (tensor<2x8xi64>, tensor<32x16xf32>) -> tensor<2x8x16xf32>
      nn.yield %y : tensor<2x8x16xf32>
    } : (tensor<2x8xi64>) -> tensor<2x8x16xf32>
    %b:2 = nn.module "layers.0" class "Block" (%e as "x" at 0, %m as "mask" at 2) {
    ^bb0(%x: tensor<2x8x16xf32>, %mm: tensor<2x8xf32>):
      %n = nn.module "layers.0.norm" class "Scale" (%x as "x" at 0) {
      ^bb0(%input: tensor<2x8x16xf32>):
        %w = nn.parameter "layers.0.norm.weight" : tensor<16xf32>
        %y = nn.mul %input, %w : (tensor<2x8x16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
        nn.yield %y : tensor<2x8x16xf32>
      } : (tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
      nn.yield %n, %mm : tensor<2x8x16xf32>, tensor<2x8xf32>
    } : (tensor<2x8x16xf32>, tensor<2x8xf32>) -> (tensor<2x8x16xf32>, tensor<2x8xf32>)
    %h = nn.module "head" class "TiedLinear" (%b#1 as "input" at 0) {
    ^bb0(%input: tensor<2x8xf32>):
      %w = nn.parameter "head.weight" : tensor<16x8xf32>
      %y = nn.linear %input, %w : (tensor<2x8xf32>, tensor<16x8xf32>) -> tensor<2x16xf32>
      nn.yield %y : tensor<2x16xf32>
    } : (tensor<2x8xf32>) -> tensor<2x16xf32>
    nn.yield %b#0, %h : tensor<2x8x16xf32>, tensor<2x16xf32>
  } : (tensor<2x8xi64>, tensor<2x8xf32>) -> (tensor<2x8x16xf32>, tensor<2x16xf32>)
  return %r#0, %r#1 : tensor<2x8x16xf32>, tensor<2x16xf32>
}

//--- count.yaml
mesh: {tp: 2}
plan:
  layers.0:
    style: PrepareModuleInput
# CHECK: :[[#@LINE+1]]:5: error: input_layouts has 1 entry, but 'layers.0' has the tensor inputs 'x' at 0, 'mask' at 2; write null for an input that keeps its layout
    input_layouts: Shard(1)
    desired_input_layouts: Replicate
  head:
    style: PrepareModuleInput
# CHECK: :[[#@LINE+1]]:5: error: input_layouts has Shard(0) at position 1, which isn't a tensor input of 'head'; its tensor inputs: 'input' at 0
    input_layouts: [null, Shard(0)]
    desired_input_layouts: [null, Replicate]
  embed:
    style: PrepareModuleOutput
# CHECK: :[[#@LINE+1]]:5: error: output_layouts has 2 entries, but 'embed' has 1 tensor output
    output_layouts: [Shard(0), null]
    desired_output_layouts: [Replicate, null]

//--- keyword.yaml
mesh: {tp: 2}
plan:
  layers.0:
    style: PrepareModuleInput
# CHECK: :[[#@LINE+1]]:5: error: 'layers.0' has no tensor input 'maks'; did you mean 'mask'?
    input_kwarg_layouts: {maks: Shard(0)}
    desired_input_kwarg_layouts: {maks: Replicate}
  head:
    style: PrepareModuleInput
    input_layouts: Shard(0)
    desired_input_layouts: Replicate
# CHECK: :[[#@LINE+1]]:5: error: input 'input' of 'head' has a layout by position as well
    input_kwarg_layouts: {input: Shard(0)}
    desired_input_kwarg_layouts: {input: Replicate}

//--- range.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:35: error: Shard(3) is out of range for output 0 of 'embed', which has 3 dimensions
  embed: {style: ColwiseParallel, output_layouts: Shard(3)}
# CHECK: :[[#@LINE+1]]:34: error: Shard(-3) is out of range for input 'input' of 'head', which has 2 dimensions
  head: {style: ColwiseParallel, input_layouts: Shard(-3)}
# CHECK: :[[#@LINE+1]]:44: error: Shard(5) is out of range for input 'x' of 'layers.0.norm', which has 3 dimensions
  layers.0.norm: {style: SequenceParallel, sequence_dim: 5}

//--- required.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:3: error: PrepareModuleInput needs input_layouts and desired_input_layouts, as 'layers.0' has 2 tensor inputs
  layers.0: PrepareModuleInput
# CHECK: :[[#@LINE+1]]:3: error: PrepareModuleOutput needs output_layouts and desired_output_layouts, as the root module has 2 tensor outputs
  "": PrepareModuleOutput
