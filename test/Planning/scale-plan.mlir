// What a plan costs on other numbers of ranks: one dimension of its mesh has the sizes 1, 2, 4, ….

// RUN: rm -rf %t && split-file %s %t && cd %t
// RUN: tp-opt model.mlir --tp-scale-plan="plan=tp.yaml machine=h100-nvlink max-ranks=64" | FileCheck %s --check-prefix=TABLE
// TABLE:      tp:
// TABLE-NEXT: size  ranks  predicted  bytes per rank  bytes received by all  collectives
// TABLE-NEXT: 1 1 {{[0-9.]+}} ms [[#]] 0 0
// TABLE-NEXT: 2 2 {{[0-9.]+}} ms [[#]] 2048 1
// The plan's own size is there, too.
// TABLE-NEXT: 3 3 {{[0-9.]+}} ms [[#]] 4096 1
// TABLE-NEXT: 4 4 {{[0-9.]+}} ms [[#]] 6144 1
// TABLE-NEXT: 8 8 {{[0-9.]+}} ms [[#]] 14336 1
// TABLE-NEXT: 16 left out: dimension 0 of 'up.weight' has size 24, not divisible by mesh dimension 'tp' of size 16: its ranks get {{.*}}
// TABLE-NEXT: 32 left out: {{.*}}
// TABLE-NEXT: 64 left out: {{.*}}
// TABLE-NOT: {{.}}

// One dimension after the other; a batch isn't split unevenly. The JSON has the cost of the plan itself, which is the report's.
// RUN: tp-opt model.mlir --tp-scale-plan="plan=both.yaml machine=h100-nvlink max-ranks=8 report=scaling.json" | count 0
// RUN: FileCheck %s --check-prefix=JSON --input-file=scaling.json
// JSON:      "bytes_received": 4096,
// JSON:      "curves": [
// JSON:          "axis": "dp",
// JSON-NEXT:     "left_out": [
// JSON-NEXT:       {
// JSON-NEXT:         "reason": "a batch of 2 isn't divisible by 4",
// JSON-NEXT:         "size": 4
// JSON-NEXT:       }
// JSON:            "memory_bytes": [[#]],
// JSON-NEXT:       "ranks": 2,
// JSON-NEXT:       "seconds": {{.*}},
// JSON-NEXT:       "size": 1
// JSON:            "ranks": 4,
// JSON:            "size": 2
// JSON:          "axis": "tp",
// JSON-NEXT:     "left_out": [],
// JSON:      "machine": "h100-nvlink",
// RUN: tp-opt model.mlir --tp-parallelize="plan=both.yaml machine=h100-nvlink html=page.html scaling=scaling.json" -o ranks.mlir
// RUN: %python %S/../Advice/Inputs/page_data.py page.html other-ranks scaling.json

// A training step.
// RUN: tp-opt model.mlir --tp-scale-plan="plan=tp.yaml machine=h100-nvlink max-ranks=2 train=train.yaml" | FileCheck %s --check-prefix=TRAIN
// TRAIN: 2 2 {{[0-9.]+}} ms

// The stages of a pipeline aren't varied.
// RUN: tp-opt model.mlir --tp-scale-plan="plan=pipeline.yaml machine=cpu max-ranks=4" | FileCheck %s --check-prefix=PIPELINE
// PIPELINE:     {{^}}tp while pp = 2:
// PIPELINE-NOT: {{^}}pp
// RUN: tp-opt model.mlir --tp-scale-plan="plan=stages.yaml machine=cpu" | FileCheck %s --check-prefix=STAGES
// STAGES: nothing is varied: the mesh has only the dimension of a pipeline

// RUN: not tp-opt model.mlir --tp-scale-plan="machine=cpu" 2>&1 | FileCheck %s --check-prefix=NO-PLAN
// NO-PLAN: error: tp-scale-plan needs the option 'plan'
// RUN: not tp-opt model.mlir --tp-scale-plan="plan=tp.yaml" 2>&1 | FileCheck %s --check-prefix=NO-MACHINE
// NO-MACHINE: error: tp-scale-plan needs the option 'machine'
// RUN: not tp-opt model.mlir --tp-scale-plan="plan=tp.yaml machine=cpu max-ranks=0" 2>&1 | FileCheck %s --check-prefix=RANKS
// RANKS: error: the option 'max-ranks' must be at least 1, not 0
// RUN: not tp-opt model.mlir --tp-apply-plan=plan=tp.yaml --tp-scale-plan="plan=tp.yaml machine=cpu" 2>&1 | FileCheck %s --check-prefix=AGAIN
// AGAIN: error: the model has been given a plan before
// RUN: sed 's/up:/upper:/' tp.yaml > wrong.yaml
// RUN: not tp-opt model.mlir --tp-scale-plan="plan=wrong.yaml machine=cpu" 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: wrong.yaml:3:3: error: {{.*}}upper
// RUN: sed 's/{tp: 3}/{dims: {tp: 3}, devices: [0, 2, 1]}/' tp.yaml > listed.yaml
// RUN: not tp-opt model.mlir --tp-scale-plan="plan=listed.yaml machine=cpu" 2>&1 | FileCheck %s --check-prefix=LISTED
// LISTED: error: 'listed.yaml' lists the ranks of its mesh, so it can't be scaled to others

//--- tp.yaml
mesh: {tp: 3}
plan:
  up: ColwiseParallel
  down: RowwiseParallel

//--- both.yaml
mesh: {dp: 2, tp: 2}
data_parallel: {dp: ddp}
mesh_dim: tp
plan:
  up: ColwiseParallel
  down: RowwiseParallel

//--- pipeline.yaml
mesh: {pp: 2, tp: 2}
mesh_dim: tp
pipeline: {pp: {split: [down], microbatches: 2}}
plan:
  up: ColwiseParallel

//--- stages.yaml
mesh: {pp: 2}
pipeline: {pp: {split: [down], microbatches: 2}}

//--- train.yaml
loss: mse
optimizer: {name: SGD, lr: 0.1}

//--- model.mlir
func.func @main(%x: tensor<2x32xf32> {tp.name = "x"}) -> (tensor<2x128xf32> {tp.name = "y"}) {
  %0 = nn.module "up" class "Linear" (%x as "input" at 0) {
  ^bb0(%in: tensor<2x32xf32>):
    %w = nn.parameter "up.weight" : tensor<24x32xf32>
    %y = nn.linear %in, %w : (tensor<2x32xf32>, tensor<24x32xf32>) -> tensor<2x24xf32>
    nn.yield %y : tensor<2x24xf32>
  } : (tensor<2x32xf32>) -> tensor<2x24xf32>
  %1 = nn.module "down" class "Linear" (%0 as "input" at 0) {
  ^bb0(%in: tensor<2x24xf32>):
    %w = nn.parameter "down.weight" : tensor<128x24xf32>
    %y = nn.linear %in, %w : (tensor<2x24xf32>, tensor<128x24xf32>) -> tensor<2x128xf32>
    nn.yield %y : tensor<2x128xf32>
  } : (tensor<2x24xf32>) -> tensor<2x128xf32>
  return %1 : tensor<2x128xf32>
}
