// The formulas of docs/Prediction.md by hand, on a machine of round numbers: 1 TFLOP/s, 1 TB/s, messages of 1 us.
// DEFINE: %{print} = %python -c "import json, sys; print(json.dumps(json.load(open(sys.argv[1]), parse_float=lambda text: float('%%.6g' %% float(text)))['prediction'], sort_keys=True))"
// RUN: split-file %s %t
// RUN: tp-opt %t/even.mlir --tp-predict-memory --tp-report="file=%t/even.json machine=%t/round.yaml" | FileCheck %s --check-prefix=IR
// RUN: %{print} %t/even.json | FileCheck %s --check-prefix=EVEN
// RUN: tp-opt %t/even.mlir --tp-predict-memory --tp-report="table machine=%t/round.yaml" -o /dev/null | FileCheck %s --check-prefix=TABLE
// RUN: tp-opt %t/dlti.mlir --tp-report="file=%t/dlti.json" -o /dev/null
// RUN: %{print} %t/dlti.json | FileCheck %s --check-prefix=DLTI
// RUN: tp-opt %t/uneven.mlir --tp-predict-memory --tp-report="file=%t/uneven.json machine=%t/round.yaml" -o /dev/null
// RUN: %{print} %t/uneven.json | FileCheck %s --check-prefix=UNEVEN
// RUN: tp-opt %t/overlap.mlir --tp-report="file=%t/overlap.json machine=%t/overlap.yaml" -o /dev/null
// RUN: %{print} %t/overlap.json | FileCheck %s --check-prefix=OVERLAP
// RUN: sed 's/0.75/1/' %t/overlap.yaml > %t/hidden.yaml
// RUN: tp-opt %t/late.mlir --tp-report="file=%t/late.json machine=%t/hidden.yaml" -o /dev/null
// RUN: %{print} %t/late.json | FileCheck %s --check-prefix=LATE
// RUN: tp-opt %t/even.mlir --tp-report=file=%t/none.json -o /dev/null
// RUN: not grep prediction %t/none.json
// RUN: tp-opt %t/even.mlir --tp-predict-memory --tp-report=machine=%t/small.yaml -o /dev/null 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: not tp-opt %t/even.mlir --tp-report=table 2>&1 | FileCheck %s --check-prefix=NO-MACHINE

// IR: module attributes {tp.arena_bytes = 0 : i64}

// 2*8*10*8 FLOPs in 1.28 ns, 896 bytes in 0.896 ns; the all-reduce in two phases of 1 us and 160 bytes at 100 GB/s.
// EVEN: {"by_class": [{"bytes_received": 320, "bytes_touched": 896, "collective_seconds": 2.0032e-06, "compute_seconds": 1.28e-09, "flops": 1280, "memory": {"arena": 0, "inputs": 256, "outputs": 320, "parameters": 320, "total": 896}, "overlapped": [], "seconds": 2.00448e-06, "timeline": [{"arrival": 1.28e-09, "end": 2.00448e-06, "id": 0, "start": 1.28e-09}], "waiting_seconds": 0}]
// EVEN-SAME: "collectives": [{"id": 0, "seconds": 2.0032e-06, "seconds_by_class": [2.0032e-06]}]
// EVEN-SAME: "machine": {"device": {"elementwise": 1000000000000, "flops": {"bf16": 1000000000000
// EVEN-SAME: "programs": [{"classes": [0], "function": "main", "modules": [{"bytes_received": 320, "bytes_touched": 896, "collective_seconds": 2.0032e-06, "compute_seconds": 1.28e-09, "flops": 1280, "fqn": "net2", "seconds": 2.00448e-06}], "ops": [{"bytes_touched": 896, "count": 1, "flops": 1280, "op": "nn.linear", "seconds": 1.28e-09}]}]
// EVEN-SAME: "seconds": 2.00448e-06}

// TABLE:      predicted for round: 2.00 us (the slowest rank, 0 of 4): compute 1.28 ns, collectives 2.00 us, waiting 0 ns
// TABLE-NEXT: memory per rank: 896 bytes (parameters 320, inputs 256, outputs 320, arena 0) of 1.00 GB
// TABLE:      time   share    compute  collectives       FLOPs   touched  received  count  module
// TABLE-NEXT: 2.00 us  100.0%    1.28 ns      2.00 us  1.28 kFLOP     896 B     320 B      1  net2
// TABLE:      count  op
// TABLE-NEXT: 1.28 ns  100.0%    1.28 ns         0 ns  1.28 kFLOP     896 B       0 B      1  nn.linear

