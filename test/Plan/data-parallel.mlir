// The batch is split over the mesh dimensions of data_parallel; what becomes of parameters depends on the style.
// RUN: split-file %s %t
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/ddp.yaml | FileCheck %t/ddp.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/fsdp.yaml | FileCheck %t/fsdp.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/kept.yaml | FileCheck %t/kept.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/hsdp.yaml | FileCheck %t/hsdp.yaml
// RUN: tp-opt %t/frozen.mlir --tp-apply-plan=plan=%t/fsdp-only.yaml | FileCheck %t/frozen.mlir
// RUN: tp-opt %t/batch.mlir --tp-apply-plan=plan=%t/ddp.yaml | FileCheck %t/batch.mlir
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/names.yaml -o %t/out.mlir 2>&1 | FileCheck %t/names.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/list.yaml -o %t/out.mlir 2>&1 | FileCheck %t/list.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/styles.yaml -o %t/out.mlir 2>&1 | FileCheck %t/styles.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/two.yaml -o %t/out.mlir 2>&1 | FileCheck %t/two.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/both.yaml -o %t/out.mlir 2>&1 | FileCheck %t/both.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/only.yaml -o %t/out.mlir 2>&1 | FileCheck %t/only.yaml --implicit-check-not=error:
// RUN: not ls %t/out.mlir

//--- ddp.yaml
mesh: {dp: 2}
data_parallel: {dp: ddp}
# CHECK: func.func @main(%{{.*}}: tensor<8x10xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>})
# CHECK: nn.parameter "net1.weight" {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}
# CHECK: nn.parameter "net1.bias" {tp.sharding = #tp.sharding<@mesh, [{}]>}
# What modules give stays split: to gather the batch once would be less communication. An outer module gives what is held already.
# CHECK: tp.redistribute %{{.*}} to <@mesh, [{dp}, {}]> over {dp} {fqn = "net1", reason = "{{.*}}ddp.yaml:2:17: data_parallel"} : tensor<8x16xf32>
# CHECK: tp.redistribute %{{.*}} to <@mesh, [{dp}, {}]> over {dp} {fqn = "net2",
# CHECK-NOT: tp.redistribute

//--- fsdp.yaml
mesh: {dp: 2, tp: 4}
data_parallel: {dp: fsdp}
# The plan is about what isn't for data.
plan:
  net1: ColwiseParallel
# CHECK: func.func @main(%{{.*}}: tensor<8x10xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>})
# CHECK: %[[W:.*]] = nn.parameter "net1.weight" {tp.sharding = #tp.sharding<@mesh, [{tp, dp}, {}]>}
# CHECK: tp.redistribute %[[W]] to <@mesh, [{tp}, {}]> {fqn = "net1", reason = "{{.*}}fsdp.yaml:2:17: fsdp", tp.reshard} : tensor<16x10xf32>
# CHECK: %[[V:.*]] = nn.parameter "net2.weight" {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}
# CHECK: tp.redistribute %[[V]] to <@mesh, [{}, {}]> {fqn = "net2",

//--- kept.yaml
mesh: {dp: 2}
data_parallel: {dp: {style: fsdp, reshard_after_forward: false}}
# CHECK: tp.redistribute %{{.*}} to <@mesh, [{}, {}]> {fqn = "net1", reason = "{{.*}}kept.yaml:2:17: fsdp"}
# CHECK-NOT: tp.reshard

//--- hsdp.yaml
mesh: {replicate: 2, dp: 2}
data_parallel: {dp: fsdp, replicate: ddp}
# CHECK: func.func @main(%{{.*}}: tensor<8x10xf32> {tp.sharding = #tp.sharding<@mesh, [{replicate, dp}, {}]>})
# CHECK: nn.parameter "net1.weight" {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}

//--- fsdp-only.yaml
mesh: {dp: 2}
data_parallel: {dp: fsdp}

