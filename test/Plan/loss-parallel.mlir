// Logits enter a cross entropy split along their classes.
// RUN: split-file %s %t
// RUN: tp-opt %S/Inputs/fused.mlir --tp-apply-plan=plan=%t/plan.yaml | FileCheck %t/plan.yaml
// RUN: tp-opt %S/Inputs/fused.mlir --tp-apply-plan="plan=%t/plan.yaml strict=true" -o /dev/null
// RUN: tp-opt %S/Inputs/fused.mlir --tp-apply-plan=plan=%t/without.yaml -o /dev/null 2>&1 | FileCheck %t/without.yaml
// RUN: not tp-opt %S/Inputs/fused.mlir --tp-apply-plan=plan=%t/batch.yaml -o %t/out.mlir 2>&1 | FileCheck %t/batch.yaml --implicit-check-not=error:
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan="plan=%t/none.yaml strict=true" -o /dev/null 2>&1 | FileCheck %t/none.yaml --implicit-check-not=error:

//--- plan.yaml
# CHECK: %[[D:.+]] = nn.module "down"
# CHECK: %[[S:.+]] = tp.redistribute %[[D]] to <@mesh, {{\[}}{}, {tp}]> {fqn = "down"
# CHECK: %[[L:.+]] = tp.redistribute %[[S]] to <@mesh, {{\[}}{}, {tp}]> {fqn = "", reason = "plan.yaml:[[#@LINE+3]]:1: loss_parallel Shard(1)"}
# CHECK: nn.cross_entropy mean %[[L]]
mesh: {tp: 2}
loss_parallel: true
plan: {down: {style: ColwiseParallel, use_local_output: false}}

//--- without.yaml
mesh: {tp: 2}
# CHECK: :[[#@LINE+2]]:8: warning: 'nn.cross_entropy' in the root module needs all of dimension 1 of its operand, which is Shard(1) because of output_layouts [forced-gather]
# CHECK: :[[#@LINE+1]]:8: note: fix: write loss_parallel: true in the plan
plan: {down: {style: ColwiseParallel, use_local_output: false}}

# PyTorch: ValueError.
//--- batch.yaml
mesh: {tp: 2}
# CHECK: :[[#@LINE+2]]:1: error: loss_parallel needs logits split along their classes, Shard(1), but they come as Shard(0)
# CHECK: :[[#@LINE+2]]:39: note: by output_layouts here
loss_parallel: true
plan: {down: {style: ColwiseParallel, output_layouts: Shard(0)}}

# A plan for training serves inference as well.
//--- none.yaml
mesh: {tp: 2}
# CHECK: :[[#@LINE+1]]:1: remark: loss_parallel changes nothing: the model has no cross entropy
loss_parallel: true
plan: {net1: ColwiseParallel}