// No tp-predict-memory, no memory.
// DLTI: "machine": {"device": {"efficiency": {"attention": 0.3, "contraction": 0.7, "half_extent": 128, "memory": 0.8}, "elementwise": 1000000000000,
// DLTI-SAME: "fusion": false,
// DLTI-SAME: "overlap": 0.9}
// DLTI-SAME: "links": [{"algorithm": "direct", "bandwidth": 400000000000, "latency": 1e-06, "name": "inner", "ranks": 2}, {"algorithm": "ring", "bandwidth": 100000000000, "latency": 1e-06, "name": "outer"}], "name": "dlti.target_system_spec"}
// DLTI-NOT: "memory"

// Rank 3 has one row, the others three: it waits for them.
// UNEVEN: "by_class": [{"bytes_received": 112,{{.*}}"seconds": 3.00122e-06, "timeline": [{"arrival": {{[^]]*}}], "waiting_seconds": 0}
// UNEVEN-SAME: {"bytes_received": 144,{{.*}}"seconds": 3.00154e-06, "timeline": [{"arrival": {{[^]]*}}], "waiting_seconds": 6.4e-11}]
// UNEVEN-SAME: "collectives": [{"id": 0, "seconds": 3.00144e-06, "seconds_by_class": [3.00112e-06, 3.00144e-06]}]
// UNEVEN-SAME: "programs": [{"classes": [0], "function": "f", {{.*}}}, {"classes": [1], "function": "f_0"

// Gathers of 1.4 us follow one another on the link. Two of them are started, and take a quarter of their time from 1.6 us of
// computation. The third one begins when the second one has ended.
// OVERLAP: "collective_seconds": 2.6e-06, "compute_seconds": 1.6e-06,
// OVERLAP-SAME: "overlapped": [{"arrival": 0, "end": 1.4e-06, "id": 0, "start": 0}, {"arrival": 1.4e-06, "end": 2.8e-06, "id": 1, "start": 1.4e-06}], "seconds": 4.2e-06,
// OVERLAP-SAME: "timeline": [{"arrival": 0, "end": 3.5e-07, "id": 0, "start": 0}, {"arrival": 3.5e-07, "end": 7e-07, "id": 1, "start": 3.5e-07}, {"arrival": 2.3e-06, "end": 2.8e-06, "id": 2, "start": 2.3e-06}, {"arrival": 2.8e-06, "end": 4.2e-06, "id": 2, "start": 2.8e-06}], "waiting_seconds": 0}

// Rank 3 starts the gather before the others, and waits for them.
// LATE: "overlapped": [{"arrival": 3.2e-11, "end": 3.00154e-06, "id": 0, "start": 9.6e-11}], "seconds": 3.00154e-06, "timeline": [{"arrival": 3.2e-11, "end": 3.00154e-06, "id": 0, "start": 9.6e-11}], "waiting_seconds": 6.4e-11}

// SMALL: warning: rank 0 needs 896 bytes of memory, a device of 'small' has 895
// NO-MACHINE: error: a table of costs needs a machine: the option 'machine', or a dlti.target_system_spec

//--- round.yaml
name: round
device:
  flops: {f64: 1e12, f32: 1e12, f16: 1e12, bf16: 1e12}
  elementwise: 1e12
  memory_bandwidth: 1e12
  memory_capacity: 1e9
links:
- {name: wire, latency: 1e-6, bandwidth: 100e9}

//--- overlap.yaml
name: overlap
device:
  flops: {f64: 1e12, f32: 1e12, f16: 1e12, bf16: 1e12}
  elementwise: 1e12
  memory_bandwidth: 1e12
  memory_capacity: 1e9
  overlap: 0.75
links:
- {name: wire, latency: 1e-6, bandwidth: 100e9}

//--- small.yaml
{"name": "small",
 "device": {"flops": {"f64": 1, "f32": 1, "f16": 1, "bf16": 1}, "elementwise": 1, "memory_bandwidth": 1, "memory_capacity": 895},
 "links": [{"name": "wire", "latency": 0, "bandwidth": 1}]}

