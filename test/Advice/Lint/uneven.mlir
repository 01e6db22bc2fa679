// Sizes that the ranks don't divide are allowed, with a warning.
// RUN: split-file %s %t
// RUN: tp-opt %S/../../Plan/Inputs/mlp.mlir --tp-apply-plan=plan=%t/plan.yaml -o /dev/null 2>&1 | FileCheck %t/plan.yaml --implicit-check-not=warning:
// RUN: not tp-opt %S/../../Plan/Inputs/mlp.mlir --tp-apply-plan="plan=%t/plan.yaml strict=true" -o %t/out.mlir 2>&1 | FileCheck %t/strict.check
// RUN: not tp-opt %S/../../Plan/Inputs/mlp.mlir --tp-parallelize="plan=%t/plan.yaml strict=true" -o %t/out.mlir 2>&1 | FileCheck %t/strict.check
// RUN: not ls %t/out.mlir

//--- plan.yaml
mesh: {tp: 4}
plan:
# CHECK: :[[#@LINE+4]]:3: warning: dimension 0 of 'net2.weight' has size 10, not divisible by mesh dimension 'tp' of size 4: its ranks get 3, 3, 3, 1 [uneven]
# CHECK: :[[#@LINE+3]]:3: note: cost: the first ranks hold 32 bytes more than an even split would give them
# CHECK: :[[#@LINE+2]]:3: note: fix: use a size that divides evenly: 8 and 12; or a size of the mesh dimension that divides 10: 2, 5, 10
# CHECK: :[[#@LINE+1]]:3: note: the same holds in 2 more places
  net2: ColwiseParallel

//--- strict.check
CHECK: plan.yaml:7:3: error: dimension 0 of 'net2.weight' has size 10, not divisible
