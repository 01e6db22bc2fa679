// The page has what the first rank of each class did in the run of median length, in seconds from its start: computation that
// follows at once is one slice, and a collective waits until its last rank arrives. One that overlaps with computation is there
// as a whole, and with the time that the rank spent on it alone.
// RUN: split-file %s %t && cd %t
// RUN: tp-opt program.mlir --tp-report="html=page.html trace=trace.json" -o /dev/null
// RUN: %python %S/Inputs/page_data.py page.html | FileCheck %s
// CHECK: measured: run 1 of 3, [{"collectives": [{"arrival": 3e-06, "end": 8e-06, "id": 0, "start": 5e-06}], "compute": {{\[\[}}0, 3e-06]], "overlapped": [], "rank": 0, "seconds": 8e-06}]
// RUN: sed 's/"args": {"run": 1, "id": 0}/"args": {"run": 1, "id": 0, "waited_us": 4}/' trace.json > overlap.json
// RUN: tp-opt program.mlir --tp-report="html=overlap.html trace=overlap.json" -o /dev/null
// RUN: %python %S/Inputs/page_data.py overlap.html | FileCheck %s --check-prefix=OVERLAP
// OVERLAP: "collectives": [{"arrival": 4e-06, "end": 8e-06, "id": 0, "start": 5e-06}]
// OVERLAP-SAME: "overlapped": [{"arrival": 3e-06, "end": 8e-06, "id": 0, "start": 5e-06}]

// RUN: not tp-opt program.mlir --tp-report="trace=trace.json" 2>&1 | FileCheck %s --check-prefix=NO-PAGE
// NO-PAGE: error: the option 'trace' is for the page, which needs the option 'html'
// RUN: sed 's/"pid": 1/"pid": 4/' trace.json > ranks.json
// RUN: not tp-opt program.mlir --tp-report="html=none.html trace=ranks.json" 2>&1 | FileCheck %s --check-prefix=RANKS
// RANKS: error: trace 'ranks.json': it has the rank 4; the report is of 2 ranks
// RUN: sed 's/"args": {"run": 1, "id": 0}/"args": {"run": 1, "id": 7}/' trace.json > collectives.json
// RUN: not tp-opt program.mlir --tp-report="html=none.html trace=collectives.json" 2>&1 | FileCheck %s --check-prefix=COLLECTIVES
// COLLECTIVES: error: trace 'collectives.json': it has the collective 7; the report has 1
// RUN: echo '{"traceEvents": []}' > empty.json
// RUN: not tp-opt program.mlir --tp-report="html=none.html trace=empty.json" 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error: trace 'empty.json': it has no run
// RUN: echo '{"traceEvents": [{"ph": "X", "pid": 0}]}' > event.json
// RUN: not tp-opt program.mlir --tp-report="html=none.html trace=event.json" 2>&1 | FileCheck %s --check-prefix=EVENT
// EVENT: error: trace 'event.json': this isn't what tp-run writes with '--trace'
// RUN: not tp-opt program.mlir --tp-report="html=none.html trace=missing.json" 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: {{.*}}trace{{.*}}No such file or directory
// RUN: not ls none.html

//--- trace.json
{"displayTimeUnit": "ns", "traceEvents": [
 {"ph": "M", "name": "process_name", "pid": 0, "tid": 1, "args": {"name": "rank 0"}},
 {"ph": "X", "name": "linear", "cat": "compute", "pid": 0, "tid": 1, "ts": 0, "dur": 1, "args": {"run": 0}},
 {"ph": "X", "name": "run 1", "cat": "run", "pid": 0, "tid": 1, "ts": 10, "dur": 8, "args": {"run": 1}},
 {"ph": "X", "name": "linear", "cat": "compute", "pid": 0, "tid": 1, "ts": 10, "dur": 2, "args": {"run": 1}},
 {"ph": "X", "name": "relu", "cat": "compute", "pid": 0, "tid": 1, "ts": 12.1, "dur": 0.9, "args": {"run": 1}},
 {"ph": "X", "name": "all_reduce", "cat": "collective", "pid": 0, "tid": 2, "ts": 13, "dur": 5, "args": {"run": 1, "id": 0}},
 {"ph": "X", "name": "linear", "cat": "compute", "pid": 1, "tid": 1, "ts": 11, "dur": 4, "args": {"run": 1}},
 {"ph": "X", "name": "all_reduce", "cat": "collective", "pid": 1, "tid": 2, "ts": 15, "dur": 3, "args": {"run": 1, "id": 0}},
 {"ph": "s", "name": "all_reduce", "cat": "collective", "id": 1, "pid": 0, "tid": 2, "ts": 13},
 {"ph": "f", "name": "all_reduce", "cat": "collective", "id": 1, "pid": 1, "tid": 2, "ts": 15, "bp": "e"},
 {"ph": "X", "name": "linear", "cat": "compute", "pid": 0, "tid": 1, "ts": 30, "dur": 99, "args": {"run": 2}}]}

//--- program.mlir
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<8x8xf32> {tp.name = "x", tp.global_type = tensor<8x16xf32>, tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> tensor<8x10xf32> {
  %w = nn.parameter "net2.weight" {tp.global_type = tensor<10x16xf32>, tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<10x8xf32>
  %0 = nn.linear %x, %w : (tensor<8x8xf32>, tensor<10x8xf32>) -> tensor<8x10xf32>
  %1 = tp.all_reduce sum %0 over @mesh {tp} {fqn = "net2", reason = "plan"} : tensor<8x10xf32>
  return %1 : tensor<8x10xf32>
}
