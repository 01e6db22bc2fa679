// Former names of arguments of styles are accepted, with a remark, and printed as the current ones.
// RUN: split-file %s %t
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/former.yaml 2>&1 | FileCheck %t/former.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/former.yaml -o %t/former.mlir
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/today.yaml -o %t/today.mlir
// RUN: sed -E 's/(former|today).yaml:[0-9:]+//' %t/former.mlir > %t/former.txt
// RUN: sed -E 's/(former|today).yaml:[0-9:]+//' %t/today.mlir | diff %t/former.txt -
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-print-plan="plan=%t/former.yaml format=python" 2>/dev/null | FileCheck %t/former.yaml --check-prefix=PYTHON
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/invalid.yaml -o %t/out.mlir 2>&1 | FileCheck %t/invalid.yaml --implicit-check-not=error:

//--- former.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+3]]:60: remark: 'output_layouts' of PrepareModuleInput is called 'desired_input_layouts' today
# CHECK: :[[#@LINE+2]]:89: remark: 'use_local' of PrepareModuleInput is called 'use_local_output' today
# PYTHON: "": PrepareModuleInput(input_layouts=Shard(0), desired_input_layouts=Replicate(), use_local_output=False)
  "": {style: PrepareModuleInput, input_layouts: Shard(0), output_layouts: Replicate(), use_local: false}
# CHECK: :[[#@LINE+4]]:34: remark: 'output_shard' of ColwiseParallel is called 'output_layouts' today
# CHECK: :[[#@LINE+3]]:61: remark: 'input_shard' of ColwiseParallel is called 'input_layouts' today
# CHECK: :[[#@LINE+2]]:87: remark: 'use_local' of ColwiseParallel is called 'use_local_output' today
# PYTHON: "net1": ColwiseParallel(output_layouts=Replicate(), input_layouts=Replicate(), use_local_output=True)
  net1: {style: ColwiseParallel, output_shard: Replicate(), input_shard: Replicate(), use_local: true}
# What came in is today's output_layouts, what goes out today's desired_output_layouts.
# CHECK: :[[#@LINE+2]]:38: remark: 'input_layouts' of PrepareModuleOutput is called 'output_layouts' today
# CHECK: :[[#@LINE+1]]:64: remark: 'output_layouts' of PrepareModuleOutput is called 'desired_output_layouts' today
  net2: {style: PrepareModuleOutput, input_layouts: Replicate, output_layouts: Shard(0)}

//--- today.yaml
mesh: {tp: 2}
plan:
  "": {style: PrepareModuleInput, input_layouts: Shard(0), desired_input_layouts: Replicate, use_local_output: false}
  net1: {style: ColwiseParallel, output_layouts: Replicate, input_layouts: Replicate, use_local_output: true}
  net2: {style: PrepareModuleOutput, output_layouts: Replicate, desired_output_layouts: Shard(0)}

//--- invalid.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:60: error: ColwiseParallel has 'output_layouts' twice: by today's name and a former one
  net1: {style: ColwiseParallel, output_layouts: Shard(0), output_shard: Shard(0)}
# CHECK: :[[#@LINE+1]]:37: error: desired_input_layouts needs input_layouts beside it
  net2: {style: PrepareModuleInput, output_layouts: Replicate}
