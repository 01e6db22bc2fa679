// Meshes and mesh dimensions that don't exist.
// RUN: split-file %s %t
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/names.yaml -o %t/out.mlir 2>&1 | FileCheck %t/names.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/devices.yaml -o %t/out.mlir 2>&1 | FileCheck %t/devices.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/shape.yaml -o %t/out.mlir 2>&1 | FileCheck %t/shape.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/item.yaml -o %t/out.mlir 2>&1 | FileCheck %t/item.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/keys.yaml -o %t/out.mlir 2>&1 | FileCheck %t/keys.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/both.yaml -o %t/out.mlir 2>&1 | FileCheck %t/both.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/world.yaml -o %t/out.mlir 2>&1 | FileCheck %t/world.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/direct.yaml -o %t/out.mlir 2>&1 | FileCheck %t/direct.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/empty.yaml -o %t/out.mlir 2>&1 | FileCheck %t/empty.yaml --implicit-check-not=error:

//--- names.yaml
mesh: {pp: 1, dp: 2, tp: 4}
parallelize:
# CHECK: :[[#@LINE+1]]:16: error: the mesh has no dimension 'tpx'; did you mean 'tp'?
  - {mesh_dim: tpx, plan: {net1: ColwiseParallel}}
# CHECK: :[[#@LINE+1]]:21: error: mesh_dim names mesh dimension 'dp' twice
  - {mesh_dim: [dp, dp], plan: {net2: RowwiseParallel}}
# CHECK: :[[#@LINE+1]]:21: error: mesh_dim must name mesh dimensions in the order of the mesh, and 'dp' comes before 'tp' there
  - {mesh_dim: [tp, dp], plan: {net2.bias: Shard(0)}}
# CHECK: :[[#@LINE+1]]:19: error: tp_mesh_dim must be the index of a mesh dimension, 0 to 2, found '3'
  - {tp_mesh_dim: 3, plan: {"": PrepareModuleOutput}}
# CHECK: :[[#@LINE+1]]:6: error: mesh_dim must name a mesh dimension, or several in a list, found a map
  - {mesh_dim: {tp: 1}, plan: {"": PrepareModuleInput}}

//--- devices.yaml
mesh:
  dims: {dp: 2, tp: 2}
# CHECK: :[[#@LINE+1]]:3: error: devices has rank 1 twice
  devices: [0, 1, 1, 3]
mesh_dim: tp
plan: {net1: ColwiseParallel}

//--- shape.yaml
mesh:
  dims: {dp: 2, tp: 2}
# CHECK: :[[#@LINE+1]]:3: error: devices has 3 entries where mesh dimension 'dp' has size 2
  devices: [[0, 1], [2, 3], [4, 5]]
mesh_dim: tp
plan: {net1: ColwiseParallel}

//--- item.yaml
mesh:
  dims: {dp: 2, tp: 2}
# CHECK: :[[#@LINE+1]]:22: error: devices must hold the ranks 0 to 3, in one list or in nested lists of the mesh's shape, found '4'
  devices: [0, 1, 2, 4]
mesh_dim: tp
plan: {net1: ColwiseParallel}

//--- keys.yaml
mesh: {tp: 2}
# CHECK: :[[#@LINE+1]]:8: error: match must be fnmatch, hf or regex, found 'glob'
match: glob
# CHECK: :[[#@LINE+1]]:15: error: on_unmatched must be error or warn, found 'ignore'
on_unmatched: ignore
# CHECK: :[[#@LINE+1]]:16: error: loss_parallel must be true or false, found 'yes'
loss_parallel: yes
# CHECK: :[[#@LINE+1]]:1: error: 'mesh_dim' belongs in each item of 'parallelize'
mesh_dim: tp
parallelize:
# CHECK: :[[#@LINE+1]]:5: error: an item of parallelize is a map with the keys 'mesh_dim' and 'plan', found 'net1'
  - net1
# CHECK: :[[#@LINE+1]]:6: error: unknown key 'mesh_dims'; did you mean 'mesh_dim'?
  - {mesh_dims: tp, plan: {net1: ColwiseParallel}}

//--- both.yaml
mesh: {dp: 2, tp: 2}
plan: {net1: ColwiseParallel}
# CHECK: :[[#@LINE+1]]:1: error: a plan has either 'plan' or 'parallelize', and this one has both
parallelize: {mesh_dim: tp, plan: {net1: ColwiseParallel}}

//--- world.yaml
# CHECK: :[[#@LINE+1]]:1: error: the mesh has 8 ranks, more than the world_size of 4
mesh: {dp: 2, tp: 4}
mesh_dim: tp
world_size: 4
plan: {net1: ColwiseParallel}

//--- direct.yaml
mesh: {dp: 2, tp: 2}
mesh_dim: tp
plan:
# CHECK: :[[#@LINE+1]]:3: error: 'net1.weight' has 2 placements, but the plan is over 1 mesh dimension
  net1.weight: [Shard(0), Replicate]
# CHECK: :[[#@LINE+1]]:15: error: 'net1.bias': unknown reduction 'mean'; Partial takes sum, avg, max, min or product
  net1.bias: [Partial(mean)]

//--- empty.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:3: error: parameter 'net1.bias' can't be Partial(sum): a weights file has whole values, not partial ones
  net1.bias: [Partial]
# CHECK: :[[#@LINE+1]]:3: error: pattern 'net2' matches no parameter: 'net2' is a module; placements are those of a parameter, a module has a style
  net2: [Shard(0)]
# CHECK: :[[#@LINE+1]]:3: error: pattern 'net2.wieght' matches no parameter: did you mean 'net2.weight'?
  net2.wieght: [Shard(0)]
# CHECK: :[[#@LINE+1]]:3: error: Shard(2) is out of range for 'net2.weight', which has 2 dimensions
  net2.weight: [Shard(2)]
# CHECK: :[[#@LINE+1]]:14: error: 'net2.bias': dimension 0 has size 10, which isn't 3 blocks of one size
  net2.bias: "_StridedShard(0, split_factor=3)"
