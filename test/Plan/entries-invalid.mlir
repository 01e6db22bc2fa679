// Styles and arguments that don't exist. All problems are reported in one go.
// RUN: split-file %s %t
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/entries.yaml -o %t/out.mlir 2>&1 | FileCheck %t/entries.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/arguments.yaml -o %t/out.mlir 2>&1 | FileCheck %t/arguments.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/placements.yaml -o %t/out.mlir 2>&1 | FileCheck %t/placements.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/sequence.yaml -o %t/out.mlir 2>&1 | FileCheck %t/sequence.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/prepare.yaml -o %t/out.mlir 2>&1 | FileCheck %t/prepare.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/lengths.yaml -o %t/out.mlir 2>&1 | FileCheck %t/lengths.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/pairs.yaml -o %t/out.mlir 2>&1 | FileCheck %t/pairs.yaml --implicit-check-not=error:

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

//--- entries.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:3: error: 'a' has no key 'style'; did you mean 'style' where 'styl' stands?
  a: {styl: ColwiseParallel}
# CHECK: :[[#@LINE+1]]:7: error: 'b': unknown placement 'ColwiseParallel'; placements are Shard(dim), Replicate, Partial(reduction) and _StridedShard(dim, split_factor)
  b: [ColwiseParallel]
# CHECK: :[[#@LINE+1]]:3: error: 'c' must have a style, a map of a style and its arguments, or a list of placements, found nothing
  c:
# CHECK: :[[#@LINE+1]]:6: error: arguments of a style are written as a map, {style: ColwiseParallel, argument: value}
  d: ColwiseParallel(input_layouts=Shard(0))
# CHECK: :[[#@LINE+1]]:7: error: style must be a name, found a map
  e: {style: {name: x}}
# CHECK: :[[#@LINE+1]]:9: error: unknown style 'ColwisParallel'; did you mean 'ColwiseParallel'?
  net1: ColwisParallel
# CHECK: :[[#@LINE+1]]:9: error: unknown style 'fsdp'; styles are ColwiseParallel, RowwiseParallel, SequenceParallel, PrepareModuleInput, PrepareModuleOutput, PrepareModuleInputOutput, PairwiseParallel, PairwiseParallelStyle, PairwiseSequenceParallel, NoParallel, and the strings of Hugging Face's tp_plan
  net2: fsdp

//--- arguments.yaml
mesh: {tp: 2}
plan:
  net1:
    style: ColwiseParallel
# CHECK: :[[#@LINE+1]]:5: error: ColwiseParallel has no argument 'output_layout'; did you mean 'output_layouts'?
    output_layout: Shard(0)
# CHECK: :[[#@LINE+1]]:5: error: ColwiseParallel has no argument 'dtype'; its arguments are input_layouts, output_layouts, use_local_output, _prepare_input, _prepare_output
    dtype: f32
  net2:
    style: RowwiseParallel
# CHECK: :[[#@LINE+1]]:5: error: input_layouts must be one placement, found a list
    input_layouts: [Shard(0)]
# CHECK: :[[#@LINE+1]]:21: error: output_layouts: unknown placement 'Shrad(0)'; did you mean 'Shard'?
    output_layouts: Shrad(0)
# CHECK: :[[#@LINE+1]]:23: error: use_local_output must be true or false, found 'yes'
    use_local_output: yes

//--- placements.yaml
mesh: {tp: 2}
plan:
  net1:
    style: PrepareModuleInputOutput
# CHECK: :[[#@LINE+1]]:21: error: input_layouts: Shard needs the dimension that it splits, as in Shard(0)
    input_layouts: [Shard]
# CHECK: :[[#@LINE+1]]:28: error: desired_input_layouts: 'Shard(0' lacks a closing parenthesis
    desired_input_layouts: Shard(0
# CHECK: :[[#@LINE+1]]:22: error: output_layouts: unknown reduction 'mean'; Partial takes sum, avg, max, min or product
    output_layouts: [Partial(mean)]
# CHECK: :[[#@LINE+1]]:5: error: desired_output_layouts: a placement is expected here, found a list
    desired_output_layouts: [[Shard(0)]]

//--- sequence.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:49: error: sequence_dim must be an integer, found 'last'
  net1: {style: SequenceParallel, sequence_dim: last}

//--- prepare.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:38: error: output_layouts needs desired_output_layouts beside it
  net1: {style: PrepareModuleOutput, output_layouts: Shard(0)}
# CHECK: :[[#@LINE+1]]:37: error: desired_input_layouts needs input_layouts beside it
  net2: {style: PrepareModuleInput, desired_input_layouts: Shard(0)}
# CHECK: :[[#@LINE+1]]:37: error: input_layouts needs desired_input_layouts beside it
  net?: {style: PrepareModuleInput, input_layouts: Shard(0)}

//--- lengths.yaml
mesh: {tp: 2}
plan:
  net1:
    style: PrepareModuleInput
    input_layouts: [Shard(0), null]
# CHECK: :[[#@LINE+1]]:5: error: input_layouts and desired_input_layouts must have the same length, found 2 and 1
    desired_input_layouts: Shard(0)
  net2:
    style: PrepareModuleInput
    input_kwarg_layouts: {input: Shard(0), x: Shard(1)}
# CHECK: :[[#@LINE+1]]:5: error: desired_input_kwarg_layouts lacks 'x', which input_kwarg_layouts has
    desired_input_kwarg_layouts: {input: Replicate}

//--- pairs.yaml
mesh: {tp: 2}
plan:
  net1:
    style: PrepareModuleInput
    input_layouts: [null, Shard(0)]
# CHECK: :[[#@LINE+2]]:5: error: desired_input_layouts has Shard(0) at position 0, where input_layouts has null, which leaves the tensor alone
# CHECK: :[[#@LINE+1]]:5: error: desired_input_layouts has Partial(sum) at position 1, but no value can be redistributed to Partial
    desired_input_layouts: [Shard(0), Partial]
