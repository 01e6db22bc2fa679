// Large parameters that no entry of the plan places.
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/plan.yaml -o /dev/null 2>&1 | FileCheck %t/plan.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/meant.yaml -o /dev/null 2>&1 | count 0
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/ddp.yaml -o /dev/null 2>&1 | FileCheck %t/ddp.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/fsdp.yaml -o /dev/null 2>&1 | count 0

//--- model.mlir
func.func @main(%x: tensor<4x1024xf32>) -> tensor<4x1024xf32> {
  %r0 = nn.module "up" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<4x1024xf32>):
    %w = nn.parameter "up.weight" : tensor<1024x1024xf32>
    %y = nn.linear %input, %w : (tensor<4x1024xf32>, tensor<1024x1024xf32>) -> tensor<4x1024xf32>
    nn.yield %y : tensor<4x1024xf32>
  } : (tensor<4x1024xf32>) -> tensor<4x1024xf32>
  %r1 = nn.module "down" class "Linear" (%r0 as "input" at 0) {
  ^bb0(%input: tensor<4x1024xf32>):
    %w = nn.parameter "down.weight" : tensor<1024x1024xf32>
    %y = nn.linear %input, %w : (tensor<4x1024xf32>, tensor<1024x1024xf32>) -> tensor<4x1024xf32>
    nn.yield %y : tensor<4x1024xf32>
  } : (tensor<4x1024xf32>) -> tensor<4x1024xf32>
  // The propagation places it.
  %cache = nn.parameter "cache" frozen {tp.buffer} : tensor<4x1048576xf32>
  %next = nn.neg %cache : tensor<4x1048576xf32>
  nn.assign "cache", %next init 0.000000e+00 : tensor<4x1048576xf32>
  return %r1 : tensor<4x1024xf32>
}

//--- plan.yaml
# CHECK: plan.yaml:{{.*}}: warning: no entry matches 'down.weight': each rank holds all of it [replicated-parameter]
# CHECK: note: cost: each rank holds 3 MiB (3145728 bytes) more than its share
# CHECK: note: fix: give the module a style, or write 'down.weight: [Replicate]' if that is intended
mesh: {tp: 4}
plan:
  up: {style: ColwiseParallel, output_layouts: Replicate}

//--- meant.yaml
mesh: {tp: 4}
plan:
  up: {style: ColwiseParallel, output_layouts: Replicate}
  down.weight: [Replicate]

//--- ddp.yaml
# Over dp it is replicated as it should be.
# CHECK: warning: no entry matches 'down.weight'
# CHECK: note: cost: each rank holds 3 MiB (3145728 bytes) more than its share
mesh: {dp: 2, tp: 4}
data_parallel: {dp: ddp}
plan:
  up: {style: ColwiseParallel, output_layouts: Replicate}

//--- fsdp.yaml
# FSDP splits all.
mesh: {dp: 2, tp: 4}
data_parallel: {dp: fsdp}
plan:
  up: {style: ColwiseParallel, output_layouts: Replicate}
