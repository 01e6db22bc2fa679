// Partials that a value can't be redistributed to.
// RUN: split-file %s %t
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/outputs.yaml -o %t/out.mlir 2>&1 | FileCheck %t/outputs.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/mixed.yaml -o %t/out.mlir 2>&1 | FileCheck %t/mixed.yaml --implicit-check-not=error:

//--- outputs.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:34: error: output_layouts: the output comes as Shard(-1), which can't be redistributed to Partial(sum)
  net1: {style: ColwiseParallel, output_layouts: Partial}
# CHECK: :[[#@LINE+1]]:34: error: output_layouts: the output comes as Partial(sum), which can't be redistributed to Partial(max)
  net2: {style: RowwiseParallel, output_layouts: Partial(max)}
# CHECK: :[[#@LINE+1]]:63: error: desired_output_layouts has Partial(avg) at position 0, but no value can be redistributed to Partial
  "": {style: PrepareModuleOutput, output_layouts: Replicate, desired_output_layouts: Partial(avg)}

# PyTorch allows sum with avg.
//--- mixed.yaml
mesh: {dp: 2, tp: 2}
parallelize:
  - mesh_dim: tp
    plan:
      net1: {style: PrepareModuleInput, input_layouts: Partial(sum), desired_input_layouts: Partial(sum)}
      net2: {style: PrepareModuleInput, input_layouts: Partial(max), desired_input_layouts: Partial(max)}
  - mesh_dim: dp
    plan:
      net1: {style: PrepareModuleInput, input_layouts: Partial(avg), desired_input_layouts: Partial(avg)}
# CHECK: :[[#@LINE+2]]:41: error: Partial(sum) can't be combined with Partial(max), the placement of the same tensor of 'net2' over another mesh dimension
# CHECK: :[[#@LINE-5]]:41: note: the other placement is from here
      net2: {style: PrepareModuleInput, input_layouts: Partial(sum), desired_input_layouts: Partial(sum)}
