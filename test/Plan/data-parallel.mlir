// The batch is split over the mesh dimensions of data_parallel; what becomes of parameters depends on the style.
// RUN: split-file %s %t
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/ddp.yaml | FileCheck %t/ddp.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/fsdp.yaml | FileCheck %t/fsdp.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/kept.yaml | FileCheck %t/kept.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/hsdp.yaml | FileCheck %t/hsdp.yaml
// RUN: tp-opt %t/frozen.mlir --tp-apply-plan=plan=%t/fsdp-only.yaml | FileCheck %t/frozen.mlir
// RUN: tp-opt %t/batch.mlir --tp-apply-plan=plan=%t/ddp.yaml | FileCheck %t/batch.mlir --check-prefix=FIRST
// RUN: tp-opt %t/batch.mlir --tp-apply-plan=plan=%t/batch.yaml | FileCheck %t/batch.mlir --check-prefix=SAID
// RUN: not tp-opt %t/batch.mlir --tp-apply-plan=plan=%t/inputs.yaml -o %t/out.mlir 2>&1 | FileCheck %t/inputs.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/batch.mlir --tp-apply-plan=plan=%t/no-data.yaml -o %t/out.mlir 2>&1 | FileCheck %t/no-data.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/batch.mlir --tp-apply-plan=plan=%t/no-map.yaml -o %t/out.mlir 2>&1 | FileCheck %t/no-map.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/names.yaml -o %t/out.mlir 2>&1 | FileCheck %t/names.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/list.yaml -o %t/out.mlir 2>&1 | FileCheck %t/list.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/styles.yaml -o %t/out.mlir 2>&1 | FileCheck %t/styles.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/modules-invalid.yaml -o %t/out.mlir 2>&1 | FileCheck %t/modules-invalid.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/modules-item.yaml -o %t/out.mlir 2>&1 | FileCheck %t/modules-item.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/modules-unmatched.yaml -o %t/out.mlir 2>&1 | FileCheck %t/modules-unmatched.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/modules-twice.yaml -o %t/out.mlir 2>&1 | FileCheck %t/modules-twice.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/two.yaml -o %t/out.mlir 2>&1 | FileCheck %t/two.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/both.yaml -o %t/out.mlir 2>&1 | FileCheck %t/both.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/only.yaml -o %t/out.mlir 2>&1 | FileCheck %t/only.yaml --implicit-check-not=error:
// RUN: not ls %t/out.mlir

//--- ddp.yaml
mesh: {dp: 2}
data_parallel: {dp: ddp}
# The propagation keeps the batch split.
# CHECK: func.func @main(%{{.*}}: tensor<8x10xf32> {tp.batch = ["dp"], tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>})
# CHECK: nn.parameter "net1.weight" {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}
# CHECK: nn.parameter "net1.bias" {tp.sharding = #tp.sharding<@mesh, [{}]>}
# CHECK-NOT: tp.redistribute

//--- fsdp.yaml
mesh: {dp: 2, tp: 4}
data_parallel: {dp: {style: fsdp, reshard_after_forward: true}}
# The plan is about what isn't for data.
plan:
  net1: ColwiseParallel
# CHECK: func.func @main(%{{.*}}: tensor<8x10xf32> {tp.batch = ["dp"], tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>})
# CHECK: %[[W:.*]] = nn.parameter "net1.weight" {tp.fsdp_group = "", tp.sharding = #tp.sharding<@mesh, [{tp, dp}, {}]>}
# CHECK: tp.redistribute %[[W]] to <@mesh, [{tp}, {}]> {fqn = "net1", reason = "{{.*}}fsdp.yaml:2:17: fsdp", tp.reshard} : tensor<16x10xf32>
# CHECK: %[[V:.*]] = nn.parameter "net2.weight" {tp.fsdp_group = "", tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}
# CHECK: tp.redistribute %[[V]] to <@mesh, [{}, {}]> {fqn = "net2",

//--- kept.yaml
mesh: {dp: 2}
data_parallel: {dp: {style: fsdp, reshard_after_forward: false}}
# CHECK: tp.redistribute %{{.*}} to <@mesh, [{}, {}]> {fqn = "net1", reason = "{{.*}}kept.yaml:2:17: fsdp"}
# CHECK-NOT: tp.reshard

