// The effect of a plan on a model, as text, JSON and a PyTorch program.
// RUN: split-file %s %t
// RUN: tp-opt %S/../../Plan/Inputs/mlp.mlir --tp-print-plan=plan=%t/plan.yaml | FileCheck %t/text.check --match-full-lines --strict-whitespace
// RUN: tp-opt %S/../../Plan/Inputs/mlp.mlir --tp-print-plan="plan=%t/plan.yaml format=json" -o %t/unchanged.mlir > %t/plan.json
// RUN: %python -c "import json, sys; print(json.dumps(json.load(open(sys.argv[1]))['modules'][1]))" %t/plan.json | FileCheck %t/json.check
// RUN: tp-opt %S/../../Plan/Inputs/mlp.mlir -o %t/same.mlir
// RUN: diff %t/same.mlir %t/unchanged.mlir
// RUN: tp-opt %S/../../Plan/Inputs/mlp.mlir --tp-print-plan="plan=%t/plan.yaml format=python" -o /dev/null > %t/plan.py
// RUN: %python -m py_compile %t/plan.py
// RUN: FileCheck %t/python.check --input-file=%t/plan.py --match-full-lines
// RUN: tp-opt %S/../../Plan/Inputs/fused.mlir --tp-print-plan="plan=%t/old.yaml format=python" -o /dev/null | FileCheck %t/old.yaml
// RUN: not tp-opt %S/../../Plan/Inputs/mlp.mlir --tp-print-plan -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOPLAN
// NOPLAN: error: tp-print-plan needs the option plan=FILE

//--- plan.yaml
mesh: {dims: {dp: 2, tp: 2}, devices: [[0, 2], [1, 3]]}
parallelize:
  - mesh_dim: tp
    plan:
      "net[1]": {style: ColwiseParallel, input_layouts: Shard(0), use_local_output: false}
      net2: {style: PrepareModuleInput, input_layouts: [Shard(-1)], desired_input_layouts: [Replicate]}
  - mesh_dim: [dp, tp]
    plan: {net2.weight: [Shard(1), Replicate]}

//--- text.check
CHECK:mesh dp=2 tp=2
CHECK-NEXT:<root>: MLP
CHECK-NEXT:net1: Linear, ColwiseParallel over tp (plan.yaml:5:7)
CHECK-NEXT:  input 'input'            8x10xf32         (-, Shard(0)) -> (-, Replicate)
CHECK-NEXT:  weight                   16x10xf32        (Replicate, Shard(0)), 320 of 640 bytes per rank
CHECK-NEXT:  bias                     16xf32           (Replicate, Shard(0)), 32 of 64 bytes per rank
CHECK-NEXT:  output 0                 8x16xf32         (-, Shard(1))
CHECK-NEXT:net2: Linear, PrepareModuleInput over tp (plan.yaml:6:7)
CHECK-NEXT:  input 'input'            8x16xf32         (-, Shard(1)) -> (-, Replicate)
CHECK-NEXT:  weight                   10x16xf32        (Shard(1), Replicate), 320 of 640 bytes per rank
CHECK-NEXT:  bias                     10xf32           (Replicate, Replicate), 40 of 40 bytes per rank, no entry

//--- json.check
CHECK: {"fqn": "net1", "class": "Linear", "styles": [{"style": "ColwiseParallel", "mesh_dim": "tp", "pattern": "net[1]", "place": "plan.yaml:5:7"}],
CHECK-SAME: "inputs": [{"name": "input", "shape": [8, 10], "dtype": "f32", "declared": [null, "Shard(0)"], "placements": [null, "Replicate"]}],
CHECK-SAME: "outputs": [{"shape": [8, 16], "dtype": "f32", "declared": [null, null], "placements": [null, "Shard(1)"]}],
CHECK-SAME: "parameters": [{"fqn": "net1.weight", "shape": [16, 10], "dtype": "f32", "placements": ["Replicate", "Shard(0)"], "bytes": 640, "bytes_per_rank": 320, "place": "plan.yaml:5:7"}

//--- python.check
CHECK: mesh = DeviceMesh("cuda", {{\[\[}}0, 2], [1, 3]], mesh_dim_names=("dp", "tp"))
CHECK-NEXT: parallelize_module(model, mesh["tp"], {
CHECK-NEXT:     "net[1]": ColwiseParallel(input_layouts=Shard(0), use_local_output=False),
CHECK-NEXT:     "net2": PrepareModuleInput(input_layouts=(Shard(-1),), desired_input_layouts=(Replicate(),)),
CHECK-NEXT: })
CHECK-NEXT: parallelize_module(model, mesh["dp", "tp"]._flatten(), {
CHECK-NEXT:     # "net2.weight": distribute_tensor(…, [Shard(1), Replicate()])
CHECK-NEXT: })

// Styles that today's PyTorch doesn't have become those that it has.
//--- old.yaml
# CHECK: parallelize_module(model, mesh["tp"], {
# CHECK-NEXT:     # "gate_up": PyTorch has no packed_colwise
# CHECK-NEXT:     "down": RowwiseParallel(input_layouts=Replicate()),
# CHECK-NEXT: })
mesh: {tp: 2}
match: hf
plan: {gate_up: packed_colwise, down: rowwise_rep}
