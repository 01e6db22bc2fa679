// Sums and averages commute: each order of the two is proven.
//
// RUN: tp-opt %s --tp-parallelize -o %t.mlir
// RUN: tp-opt %t.mlir --tp-verify-spmd=reference=%s -o /dev/null 2>&1 | FileCheck %s
// CHECK: remark: 'average_of_sums' is proven
// CHECK: remark: 'sum_of_averages' is proven

tp.mesh @mesh(x = 2, y = 2)

func.func @average_of_sums(%x: tensor<16xf64> {tp.sharding = #tp.sharding<@mesh, [{y, x}]>})
    -> (tensor<4xf64> {tp.sharding = #tp.sharding<@mesh, [{y, x}]>}) {
  %0 = tp.to_local %x as <@mesh, [{y, x} ]> : tensor<16xf64> -> tensor<4xf64>
  %1 = tp.from_local %0 as <@mesh, [{} ], partial = {y: avg, x: sum}> : tensor<4xf64> -> tensor<4xf64>
  return %1 : tensor<4xf64>
}

func.func @sum_of_averages(%x: tensor<16xf64> {tp.sharding = #tp.sharding<@mesh, [{y, x}]>}) -> tensor<4xf64> {
  %0 = tp.to_local %x as <@mesh, [{y, x} ]> : tensor<16xf64> -> tensor<4xf64>
  %1 = tp.from_local %0 as <@mesh, [{} ], partial = {y: sum, x: avg}> : tensor<4xf64> -> tensor<4xf64>
  return %1 : tensor<4xf64>
}
