// The arena that is predicted for a device is the one that it gets: rows that are too long for shared memory are whole buffers.
// RUN: tp-compile %s -o %t.json --target=cuda:sm_90 --emit=manifest --machine=h100-nvlink --report=%t.report.json
// RUN: tp-compile %s -o %t.cpu.json --emit=manifest
// RUN: %python -c "import json, sys; report, manifest, cpu = (json.load(open(path)) for path in sys.argv[1:]); print(*(rank['memory']['arena'] == manifest['programs'][0]['arena_bytes'] for rank in report['prediction']['by_class']), manifest['programs'][0]['arena_bytes'] > cpu['programs'][0]['arena_bytes'])" %t.report.json %t.json %t.cpu.json | FileCheck %s

// CHECK: True True
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<2048x12000xf32>) -> tensor<2048x12000xbf16> {
  %0 = nn.softmax %x dim 1 : tensor<2048x12000xf32>
  %1 = nn.cast %0 : tensor<2048x12000xf32> -> tensor<2048x12000xbf16>
  return %1 : tensor<2048x12000xbf16>
}
