// The predicted arena equals that of the manifest.
// RUN: tp-compile %s -o %t.json --emit=manifest --machine=h100-nvlink --report=%t.report.json | FileCheck %s
// RUN: %python -c "import json, sys; report, manifest = (json.load(open(path)) for path in sys.argv[1:]); print(*(rank['memory']['arena'] == manifest['programs'][0]['arena_bytes'] > 0 for rank in report['prediction']['by_class']))" %t.report.json %t.json | FileCheck %s --check-prefix=SAME
// RUN: not tp-compile %s -o %t.none --machine=abacus 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: not ls %t.none

// CHECK: predicted for h100-nvlink: {{.*}} (the slowest rank, 0 of 2)
// CHECK-NEXT: memory per rank: [[#]] bytes (parameters 0, inputs 256, outputs 256, arena [[#]]) of 80.0 GB
// SAME: True
// ERROR: error: no machine is called 'abacus'

tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = nn.linear %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = tp.all_reduce sum %0 over @mesh {tp} : tensor<8x8xf32>
  %2 = nn.linear %1, %0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
