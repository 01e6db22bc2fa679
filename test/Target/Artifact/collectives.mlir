// All collectives are executed: rank r holds row r of [0, 1, 2, 3].

// REQUIRES: tp-compile, tp-run
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: tp-compile %s -o all.tpx
// RUN: %python -c "import numpy as np; np.save('x', np.arange(4, dtype='f4').reshape(2, 2))"
// RUN: tp-run all.tpx --input x=x.npy | FileCheck %s

// CHECK-DAG: gathered: 2x2xf32 = [0, 1, 2, 3]
// CHECK-DAG: sum: 1x2xf32 = [2, 4]
// CHECK-DAG: scattered: 1x2xf32 = [2, 4]
// CHECK-DAG: exchanged: 2x2xf32 = [0, 1, 2, 3]
// CHECK-DAG: permuted: 2x2xf32 = [2, 3, 0, 1]
// CHECK-DAG: broadcast: 1x2xf32 = [2, 3]
// CHECK-DAG: sliced: 1x2xf32 = [0, 3]
// CHECK-DAG: index: 2xi64 = [0, 1]
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<1x2xf32> {tp.name = "x", tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>, tp.global_type = tensor<2x2xf32>})
    -> (tensor<2x2xf32> {tp.name = "gathered"}, tensor<1x2xf32> {tp.name = "sum"},
        tensor<1x1xf32> {tp.name = "scattered", tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>, tp.global_type = tensor<1x2xf32>},
        tensor<2x1xf32> {tp.name = "exchanged", tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>, tp.global_type = tensor<2x2xf32>},
        tensor<1x2xf32> {tp.name = "permuted", tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>, tp.global_type = tensor<2x2xf32>},
        tensor<1x2xf32> {tp.name = "broadcast"},
        tensor<1x1xf32> {tp.name = "sliced", tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>, tp.global_type = tensor<1x2xf32>},
        tensor<1xi64> {tp.name = "index", tp.sharding = #tp.sharding<@mesh, [{tp}]>, tp.global_type = tensor<2xi64>}) {
  %0 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<1x2xf32> -> tensor<2x2xf32>
  %1 = tp.all_reduce sum %x over @mesh {tp} : tensor<1x2xf32>
  %2 = tp.reduce_scatter sum %x dim 1 over @mesh {tp} : tensor<1x2xf32> -> tensor<1x1xf32>
  %3 = tp.all_to_all %x split 1 concat 0 over @mesh {tp} : tensor<1x2xf32> -> tensor<2x1xf32>
  %4 = tp.permute %x from [1, 0] over @mesh {tp} : tensor<1x2xf32> -> tensor<1x2xf32>
  %5 = tp.broadcast %x root 1 over @mesh {tp} : tensor<1x2xf32>
  %6 = tp.local_slice %x dim 1 over @mesh {tp} : tensor<1x2xf32> -> tensor<1x1xf32>
  %7 = tp.shard_offset of 2 over @mesh {tp} : tensor<i64>
  %8 = nn.reshape %7 : tensor<i64> -> tensor<1xi64>
  return %0, %1, %2, %3, %4, %5, %6, %8 : tensor<2x2xf32>, tensor<1x2xf32>, tensor<1x1xf32>, tensor<2x1xf32>,
    tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x1xf32>, tensor<1xi64>
}
