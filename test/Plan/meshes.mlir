// Plans over several mesh dimensions: one each, several as one, named or by
// index, and meshes with an order of ranks of their own.
// RUN: split-file %s %t
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/two.yaml --verify-roundtrip | FileCheck %t/two.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-parallelize=plan=%t/two.yaml | FileCheck %t/ranks.check
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/flat.yaml | FileCheck %t/flat.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-parallelize=plan=%t/flat.yaml | FileCheck %t/flat.check
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/index.yaml | FileCheck %t/index.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/devices.yaml | FileCheck %t/devices.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/nested.yaml | FileCheck %t/devices.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/direct.yaml | FileCheck %t/direct.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/single.yaml | FileCheck %t/single.yaml

// A plan over one mesh dimension doesn't affect the other's.
//--- two.yaml
# CHECK: tp.mesh @mesh(dp = 2, tp = 2)
# CHECK: func.func @main(%[[X:.+]]: tensor<8x10xf32> {tp.sharding = #tp.sharding<@mesh, {{\[}}{dp}, {}]>}) -> (tensor<8x10xf32> {tp.sharding = #tp.sharding<@mesh, {{\[}}{dp}, {}]>})
# CHECK: tp.redistribute %[[X]] to <@mesh, {{\[}}{dp}, {}]> over {dp} {fqn = "", reason = "two.yaml:[[#@LINE+11]]:{{[0-9]+}}: PrepareModuleInput input_layouts Shard(0)"}
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {}]> over {tp} {fqn = "net1"
# CHECK: nn.parameter "net1.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}]>}
mesh: {dp: 2, tp: 2}
parallelize:
  - mesh_dim: tp
    plan: {net1: ColwiseParallel, net2: RowwiseParallel}
  - mesh_dim: dp
    plan:
      "":
        style: PrepareModuleInput
        input_layouts: Shard(0)
        desired_input_layouts: Shard(0)
      net2: {style: PrepareModuleOutput, output_layouts: Shard(0), desired_output_layouts: Shard(0)}
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{dp}, {}]> over {dp} {fqn = "net2"
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {}]> over {tp} {fqn = "net2"

//--- ranks.check
CHECK:     func.func @main(%{{.+}}: tensor<4x10xf32>
CHECK:     nn.linear {{.*}} : (tensor<4x10xf32>, tensor<8x10xf32>) -> tensor<4x8xf32>
CHECK:     tp.all_reduce sum %{{.+}} over @mesh {tp} {{.*}} : tensor<4x10xf32>
CHECK-NOT: tp.all_

//--- flat.yaml
# CHECK: nn.parameter "net1.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{dp, tp}, {}]>}
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {dp, tp}]> {fqn = "net1"
# CHECK: nn.parameter "net2.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {dp, tp}]>}
mesh: {dp: 2, tp: 2}
mesh_dim: [dp, tp]
plan: {net1: ColwiseParallel, net2: RowwiseParallel}

//--- flat.check
CHECK: nn.linear {{.*}} : (tensor<8x10xf32>, tensor<4x10xf32>) -> tensor<8x4xf32>
CHECK: tp.all_reduce sum %{{.+}} over @mesh {dp, tp}

// PyTorch 2.0's argument.
//--- index.yaml
# CHECK: nn.parameter "net1.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}]>}
mesh: {dp: 4, tp: 2}
tp_mesh_dim: 1
world_size: 8
plan: {net1: ColwiseParallel}

//--- devices.yaml
# CHECK: tp.mesh @mesh(dp = 2, tp = 2) devices [0, 2, 1, 3]
mesh: {dims: {dp: 2, tp: 2}, devices: [0, 2, 1, 3]}
mesh_dim: tp
plan: {net1: ColwiseParallel}

//--- nested.yaml
mesh: {dims: {dp: 2, tp: 2}, devices: [[0, 2], [1, 3]]}
mesh_dim: tp
plan: {net1: ColwiseParallel}

# Placements of a parameter: in the order of the mesh, and strided, as of FSDP
# over tensor parallelism; a stride that no other placement explains is segments.
//--- direct.yaml
# CHECK: nn.parameter "net1.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp, dp}, {}]>}
# CHECK: nn.parameter "net1.bias" {tp.sharding = #tp.sharding<@mesh, {{\[}}{dp, tp}]>}
# CHECK: nn.parameter "net2.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{dp | 2, 2, 2, 2, 2}, {tp}]>}
# CHECK: nn.parameter "net2.bias" {tp.sharding = #tp.sharding<@mesh, {{\[}}{dp}]>}
mesh: {dp: 2, tp: 4}
parallelize:
  - mesh_dim: tp
    plan: {net1.weight: [Shard(0)], net1.bias: S(-1), net2.weight: "Shard(dim=1)"}
  - mesh_dim: dp
    plan:
      net1.weight: _StridedShard(0, split_factor=4)
      net2.weight: ["_StridedShard(dim=0, sf=5)"]
      net1.bias: Shard(0)
  - mesh_dim: [dp, tp]
    plan: {net2.bias: [Shard(0), Replicate()]}

# One style for the root module.
//--- single.yaml
# CHECK: reason = "single.yaml:[[#@LINE+2]]:36: PrepareModuleOutput output_layouts Replicate"
mesh: {tp: 2}
plan: {style: PrepareModuleOutput, output_layouts: Replicate, desired_output_layouts: Shard(0)}
