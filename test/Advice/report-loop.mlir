// A loop of known length is unrolled by code generation: each of its collectives has an id for every iteration.
// RUN: tp-opt %s --tp-predict-memory --tp-report="file=%t.json machine=h100-nvlink" -o /dev/null
// RUN: %python -c "import json; r = json.load(open('%t.json')); print([c['id'] for c in r['collectives']], r['totals'], r['prediction']['by_class'][0]['bytes_received'], r['prediction']['programs'][0]['ops'][0]['count'])" | FileCheck %s
// RUN: tp-compile %s -o %t.manifest --emit=manifest
// RUN: %python -c "import json; print(len(json.load(open('%t.manifest'))['programs'][0]['collectives']))" | FileCheck %s --check-prefix=MANIFEST

// CHECK: [0, 1, 2] {'all_reduce': {'bytes_per_rank': 768, 'count': 3}} 768 3
// MANIFEST: 3

tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %x) -> tensor<8x8xf32> {
    %0 = nn.linear %v, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = tp.all_reduce sum %0 over @mesh {tp} : tensor<8x8xf32>
    scf.yield %1 : tensor<8x8xf32>
  }
  return %r : tensor<8x8xf32>
}