//--- frozen.mlir
// What is frozen and scalars stay whole; a scalar input has no batch.
// CHECK: func.func @main(%{{.*}}: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}, %{{.*}}: tensor<f32>)
func.func @main(%x: tensor<4x6xf32>, %s: tensor<f32>) -> tensor<4x6xf32> {
  // CHECK: nn.parameter "frozen" frozen {tp.sharding = #tp.sharding<@mesh, [{}]>}
  %f = nn.parameter "frozen" frozen : tensor<6xf32>
  // CHECK: nn.parameter "scalar" {tp.sharding = #tp.sharding<@mesh, []>}
  %a = nn.parameter "scalar" : tensor<f32>
  // CHECK: nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{dp}]>}
  %w = nn.parameter "w" : tensor<6xf32>
  %0 = nn.mul %x, %f : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %1 = nn.mul %0, %w : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %2 = nn.mul %1, %a : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  %3 = nn.mul %2, %s : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %3 : tensor<4x6xf32>
}

//--- batch.mlir
// The batch is followed through the ops; where it is merged with another dimension, or gone, nothing is held.
// CHECK-COUNT-1: tp.redistribute %{{.*}} to <@mesh, [{}, {dp}, {}]> over {dp} {fqn = "turn",
// CHECK-NOT: tp.redistribute
func.func @main(%x: tensor<4x6x8xf32>) -> (tensor<6x4x8xf32>, tensor<24x8xf32>, tensor<6x8xf32>) {
  %t = nn.module "turn" class "Turn" (%x as "x" at 0) {
  ^bb0(%a: tensor<4x6x8xf32>):
    %y = nn.transpose %a [1, 0, 2] : tensor<4x6x8xf32> -> tensor<6x4x8xf32>
    nn.yield %y : tensor<6x4x8xf32>
  } : (tensor<4x6x8xf32>) -> tensor<6x4x8xf32>
  %f = nn.module "flat" class "Flat" (%x as "x" at 0) {
  ^bb0(%a: tensor<4x6x8xf32>):
    %y = nn.reshape %a : tensor<4x6x8xf32> -> tensor<24x8xf32>
    nn.yield %y : tensor<24x8xf32>
  } : (tensor<4x6x8xf32>) -> tensor<24x8xf32>
  %m = nn.module "mean" class "Mean" (%t as "x" at 0) {
  ^bb0(%a: tensor<6x4x8xf32>):
    %y = nn.reduce mean %a dims [1] : tensor<6x4x8xf32> -> tensor<6x8xf32>
    nn.yield %y : tensor<6x8xf32>
  } : (tensor<6x4x8xf32>) -> tensor<6x8xf32>
  return %t, %f, %m : tensor<6x4x8xf32>, tensor<24x8xf32>, tensor<6x8xf32>
}

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
# CHECK: :[[#@LINE+1]]:6: error: data_parallel knows ddp and fsdp, found 'zero'
  a: zero
# CHECK: :[[#@LINE+1]]:3: error: key 'style' is missing: ddp or fsdp
  b: {reshard_after_forward: true}
# CHECK: :[[#@LINE+1]]:43: error: reshard_after_forward must be true or false, found 'often'
  c: {style: fsdp, reshard_after_forward: often}
# CHECK: :[[#@LINE+1]]:42: error: reshard_after_forward is for fsdp
  d: {style: ddp, reshard_after_forward: true}

//--- two.yaml
# CHECK: :[[#@LINE+1]]:1: error: the mesh has 3 dimensions; say which one the plan parallelizes over, such as mesh_dim: tp
mesh: {dp: 2, cp: 2, tp: 2}
data_parallel: {dp: ddp}
plan: {net1: ColwiseParallel}

//--- both.yaml
mesh: {dp: 2, tp: 2}
# CHECK: :[[#@LINE+1]]:17: error: 'dp' is for data here, and the plan splits over it as well
data_parallel: {dp: fsdp}
mesh_dim: [dp, tp]
plan: {net1: ColwiseParallel}

//--- only.yaml
mesh: {dp: 2}
# CHECK: :[[#@LINE+1]]:17: error: 'dp' is for data here, and the plan splits over it as well
data_parallel: {dp: ddp}
plan: {net1: ColwiseParallel}