//--- even.mlir
tp.mesh @mesh(dp = 2, tp = 2)
func.func @main(%x: tensor<8x8xf32> {tp.name = "x", tp.global_type = tensor<8x16xf32>, tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> tensor<8x10xf32> {
  %w = nn.parameter "net2.weight" {tp.global_type = tensor<10x16xf32>, tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<10x8xf32>
  %0 = nn.linear %x, %w {tp.fqn = "net2"} : (tensor<8x8xf32>, tensor<10x8xf32>) -> tensor<8x10xf32>
  %1 = tp.all_reduce sum %0 over @mesh {tp} {fqn = "net2"} : tensor<8x10xf32>
  return %1 : tensor<8x10xf32>
}

//--- dlti.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
    "device" = #dlti.target_device_spec<
      "flops" = #dlti.map<"f64" = 1.0e12, "f32" = 1.0e12, "f16" = 1.0e12, "bf16" = 1.0e12>,
      "elementwise" = 1.0e12, "memory_bandwidth" = 1.0e12, "memory_capacity" = 1000000000, "launch" = 0.0,
      "efficiency" = #dlti.map<"contraction" = 0.7, "half_extent" = 128, "attention" = 0.3, "memory" = 0.8>, "fusion" = false, "overlap" = 0.9>,
    "link.inner" = #dlti.target_device_spec<"ranks" = 2, "latency" = 1.0e-6, "bandwidth" = 4.0e11, "algorithm" = "direct">,
    "link.outer" = #dlti.target_device_spec<"latency" = 1.0e-6, "bandwidth" = 1.0e11>>} {
  tp.mesh @mesh(tp = 4)
  func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %1 = tp.all_reduce sum %x over @mesh {tp} : tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
}

//--- uneven.mlir
tp.mesh @mesh(tp = 4)
func.func @f(%x: tensor<3x4xf32> {tp.global_type = tensor<10x4xf32>, tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<10x4xf32> attributes {tp.ranks = array<i64: 0, 1, 2>} {
  %0 = nn.exp %x {tp.fqn = "a"} : tensor<3x4xf32>
  %1 = tp.all_gather %0 dim 0 over @mesh {tp} : tensor<3x4xf32> -> tensor<10x4xf32>
  return %1 : tensor<10x4xf32>
}
func.func @f_0(%x: tensor<1x4xf32> {tp.global_type = tensor<10x4xf32>, tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<10x4xf32> attributes {tp.copy_of = @f, tp.ranks = array<i64: 3>} {
  %0 = nn.exp %x {tp.fqn = "a"} : tensor<1x4xf32>
  %1 = tp.all_gather %0 dim 0 over @mesh {tp} : tensor<1x4xf32> -> tensor<10x4xf32>
  return %1 : tensor<10x4xf32>
}

//--- overlap.mlir
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<100x100xf32>, %y: tensor<1000x200xf32>) {
  %p = tp.start {
    %0 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<100x100xf32> -> tensor<200x100xf32>
    tp.yield %0 : tensor<200x100xf32>
  } : !tp.pending<tensor<200x100xf32>>
  %q = tp.start {
    %1 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<100x100xf32> -> tensor<200x100xf32>
    tp.yield %1 : tensor<200x100xf32>
  } : !tp.pending<tensor<200x100xf32>>
  %2 = nn.exp %y : tensor<1000x200xf32>
  %3 = tp.wait %p : !tp.pending<tensor<200x100xf32>>
  %4 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<100x100xf32> -> tensor<200x100xf32>
  %5 = tp.wait %q : !tp.pending<tensor<200x100xf32>>
  return
}

//--- late.mlir
tp.mesh @mesh(tp = 4)
func.func @f(%x: tensor<3x4xf32> {tp.global_type = tensor<10x4xf32>, tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<10x4xf32> attributes {tp.ranks = array<i64: 0, 1, 2>} {
  %0 = nn.exp %x : tensor<3x4xf32>
  %p = tp.start {
    %1 = tp.all_gather %0 dim 0 over @mesh {tp} : tensor<3x4xf32> -> tensor<10x4xf32>
    tp.yield %1 : tensor<10x4xf32>
  } : !tp.pending<tensor<10x4xf32>>
  %2 = tp.wait %p : !tp.pending<tensor<10x4xf32>>
  return %2 : tensor<10x4xf32>
}
func.func @f_0(%x: tensor<1x4xf32> {tp.global_type = tensor<10x4xf32>, tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<10x4xf32> attributes {tp.copy_of = @f, tp.ranks = array<i64: 3>} {
  %0 = nn.exp %x : tensor<1x4xf32>
  %p = tp.start {
    %1 = tp.all_gather %0 dim 0 over @mesh {tp} : tensor<1x4xf32> -> tensor<10x4xf32>
    tp.yield %1 : tensor<10x4xf32>
  } : !tp.pending<tensor<10x4xf32>>
  %2 = tp.wait %p : !tp.pending<tensor<10x4xf32>>
  return %2 : tensor<10x4xf32>
}
