// A stage has the ops from its module on, in the order in which the model runs them.
// RUN: split-file %s %t
// RUN: tp-opt %S/../Plan/Inputs/mlp.mlir --tp-apply-plan=plan=%t/plan.yaml | FileCheck %t/plan.yaml

//--- plan.yaml
mesh: {pp: 2, tp: 2}
pipeline: {pp: {split: [net2], schedule: GPipe, microbatches: 3}}
plan: {net1: ColwiseParallel}
# CHECK: tp.mesh @mesh(pp = 2, tp = 2)
# CHECK-NEXT: tp.pipeline @mesh over "pp" schedule "GPipe" microbatches 3
# CHECK: nn.module "net1"
# CHECK: nn.parameter "net1.weight" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}
# CHECK: nn.linear {{.*}} {tp.stage = 0 : i64}
# CHECK: nn.add {{.*}} {tp.stage = 0 : i64}
# CHECK: nn.relu {{.*}} {tp.stage = 0 : i64}
# CHECK: nn.module "net2"
# CHECK: nn.linear {{.*}} {tp.stage = 1 : i64}
# CHECK: nn.add {{.*}} {tp.stage = 1 : i64}
