// The bytes of the propagated program and of the optimized one equal the report's.
// RUN: split-file %s %t

// What an op communicates itself to run split is that of its partition hook: of seven rows over two ranks and in f32, the
// maxima, and the sums, logits and weights together. A loss that is asked to be split is no exception.
// RUN: tp-opt %t/loss.mlir --tp-explain=trials=0 | FileCheck %t/loss.mlir
// RUN: tp-opt %t/loss.mlir --tp-parallelize=report=%t/report.json -o /dev/null
// RUN: %python %t/sum.py %t/report.json | FileCheck %t/loss.mlir --check-prefix=REPORT

// Softmax's own are weighed against others.
// RUN: tp-opt %t/softmax.mlir --tp-explain=trials=0 | FileCheck %t/softmax.mlir
// RUN: tp-opt %t/softmax.mlir --tp-parallelize=report=%t/report.json -o /dev/null
// RUN: %python %t/sum.py %t/report.json | FileCheck %t/softmax.mlir --check-prefix=REPORT

// Halos of height and width: for blocks of 4x6, a row of 6, and then a column of 4 and its two neighbors, in three channels.
// RUN: tp-opt %t/halo.mlir --tp-explain="trials=0 latency-bytes=0" | FileCheck %t/halo.mlir
// RUN: tp-opt %t/halo.mlir --tp-parallelize="report=%t/report.json latency-bytes=0" -o /dev/null
// RUN: %python %t/sum.py %t/report.json | FileCheck %t/halo.mlir --check-prefix=REPORT

// Two sums that are asked for become one.
// RUN: tp-opt %t/sums.mlir --tp-explain=trials=0 | FileCheck %t/sums.mlir
// RUN: tp-opt %t/sums.mlir --tp-explain="trials=0 format=json" | FileCheck %t/sums.mlir --check-prefix=JSON
// RUN: tp-opt %t/sums.mlir --tp-parallelize=report=%t/report.json -o /dev/null
// RUN: %python %t/sum.py %t/report.json | FileCheck %t/sums.mlir --check-prefix=REPORT

//--- sum.py
import json
import sys
report = json.load(open(sys.argv[1]))
collectives, counts = report["collectives"], [item["count"] for item in report["rank_classes"]]
print(sum(count * received for c in collectives for count, received in zip(counts, c["bytes_by_class"])), "bytes,", len(collectives), "collectives")

//--- loss.mlir
// CHECK: total as propagated: 232 bytes received by all ranks, 3 collectives
// CHECK-NEXT: total after tp-optimize-collectives: 232 bytes received by all ranks, 3 collectives
// CHECK: 1. 2 x all_reduce over {tp}
// CHECK-NEXT: in nn.cross_entropy (head), 7x15xf16
// CHECK-NEXT: cause: nn.cross_entropy is split along a dimension that it reduces, in 'head'
// CHECK-NEXT: bytes: 224 bytes received by all ranks, 64 bytes by one
// CHECK-NEXT: 2. all_reduce over {dp}
// CHECK: bytes: 8 bytes received by all ranks, 2 bytes by one
// REPORT: 232 bytes, 3 collectives
tp.mesh @mesh(dp = 2, tp = 2)
func.func @main(%x: tensor<7x15xf16> {tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}]>},
                %t: tensor<7xi64> {tp.sharding = #tp.sharding<@mesh, [{dp}]>})
    -> tensor<f16> {
  %w = nn.parameter "w" : tensor<15xf16>
  %l = nn.cross_entropy sum %x, %t weight %w ignore -100 smoothing 0.0 loss_parallel {tp.fqn = "head"} : (tensor<7x15xf16>, tensor<7xi64>, tensor<15xf16>) -> tensor<f16>
  return %l : tensor<f16>
}

//--- softmax.mlir
// CHECK: total as propagated: 480 bytes received by all ranks, 2 collectives
// CHECK-NEXT: total after tp-optimize-collectives: 480 bytes received by all ranks, 2 collectives
// CHECK: 1. 2 x all_reduce over {tp}
// CHECK: otherwise: nn.softmax whole
// REPORT: 480 bytes, 2 collectives
tp.mesh @mesh(tp = 4)
func.func @main(%x: tensor<10x20000xbf16> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<10x20000xbf16> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) {
  %y = nn.softmax %x dim 1 : tensor<10x20000xbf16>
  return %y : tensor<10x20000xbf16>
}

//--- halo.mlir
// CHECK: total as propagated: 576 bytes received by all ranks, 2 collectives
// CHECK-NEXT: total after tp-optimize-collectives: 576 bytes received by all ranks, 2 collectives
// CHECK: cause: nn.convolution is split along a dimension of its windows, in 'conv'
// CHECK-NEXT: bytes: 576 bytes received by all ranks, 144 bytes by one
// CHECK-NEXT: otherwise: nn.convolution split along x: factor b; y: factor P1
// CHECK-NEXT: +576 bytes, +1 collective
// REPORT: 576 bytes, 2 collectives
tp.mesh @mesh(x = 2, y = 2)
func.func @main(%x: tensor<1x3x8x12xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {x}, {y}]>})
    -> (tensor<1x2x8x12xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {x}, {y}]>}) {
  %w = nn.parameter "w" : tensor<2x3x3x3xf32>
  %y = nn.convolution %x, %w stride [1, 1] padding [1, 1] dilation [1, 1] {tp.fqn = "conv"} : (tensor<1x3x8x12xf32>, tensor<2x3x3x3xf32>) -> tensor<1x2x8x12xf32>
  return %y : tensor<1x2x8x12xf32>
}

//--- sums.mlir
// CHECK: total as propagated: 512 bytes received by all ranks, 2 collectives
// CHECK-NEXT: total after tp-optimize-collectives: 256 bytes received by all ranks, 1 collective
// JSON: "totals": {
// JSON-NEXT: "bytes": 512,
// JSON-NEXT: "collectives": 2,
// JSON-NEXT: "gap": 0,
// JSON-NEXT: "optimized": {
// JSON-NEXT: "bytes": 256,
// JSON-NEXT: "collectives": 1
// REPORT: 256 bytes, 1 collectives
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>}) -> tensor<8x4xf32> {
  %v = nn.parameter "v" {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>} : tensor<4x16xf32>
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>} : tensor<4x16xf32>
  %0 = nn.linear %x, %v : (tensor<8x16xf32>, tensor<4x16xf32>) -> tensor<8x4xf32>
  %1 = tp.redistribute %0 to <@mesh, [{}, {} ]> {reason = "asked"} : tensor<8x4xf32>
  %2 = nn.linear %x, %w : (tensor<8x16xf32>, tensor<4x16xf32>) -> tensor<8x4xf32>
  %3 = tp.redistribute %2 to <@mesh, [{}, {} ]> {reason = "asked"} : tensor<8x4xf32>
  %4 = nn.add %1, %3 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %4 : tensor<8x4xf32>
}
