// Errors of a machine's description are reported with line and column; unknown names, with the known ones.
// RUN: split-file %s %t
// RUN: not tp-opt %t/m.mlir --tp-report=machine=%t/wrong.yaml 2>&1 | FileCheck %t/wrong.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/m.mlir --tp-report=machine=%t/links.yaml 2>&1 | FileCheck %t/links.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/m.mlir --tp-report=machine=%t/none.yaml 2>&1 | FileCheck %t/none.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/m.mlir --tp-report=machine=%t/list.yaml 2>&1 | FileCheck %t/list.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/m.mlir --tp-report=machine=%t/syntax.yaml 2>&1 | FileCheck %t/syntax.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/m.mlir --tp-report=machine=h100-nvlnk 2>&1 | FileCheck %s --check-prefix=NEAR
// RUN: not tp-opt %t/m.mlir --tp-report=machine=abacus 2>&1 | FileCheck %s --check-prefix=FAR
// RUN: not tp-opt %t/dlti.mlir --tp-report 2>&1 | FileCheck %t/dlti.mlir --implicit-check-not=error:
// RUN: not tp-opt %t/m.mlir --tp-parallelize="machine=abacus report=%t/r.json" -o %t/out.mlir
// RUN: not ls %t/r.json
// RUN: not ls %t/out.mlir

// NEAR: error: no machine is called 'h100-nvlnk', and no file can be read there (No such file or directory); did you mean 'h100-nvlink'?
// FAR: error: no machine is called 'abacus', and no file can be read there (No such file or directory); machines are h100-nvlink, h200-nvlink, h100-pcie, h100-96gb-hbm2e, a100-nvlink, ethernet-100g, ethernet-400g, cpu

//--- m.mlir
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}

//--- wrong.yaml
# CHECK-DAG: wrong.yaml:[[#@LINE+1]]:1: error: unknown key 'devce'; did you mean 'device'?
devce: {}
device:
  # CHECK-DAG: :[[#@LINE+1]]:3: error: this map of FLOP/s has no 'bf16'
  flops:
    f64: 1e12
    # CHECK-DAG: :[[#@LINE+1]]:10: error: 'f32' must be a positive number, found '0'
    f32: 0
    # CHECK-DAG: :[[#@LINE+1]]:10: error: 'f16' must be a positive number, found 'fast'
    f16: fast
  # CHECK-DAG: :[[#@LINE+1]]:16: error: 'elementwise' must be a positive number, found '-1'
  elementwise: -1
  # CHECK-DAG: :[[#@LINE+1]]:20: error: 'memory_capacity' must be a whole number, found '0.5'
  memory_capacity: 0.5
  # CHECK-DAG: :[[#@LINE+1]]:11: error: 'launch' must be a number that isn't negative, found '-1e-6'
  launch: -1e-6
  efficiency:
    # CHECK-DAG: :[[#@LINE+1]]:18: error: 'contraction' must be a positive number of at most 1, found '1.5'
    contraction: 1.5
    # CHECK-DAG: :[[#@LINE+1]]:18: error: 'half_extent' must be a number that isn't negative, found '-2'
    half_extent: -2
    # CHECK-DAG: :[[#@LINE+1]]:16: error: 'attention' must be a positive number of at most 1, found '0'
    attention: 0
    # CHECK-DAG: :[[#@LINE+1]]:5: error: unknown key 'memry'; did you mean 'memory'?
    memry: 1
  # CHECK-DAG: :[[#@LINE+1]]:11: error: 'fusion' must be true or false, found 'maybe'
  fusion: maybe
  # CHECK-DAG: :[[#@LINE+1]]:12: error: 'overlap' must be a number from 0 to 1, found '2'
  overlap: 2
# CHECK-DAG: :[[#@LINE+1]]:7: error: 'node' must be a map, found '2'
node: 2
# CHECK-DAG: :[[#@LINE+1]]:1: error: 'links' must be a list of at least one link, found none
links: []

//--- links.yaml
# CHECK-DAG: :[[#@LINE+1]]:121: error: 'efficiency' must be a map, found '1'
device: {flops: {f64: 1, f32: 1, f16: 1, bf16: 1}, elementwise: 1, memory_bandwidth: 1, memory_capacity: 1, efficiency: 1}
# CHECK-DAG: :[[#@LINE+1]]:1: error: this node has no 'devices'
node: {memory_bandwidth: 1}
# CHECK-DAG: :[[#@LINE+1]]:1: error: this link has no 'ranks'; only the last link joins all
links:
- {name: a, latency: 0, bandwidth: 1}
- {name: b, ranks: 4, latency: 0, bandwidth: 1}
# CHECK-DAG: :[[#@LINE+1]]:20: error: 'ranks' must be a multiple of the 4 that the link before joins, and more; found '6'
- {name: c, ranks: 6, latency: 0, bandwidth: 1}
- name: d
  # CHECK-DAG: :[[#@LINE+1]]:10: error: the last link joins all ranks and has no 'ranks'
  ranks: 24
  latency: 0
  bandwidth: 1
  # CHECK-DAG: :[[#@LINE+1]]:14: error: 'algorithm' must be 'ring' or 'direct', found 'tree'
  algorithm: tree
  collectives:
  # CHECK-DAG: :[[#@LINE+1]]:12: error: unknown collective 'all_reduc'; did you mean 'all_reduce'?
  - {kind: all_reduc, ranks: 2, latency: 0, bandwidth: 1}

//--- none.yaml
# CHECK-DAG: none.yaml:1:1: error: this machine has no 'device'
# CHECK-DAG: none.yaml:1:1: error: this machine has no 'links'
name: none

//--- list.yaml
# CHECK-DAG: list.yaml:1:1: error: a machine is a map of 'device', 'node' and 'links', found a list
- 1

//--- syntax.yaml
# CHECK: syntax.yaml:[[#@LINE+1]]:9: error: '{' is never closed
device: {

//--- dlti.mlir
// CHECK: dlti.mlir:[[#@LINE+1]]:1: error: 'bandwidth' must be a positive number, found '-1.0{{.*}}'
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
    "device" = #dlti.target_device_spec<
      "flops" = #dlti.map<"f64" = 1.0, "f32" = 1.0, "f16" = 1.0, "bf16" = 1.0>,
      "elementwise" = 1.0, "memory_bandwidth" = 1.0, "memory_capacity" = 1>,
    "link.wire" = #dlti.target_device_spec<"latency" = 0.0, "bandwidth" = -1.0>>} {
  tp.mesh @mesh(tp = 2)
  func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    return %x : tensor<8x8xf32>
  }
}