//--- hsdp.yaml
mesh: {replicate: 2, dp: 2}
data_parallel: {dp: fsdp, replicate: ddp}
# CHECK: func.func @main(%{{.*}}: tensor<8x10xf32> {tp.batch = ["replicate", "dp"], tp.sharding = #tp.sharding<@mesh, [{replicate, dp}, {}]>})
# CHECK: nn.parameter "net1.weight" {tp.fsdp_group = "", tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}

//--- fsdp-only.yaml
mesh: {dp: 2}
data_parallel: {dp: fsdp}

//--- frozen.mlir
// Buffers and scalars stay whole, what is frozen is split; a scalar input has no batch.
// CHECK: func.func @main(%{{.*}}: tensor<4x6xf32> {tp.batch = ["dp"], tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}, %{{.*}}: tensor<f32>)
func.func @main(%x: tensor<4x6xf32>, %s: tensor<f32>) -> tensor<4x6xf32> {
  // CHECK: nn.parameter "frozen" frozen {tp.fsdp_group = "", tp.sharding = #tp.sharding<@mesh, [{dp}]>}
  %f = nn.parameter "frozen" frozen : tensor<6xf32>
  // CHECK: nn.parameter "buffer" frozen {tp.buffer, tp.sharding = #tp.sharding<@mesh, [{}]>}
  %b = nn.parameter "buffer" frozen {tp.buffer} : tensor<6xf32>
  // The propagation places a buffer that the model writes.
  // CHECK: nn.parameter "cache" frozen {tp.buffer} :
  %c = nn.parameter "cache" frozen {tp.buffer} : tensor<4x6xf32>
  nn.assign "cache", %x init 0.0 : tensor<4x6xf32>
  // CHECK: nn.parameter "scalar" {tp.sharding = #tp.sharding<@mesh, []>}
  %a = nn.parameter "scalar" : tensor<f32>
  // CHECK: nn.parameter "w" {tp.fsdp_group = "", tp.sharding = #tp.sharding<@mesh, [{dp}]>}
  %w = nn.parameter "w" : tensor<6xf32>
  %m = nn.mul %x, %b : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %0 = nn.mul %m, %f : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %1 = nn.mul %0, %w : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %2 = nn.mul %1, %a : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  %3 = nn.mul %2, %s : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %3 : tensor<4x6xf32>
}

//--- batch.mlir
// Unless the plan says which dimension of which inputs it is, the batch is dimension 0 of the first tensor, and of those
// that are of its size; a mask has none.
// FIRST: func.func @main(%{{.*}}: tensor<f32> {tp.name = "scale"}, %{{.*}}: tensor<4x6xi64> {tp.batch = ["dp"], tp.name = "ids", tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>},
// FIRST-SAME: %{{.*}}: tensor<6x6xi1> {tp.name = "mask"}, %{{.*}}: tensor<4xi64> {tp.batch = ["dp"], tp.name = "lengths",
// SAID: func.func @main(%{{.*}}: tensor<f32> {tp.name = "scale"}, %{{.*}}: tensor<4x6xi64> {tp.batch = ["dp"], tp.name = "ids", tp.sharding = #tp.sharding<@mesh, [{}, {dp}]>},
// SAID-SAME: %{{.*}}: tensor<6x6xi1> {tp.batch = ["dp"], tp.name = "mask", tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}, %{{.*}}: tensor<4xi64> {tp.name = "lengths"})
func.func @main(%scale: tensor<f32> {tp.name = "scale"}, %ids: tensor<4x6xi64> {tp.name = "ids"},
                %mask: tensor<6x6xi1> {tp.name = "mask"}, %lengths: tensor<4xi64> {tp.name = "lengths"}) -> tensor<f32> {
  return %scale : tensor<f32>
}

//--- batch.yaml
mesh: {dp: 2}
data_parallel: {dp: ddp}
batch: {ids: -1, mask: 0}

//--- inputs.yaml
mesh: {dp: 2}
data_parallel: {dp: ddp}
batch:
  ids: 0
# CHECK: :[[#@LINE+1]]:3: error: the model has no input 'maks'; did you mean 'mask'?
  maks: 0
