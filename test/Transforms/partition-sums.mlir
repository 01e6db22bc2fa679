// Sums take a collective for each place that they go to, before or behind other axes: 15360 elements, where Shardy's order
// moves 15872 and two collectives would move 16384.
//
// RUN: tp-opt %s --tp-parallelize="one-shot=false report=%t.json" -o /dev/null
// RUN: FileCheck %s < %t.json
// CHECK: "bytes_received_total": 61440

tp.mesh @m(x = 4, y = 2, z = 2)

func.func @main(%x: tensor<64x32xf32> {tp.sharding = #tp.sharding<@m, [{}, {y}], partial = {z: sum, x: sum}>})
    -> (tensor<64x32xf32> {tp.sharding = #tp.sharding<@m, [{z}, {x, y}]>}) {
  return %x : tensor<64x32xf32>
}
