// The page has what other plans cost, and this one on other numbers of ranks, if that is about the same ranks and machine.

// RUN: split-file %s %t && cd %t
// RUN: tp-opt program.mlir --tp-predict-memory --tp-report="machine=cpu html=page.html alternatives=plans.json" -o /dev/null
// RUN: %python %S/Inputs/page_data.py page.html other-plans plans.json

// RUN: tp-opt program.mlir --tp-predict-memory --tp-report="machine=cpu file=report.json" -o /dev/null
// RUN: %python make_scaling.py
// RUN: tp-opt program.mlir --tp-predict-memory --tp-report="machine=cpu html=page.html scaling=scaling.json" -o /dev/null
// RUN: %python %S/Inputs/page_data.py page.html other-ranks scaling.json

// RUN: rm page.html
// RUN: not tp-opt program.mlir --tp-predict-memory --tp-report="machine=cpu alternatives=plans.json" 2>&1 | FileCheck %s --check-prefix=NO-PAGE
// NO-PAGE: error: the option 'alternatives' is for the page, which needs the option 'html'
// RUN: not tp-opt program.mlir --tp-report="html=page.html alternatives=plans.json" 2>&1 | FileCheck %s --check-prefix=NO-MACHINE
// NO-MACHINE: error: alternatives 'plans.json': other plans can only be shown beside a prediction, which needs a machine
// RUN: not tp-opt program.mlir --tp-report="machine=cpu html=page.html scaling=scaling.json" 2>&1 | FileCheck %s --check-prefix=NO-MEMORY
// NO-MEMORY: error: scaling 'scaling.json': other numbers of ranks can only be shown beside a prediction of memory; run tp-predict-memory before tp-report
// RUN: not tp-opt program.mlir --tp-predict-memory --tp-report="machine=h100-nvlink html=page.html alternatives=plans.json" 2>&1 | FileCheck %s --check-prefix=MACHINE
// MACHINE: error: alternatives 'plans.json': its plans are for the machine 'cpu', the report is for 'h100-nvlink'
// RUN: sed 's/"size": 2/"size": 8/' plans.json > ranks.json
// RUN: not tp-opt program.mlir --tp-predict-memory --tp-report="machine=cpu html=page.html alternatives=ranks.json" 2>&1 | FileCheck %s --check-prefix=RANKS
// RANKS: error: alternatives 'ranks.json': its plans are for 8 ranks, the report is of 2
// RUN: sed 's/"schema": 1/"schema": 7/' plans.json > newer.json
// RUN: not tp-opt program.mlir --tp-predict-memory --tp-report="machine=cpu html=page.html alternatives=newer.json" 2>&1 | FileCheck %s --check-prefix=NEWER
// NEWER: error: alternatives 'newer.json': its schema isn't 1
// RUN: sed 's/"role"/"use"/' plans.json > role.json
// RUN: not tp-opt program.mlir --tp-predict-memory --tp-report="machine=cpu html=page.html alternatives=role.json" 2>&1 | FileCheck %s --check-prefix=PLANS
// RUN: not tp-opt program.mlir --tp-predict-memory --tp-report="machine=cpu html=page.html alternatives=scaling.json" 2>&1 | FileCheck %s --check-prefix=PLANS
// PLANS: error: alternatives '{{.*}}.json': this isn't what tp-auto-plan writes with 'report'
// RUN: not tp-opt program.mlir --tp-predict-memory --tp-report="machine=cpu html=page.html scaling=plans.json" 2>&1 | FileCheck %s --check-prefix=SCALING
// SCALING: error: scaling 'plans.json': this isn't what tp-scale-plan writes with 'report'
// RUN: sed 's/"name": "tp"/"name": "dp"/' scaling.json > mesh.json
// RUN: not tp-opt program.mlir --tp-predict-memory --tp-report="machine=cpu html=page.html scaling=mesh.json" 2>&1 | FileCheck %s --check-prefix=MESH
// MESH: error: scaling 'mesh.json': its plan has another mesh than the report
// RUN: sed 's/"memory_bytes": [0-9]*/"memory_bytes": 1/' scaling.json > other.json
// RUN: not tp-opt program.mlir --tp-predict-memory --tp-report="machine=cpu html=page.html scaling=other.json" 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: scaling 'other.json': it predicts another program than the report, or one with other options of tp-parallelize
// RUN: not ls page.html

//--- plans.json
{"schema": 1, "machine": "cpu", "memory_limit": 1000000, "seconds": 0.5, "memory_bytes": 512, "bytes_received": 64, "collectives": 1,
 "plan": "mesh: {tp: 2}\n", "axes": [{"name": "tp", "size": 2, "role": "tensor"}], "entries": [],
 "alternatives": [{"seconds": 0.75, "memory_bytes": 256, "bytes_received": 128, "collectives": 2, "plan": "mesh: {dp: 2}\n",
                   "axes": [{"name": "dp", "size": 2, "role": "fsdp"}], "entries": []}]}

//--- make_scaling.py
import json
report = json.load(open("report.json"))
prediction = report["prediction"]
cost = {"seconds": prediction["seconds"], "memory_bytes": prediction["by_class"][0]["memory"]["total"], "bytes_received": 640, "collectives": 1}
scaling = {"schema": 1, "machine": "cpu", "mesh": {"axes": report["mesh"]["axes"]}, **cost,
           "curves": [{"axis": "tp", "points": [{"size": 2, "ranks": 2, **cost}], "left_out": [{"size": 4, "reason": "</script>"}]}]}
json.dump(scaling, open("scaling.json", "w"))

//--- program.mlir
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<8x8xf32> {tp.name = "x", tp.global_type = tensor<8x16xf32>, tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> tensor<8x10xf32> {
  %w = nn.parameter "net2.weight" {tp.global_type = tensor<10x16xf32>, tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<10x8xf32>
  %0 = nn.linear %x, %w : (tensor<8x8xf32>, tensor<10x8xf32>) -> tensor<8x10xf32>
  %1 = tp.all_reduce sum %0 over @mesh {tp} {fqn = "net2", reason = "plan"} : tensor<8x10xf32>
  return %1 : tensor<8x10xf32>
}