# CHECK: :[[#@LINE+1]]:10: error: dimension 0 is out of range for input 'scale', which has 0 dimensions
  scale: 0
# CHECK: :[[#@LINE+2]]:9: error: dimension 1 of 'mask' has size 6, and the batch has 4
# CHECK: :[[#@LINE-6]]:8: note: in 'ids'
  mask: 1

//--- no-data.yaml
mesh: {dp: 2}
# CHECK: :[[#@LINE+1]]:1: error: batch names the dimension that data_parallel or expert_parallel splits, and the plan has neither; add one of them, or remove batch
batch: {ids: 0}
plan: {}

//--- no-map.yaml
mesh: {dp: 2}
data_parallel: {dp: ddp}
# CHECK: :[[#@LINE+1]]:8: error: batch must map inputs to the dimension that is the batch, found '0'
batch: 0

//--- names.yaml
mesh: {dp: 2, tp: 2}
# CHECK: :[[#@LINE+1]]:17: error: the mesh has no dimension 'dpp'; did you mean 'dp'?
data_parallel: {dpp: ddp}
mesh_dim: tp
plan: {net1: ColwiseParallel}

//--- list.yaml
mesh: {dp: 2}
# CHECK: :[[#@LINE+1]]:1: error: data_parallel must map mesh dimensions to ddp or fsdp, found a list
data_parallel: [dp]
plan: {net1: ColwiseParallel}

//--- styles.yaml
mesh: {a: 2, b: 2, c: 2, d: 2, tp: 2}
data_parallel:
# CHECK: :[[#@LINE+1]]:6: error: the style of data_parallel must be ddp or fsdp, found 'zero'
  a: zero
# CHECK: :[[#@LINE+1]]:3: error: key 'style' is missing: ddp or fsdp
  b: {reshard_after_forward: true}
# CHECK: :[[#@LINE+1]]:43: error: reshard_after_forward must be true or false, found 'often'
  c: {style: fsdp, reshard_after_forward: often}
# CHECK: :[[#@LINE+1]]:42: error: reshard_after_forward is for fsdp
  d: {style: ddp, reshard_after_forward: true}

//--- modules-invalid.yaml
mesh: {a: 2, b: 2}
data_parallel:
# CHECK: :[[#@LINE+1]]:19: error: modules is for fsdp
  a: {style: ddp, modules: [net1]}
# CHECK: :[[#@LINE+1]]:29: error: modules must be a list of patterns, found 'net1'
  b: {style: fsdp, modules: net1}

//--- modules-item.yaml
mesh: {dp: 2}
# CHECK: :[[#@LINE+1]]:35: error: a pattern of modules is expected, found a map
data_parallel: {dp: {style: fsdp, modules: [{net1: fsdp}]}}

//--- modules-unmatched.yaml
mesh: {a: 2, b: 2}
data_parallel:
# CHECK: :[[#@LINE+1]]:30: error: modules: pattern 'nett1' matches no module: no submodule 'nett1' in the root module; did you mean 'net1'?
  a: {style: fsdp, modules: [nett1, net2]}

//--- modules-twice.yaml
mesh: {a: 2, b: 2}
data_parallel:
  a: {style: fsdp, modules: [net1]}
# CHECK: :[[#@LINE+1]]:3: error: modules are named for another mesh dimension already; a parameter is in one group over all of them
  b: {style: fsdp, modules: [net2]}

//--- two.yaml
# CHECK: :[[#@LINE+1]]:1: error: the mesh has 3 dimensions; say which one the plan parallelizes over, such as mesh_dim: tp
mesh: {dp: 2, cp: 2, tp: 2}
data_parallel: {dp: ddp}
plan: {net1: ColwiseParallel}

//--- both.yaml
mesh: {dp: 2, tp: 2}
# CHECK: :[[#@LINE+1]]:17: error: 'dp' is in data_parallel, so the plan can't split over it, too
data_parallel: {dp: fsdp}
mesh_dim: [dp, tp]
plan: {net1: ColwiseParallel}

//--- only.yaml
mesh: {dp: 2}
# CHECK: :[[#@LINE+1]]:17: error: 'dp' is in data_parallel, so the plan can't split over it, too
data_parallel: {dp: ddp}
plan: {net1: ColwiseParallel}
