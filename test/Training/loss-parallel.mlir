// A plan's loss_parallel with the loss of a training file: two all-reduces over the classes, of one number and of two for
// each target, and nothing is gathered; what is wrong is told at the plan's place.
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-parallelize="plan=%t/plan.yaml train=%t/train.yaml" | FileCheck %s --check-prefix=STEP
// RUN: not tp-opt %t/model.mlir --tp-parallelize="plan=%t/sequence.yaml train=%t/train.yaml" 2>&1 | FileCheck %t/sequence.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-parallelize="plan=%t/partial.yaml train=%t/train.yaml" 2>&1 | FileCheck %t/partial.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-parallelize="plan=%t/plan.yaml train=%t/smooth.yaml" 2>&1 | FileCheck %t/smooth.yaml --implicit-check-not=error:
// RUN: tp-opt %t/model.mlir --tp-parallelize="plan=%t/plan.yaml train=%t/mse.yaml" -o /dev/null 2>&1 | FileCheck %t/mse.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/own.mlir --tp-apply-plan=plan=%t/target.yaml 2>&1 | FileCheck %t/target.yaml --implicit-check-not=error:

// STEP: %[[X:.*]] = nn.linear {{.*}} -> tensor<2x6x8xf32>
// STEP-NOT: tp.all_gather
// STEP: tp.all_reduce max {{.*}}{tp} {{.*}} : tensor<12x1xf32>
// STEP-NOT: tp.{{.*}} bytes
// STEP: nn.gather
// STEP: %[[BOTH:.*]] = nn.concat {{.*}} -> tensor<12x2xf32>
// STEP: tp.all_reduce sum %[[BOTH]] over @mesh {tp}
// STEP-NOT: over @mesh {tp} {bytes
// The gradient is split as the logits are.
// STEP: nn.outer_sum %{{.*}} : (tensor<2x6x8xf32>, tensor<2x6x4xf32>) -> tensor<8x4xf32>
// STEP: return

//--- model.mlir
func.func @main(%x: tensor<4x6x4xf32> {tp.name = "x"}) -> tensor<4x6x16xf32> {
  %0 = nn.module "head" class "Linear" (%x as "input" at 0) {
  ^bb0(%a: tensor<4x6x4xf32>):
    %w = nn.parameter "head.weight" : tensor<16x4xf32>
    %y = nn.linear %a, %w : (tensor<4x6x4xf32>, tensor<16x4xf32>) -> tensor<4x6x16xf32>
    nn.yield %y : tensor<4x6x16xf32>
  } : (tensor<4x6x4xf32>) -> tensor<4x6x16xf32>
  return %0 : tensor<4x6x16xf32>
}

//--- own.mlir
func.func @main(%x: tensor<8x16xf32>, %t: tensor<8xi64>) -> tensor<f32> {
  %0 = nn.module "" class "Model" (%x as "x" at 0, %t as "target" at 1) {
  ^bb0(%a: tensor<8x16xf32>, %b: tensor<8xi64>):
    %l = nn.cross_entropy mean %a, %b ignore -100 smoothing 0.0 : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
    nn.yield %l : tensor<f32>
  } : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
  return %0 : tensor<f32>
}

//--- train.yaml
{loss: cross_entropy, optimizer: SGD}

//--- plan.yaml
mesh: {dp: 2, tp: 2}
data_parallel: {dp: ddp}
loss_parallel: true
plan: {head: {style: ColwiseParallel, use_local_output: false}}

//--- sequence.yaml
mesh: {tp: 2}
# CHECK: sequence.yaml:[[#@LINE+2]]:1: error: loss_parallel needs logits split along their classes, Shard(2), but they come as Shard(1)
# CHECK: sequence.yaml:[[#@LINE+2]]:{{.*}}: note: by output_layouts here
loss_parallel: true
plan: {head: {style: ColwiseParallel, output_layouts: Shard(1)}}

//--- partial.yaml
mesh: {dp: 2, tp: 2}
parallelize:
# CHECK: partial.yaml:[[#@LINE+1]]:18: error: loss_parallel needs logits that are Shard or Replicate over 'dp', but they come as Partial(sum)
- {mesh_dim: tp, loss_parallel: true, plan: {head: {style: ColwiseParallel, use_local_output: false}}}
# CHECK: partial.yaml:[[#@LINE+1]]:{{.*}}: note: by output_layouts here
- {mesh_dim: dp, plan: {head: {style: RowwiseParallel, output_layouts: Partial}}}

//--- smooth.yaml
# CHECK: plan.yaml:3:1: error: loss_parallel doesn't support label smoothing
# CHECK: smooth.yaml:[[#@LINE+1]]:2: note: this cross entropy smooths its labels
{loss: {name: cross_entropy, label_smoothing: 0.1}, optimizer: SGD}

//--- mse.yaml
# CHECK: plan.yaml:3:1: remark: loss_parallel changes nothing: the model has no cross entropy
{loss: mse, optimizer: SGD}

//--- target.yaml
mesh: {tp: 2}
# CHECK: target.yaml:[[#@LINE+2]]:1: error: loss_parallel needs a target that is replicated over 'tp', but it comes as Shard(0)
# CHECK: target.yaml:[[#@LINE+2]]:{{.*}}: note: by desired_input_layouts here
loss_parallel: true
plan: {"": {style: PrepareModuleInput, input_layouts: [Shard(1), Replicate], desired_input_layouts: [Shard(1), Shard(0)]}}
