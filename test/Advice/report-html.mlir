// RUN: rm -f %t.html && tp-opt %s --tp-report="machine=cpu file=%t.json html=%t.html" -o /dev/null
// The page has the data of the JSON report, and nothing in them ends its script.
// RUN: %python %S/Inputs/page_data.py %t.html > %t.data && FileCheck %s --check-prefix=DATA < %t.data
// RUN: %python %S/Inputs/page_data.py %t.html report %t.json
// DATA: report of mesh tp=2, 1 collective of '</script><script>alert(1)</script>'
// DATA: no explanation
// It has all of its parts, and refers to no other file.
// RUN: not grep -E '@(STYLE|SCRIPTS|CHART|CHART_LICENSE|GRAPH|GRAPH_LICENSE|MEASURED|ALTERNATIVES|SCALING)@|(src|href)="[^#]' %t.html

// RUN: tp-compile %s --html=%t.compiled.html -o %t.tpx && %python %S/Inputs/page_data.py %t.compiled.html | FileCheck %s --check-prefix=DATA

// An explanation of the same program, whose values lose their chains and share what they have in common.
// RUN: echo '{"schema": 1, "mesh": {"axes": [{"name": "tp", "size": 2}]}, "redistributions": [], "totals": {"bytes": 0}, "values": [{"name": "argument 0", "placements": ["Replicate"], "chains": [1]}, {"name": "nn.relu (a)", "op": "nn.relu", "fqn": "a", "operands": [0], "placements": ["Replicate"]}, {"name": "nn.relu (b)", "op": "nn.relu", "fqn": "b", "operands": [1], "placements": ["Replicate"]}], "trials": 3}' > %t.explained
// RUN: tp-opt %s --tp-report="html=%t.html explanation=%t.explained" -o /dev/null
// RUN: %python %S/Inputs/page_data.py %t.html | FileCheck %s --check-prefix=EXPLAINED
// EXPLAINED: report of mesh tp=2
// EXPLAINED: explanation: mesh, redistributions, schema, totals, trials, values
// RUN: echo '{"kinds": [{"placements": ["Replicate"]}, {"op": "nn.relu", "placements": ["Replicate"]}], "fqns": ["", "a", "b"], "rows": [[0, 0, [], "argument 0"], [1, 1, [0]], [1, 2, [1]]]}' > %t.values
// RUN: %python %S/Inputs/page_data.py %t.html explanation.values %t.values

// Errors, after which there is no page and no report.
// RUN: rm -f %t.html %t.json
// RUN: not tp-opt %s --tp-report="explanation=%t.explained" -o /dev/null 2>&1 | FileCheck %s --check-prefix=NO-PAGE
// NO-PAGE: error: the option 'explanation' is for the page, which needs the option 'html'
// RUN: sed 's/"size": 2/"size": 4/' %t.explained > %t.other
// RUN: not tp-opt %s --tp-report="file=%t.json html=%t.html explanation=%t.other" -o /dev/null 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: explanation '{{.*}}.other': it explains the mesh tp=4, the report is of tp=2
// RUN: echo '{"schema": 2, "mesh": {"axes": []}, "redistributions": []}' > %t.newer
// RUN: not tp-opt %s --tp-report="file=%t.json html=%t.html explanation=%t.newer" -o /dev/null 2>&1 | FileCheck %s --check-prefix=NEWER
// NEWER: error: explanation '{{.*}}.newer': its schema isn't 1
// RUN: sed 's/"values": \[/"values": [1, /' %t.explained > %t.number
// RUN: not tp-opt %s --tp-report="file=%t.json html=%t.html explanation=%t.number" -o /dev/null 2>&1 | FileCheck %s --check-prefix=NUMBER
// NUMBER: error: explanation '{{.*}}.number': it has no values
// RUN: echo '[1, 2]' > %t.list
// RUN: not tp-opt %s --tp-report="file=%t.json html=%t.html explanation=%t.list" -o /dev/null 2>&1 | FileCheck %s --check-prefix=LIST
// LIST: error: explanation '{{.*}}.list': this isn't what tp-explain writes with 'format=json'
// RUN: tp-opt %s --tp-report="file=%t.report" -o /dev/null
// RUN: not tp-opt %s --tp-report="file=%t.json html=%t.html explanation=%t.report" -o /dev/null 2>&1 | FileCheck %s --check-prefix=REPORT
// REPORT: error: explanation '{{.*}}.report': this isn't what tp-explain writes with 'format=json'
// RUN: sed 's/"bytes": 0/"bytes": 8/' %t.explained > %t.program
// RUN: not tp-opt %s --tp-report="file=%t.json html=%t.html explanation=%t.program" -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROGRAM
// PROGRAM: error: explanation '{{.*}}.program': it explains another program, with 0 redistributions of 8 bytes; the report has 0 of 0 bytes
// RUN: echo '{"schema": ' > %t.half
// RUN: not tp-opt %s --tp-report="file=%t.json html=%t.html explanation=%t.half" -o /dev/null 2>&1 | FileCheck %s --check-prefix=HALF
// HALF: error: explanation '{{.*}}.half': [2:0, byte=12]: Unexpected EOF
// RUN: not tp-opt %s --tp-report="file=%t.json html=%t.html explanation=%t.missing" -o /dev/null 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: {{.*}}explanation{{.*}}No such file or directory
// RUN: not tp-opt %s --tp-report="file=%t.json html=%t.missing/r.html" -o /dev/null 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: error: cannot write '{{.*}}r.html': No such file or directory
// RUN: not ls %t.html
// RUN: not ls %t.json
// RUN: not tp-opt %s --tp-report="file=%t.same html=%t.same" -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAME
// SAME: error: {{.*}}.same

tp.mesh @mesh(tp = 2)

func.func @main(%x: tensor<8x8xf32> {tp.name = "x", tp.global_type = tensor<8x16xf32>, tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> tensor<8x10xf32> {
  %w = nn.parameter "net2.weight" {tp.global_type = tensor<10x16xf32>, tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<10x8xf32>
  %0 = nn.linear %x, %w : (tensor<8x8xf32>, tensor<10x8xf32>) -> tensor<8x10xf32>
  %1 = tp.all_reduce sum %0 over @mesh {tp} {fqn = "</script><script>alert(1)</script>", reason = "<!-- <script> & @EXPLANATION@"} : tensor<8x10xf32>
  return %1 : tensor<8x10xf32>
}
