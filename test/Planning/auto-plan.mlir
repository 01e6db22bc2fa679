// The plan with the least predicted time: which mesh, and what is split.

// RUN: rm -rf %t && mkdir %t

// With few examples, the weights are split: Megatron's pair.
// RUN: tp-opt %s --tp-auto-plan="mesh=tp=4 machine=cpu" | FileCheck %s --check-prefix=PAIR --match-full-lines
// RUN: tp-opt %s --tp-auto-plan="ranks=4 machine=cpu" | FileCheck %s --check-prefix=PAIR --match-full-lines
// PAIR:      # tp-auto-plan, predicted for cpu: {{.*}} ms, {{.*}} bytes per rank, 1 collective, 98304 bytes received by all ranks
// PAIR-NEXT: # lower bound of all plans: {{.*}} ms
// PAIR-NEXT: mesh: {tp: 4}
// PAIR-NEXT: mesh_dim: tp
// PAIR-NEXT: plan:
// PAIR-NEXT:   "mlp.w[12]": ColwiseParallel
// PAIR-NEXT:   mlp.w3: RowwiseParallel
// PAIR:      # {{tp|dp}}=4 fsdp: {{.*}}

// The plan is one that can be applied, and the program is proven.
// RUN: tp-opt %s --tp-auto-plan="mesh=tp=4 machine=cpu file=%t/plan.yaml report=%t/plan.json" | count 0
// RUN: tp-opt %s --tp-parallelize=plan=%t/plan.yaml -o %t/ranks.mlir
// RUN: tp-opt %t/ranks.mlir --tp-verify-spmd=reference=%s -o /dev/null
// RUN: FileCheck %s --check-prefix=JSON < %t/plan.json
// JSON:      "alternatives": [
// JSON:          "role": "tensor",
// JSON-NEXT:     "size": 4
// JSON:      "entries": [
// JSON-NEXT:   {
// JSON-NEXT:     "arguments": {},
// JSON-NEXT:     "pattern": "mlp.w[12]",
// JSON-NEXT:     "style": "ColwiseParallel"
// JSON:      "memory_limit":
// JSON:      "plan": "mesh: {tp: 4}\n

// With many examples, the batch is split. If that needs too much memory, weights are split as well.
// RUN: sed 's/tensor<4x/tensor<4096x/g' %s > %t/large.mlir
// RUN: tp-opt %t/large.mlir --tp-auto-plan="ranks=4 machine=ethernet-100g" | FileCheck %s --check-prefix=BATCH
// RUN: tp-opt %t/large.mlir --tp-auto-plan="ranks=4 machine=ethernet-100g memory-limit=90000000" | FileCheck %s --check-prefix=LESS
// BATCH:      mesh: {dp: 4}
// BATCH-NEXT: data_parallel:
// BATCH-NEXT:   dp: ddp
// BATCH-NEXT: # alternatives:
// LESS:      mesh: {dp: 2, tp: 2}
// LESS-NEXT: data_parallel:
// LESS-NEXT:   dp: ddp
// LESS-NEXT: mesh_dim: tp
// LESS-NEXT: plan:

// RUN: not tp-opt %s --tp-auto-plan="ranks=4 machine=cpu memory-limit=1000" 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: not tp-opt %s --tp-auto-plan="machine=cpu" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not tp-opt %s --tp-auto-plan="mesh=tp=4 ranks=4 machine=cpu" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not tp-opt %s --tp-auto-plan="mesh=tp machine=cpu" 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not tp-opt %s --tp-auto-plan="mesh=tp=2,tp=2 machine=cpu" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not tp-opt %s --tp-auto-plan="ranks=-4 machine=cpu" 2>&1 | FileCheck %s --check-prefix=RANKS
// RUN: not tp-opt %s --tp-auto-plan="ranks=1000000000000 machine=cpu" 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not tp-opt %s --tp-auto-plan="mesh=dp=100000,tp=100000 machine=cpu" 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: tp-opt %s --tp-auto-plan="ranks=4 machine=cpu alternatives=4294967295 memory-limit=18446744073709551615" | FileCheck %s --check-prefix=PAIR
// RUN: not tp-opt %s --tp-auto-plan="ranks=4" 2>&1 | FileCheck %s --check-prefix=MACHINE
// RUN: not tp-opt %s --tp-auto-plan="ranks=4 machine=none" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not tp-opt %s --tp-auto-plan="ranks=4 machine=cpu train=%t/none.yaml" 2>&1 | FileCheck %s --check-prefix=TRAIN
// RUN: not tp-opt %s --tp-apply-plan=plan=%t/plan.yaml --tp-auto-plan="ranks=4 machine=cpu" 2>&1 | FileCheck %s --check-prefix=AGAIN
// LIMIT: error: no plan fits: the memory limit is 1000 bytes per rank, and the plan that needs the least ({{.*}}=4 {{.*}}) needs {{[0-9]+}}; the largest value there is the {{(parameter|output|input) '.*'}}, of {{[0-9]+}} bytes
// NONE: error: tp-auto-plan needs either the option 'ranks', or 'mesh', as in mesh=dp=2,tp=4
// SIZE: error: the option 'mesh' needs NAME=SIZE for each dimension, as in mesh=dp=2,tp=4; found 'tp'
// TWICE: mesh:1:15: error: {{.*}}tp
// RANKS: error: the option 'ranks' must be at least 1, not -4
// MANY: error: plans are searched for at most 4096 ranks
// MACHINE: error: tp-auto-plan needs the option 'machine'
// UNKNOWN: error: no machine is called 'none'
// TRAIN: error: can't read the training file
// AGAIN: error: the model has been given a plan before

func.func @main(%x: tensor<4x1024xf32> {tp.name = "x"}) -> (tensor<4x1024xf32> {tp.name = "y"}) {
  %r = nn.module "mlp" class "MLP" (%x as "x" at 0) {
  ^bb0(%a: tensor<4x1024xf32>):
    %0 = nn.module "mlp.w1" class "Linear" (%a as "input" at 0) {
    ^bb0(%in: tensor<4x1024xf32>):
      %w = nn.parameter "mlp.w1.weight" : tensor<4096x1024xf32>
      %y = nn.linear %in, %w : (tensor<4x1024xf32>, tensor<4096x1024xf32>) -> tensor<4x4096xf32>
      nn.yield %y : tensor<4x4096xf32>
    } : (tensor<4x1024xf32>) -> tensor<4x4096xf32>
    %1 = nn.module "mlp.w2" class "Linear" (%a as "input" at 0) {
    ^bb0(%in: tensor<4x1024xf32>):
      %w = nn.parameter "mlp.w2.weight" : tensor<4096x1024xf32>
      %y = nn.linear %in, %w : (tensor<4x1024xf32>, tensor<4096x1024xf32>) -> tensor<4x4096xf32>
      nn.yield %y : tensor<4x4096xf32>
    } : (tensor<4x1024xf32>) -> tensor<4x4096xf32>
    %2 = nn.gelu %0 : tensor<4x4096xf32>
    %3 = nn.mul %2, %1 : (tensor<4x4096xf32>, tensor<4x4096xf32>) -> tensor<4x4096xf32>
    %4 = nn.module "mlp.w3" class "Linear" (%3 as "input" at 0) {
    ^bb0(%in: tensor<4x4096xf32>):
      %w = nn.parameter "mlp.w3.weight" : tensor<1024x4096xf32>
      %y = nn.linear %in, %w : (tensor<4x4096xf32>, tensor<1024x4096xf32>) -> tensor<4x1024xf32>
      nn.yield %y : tensor<4x1024xf32>
    } : (tensor<4x4096xf32>) -> tensor<4x1024xf32>
    nn.yield %4 : tensor<4x1024xf32>
  } : (tensor<4x1024xf32>) -> tensor<4x1024xf32>
  return %r : tensor<4x1024xf32>
}
