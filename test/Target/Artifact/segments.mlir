// Blocks in segments that ranks cut from what they have, evenly and not, executed; nothing is communicated.

// REQUIRES: tp-compile, tp-run
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: tp-opt %s --tp-parallelize=report=report.json -o ranks.mlir
// RUN: FileCheck %s --input-file=report.json
// CHECK: "collectives": []
// RUN: tp-compile ranks.mlir -o model.tpx
// RUN: %python -c "import numpy as np; x, w = (np.arange(n, dtype='f4') for n in (64, 16)); x, w = x.reshape(2, 8, 4), w.reshape(8, 2); np.save('x', x); np.save('w', w); np.save('y', x + np.arange(64, dtype='f4').reshape(2, 8, 4)); np.save('b', np.arange(64, dtype='f4').reshape(16, 4))"
// RUN: tp-run model.tpx --input x=x.npy --input bias=b.npy --input w=w.npy --expect y=y.npy --expect even=w.npy --expect uneven=w.npy --expect minor=w.npy

tp.mesh @mesh(dp = 2, tp = 2)

func.func @main(%x: tensor<2x8x4xf32> {tp.name = "x", tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}]>}, %bias: tensor<16x4xf32> {tp.name = "bias"},
    %w: tensor<8x2xf32> {tp.name = "w"})
    -> (tensor<2x8x4xf32> {tp.name = "y", tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}]>},
        tensor<8x2xf32> {tp.name = "even", tp.sharding = #tp.sharding<@mesh, [{tp, dp | 4, 4}, {}]>},
        tensor<8x2xf32> {tp.name = "uneven", tp.sharding = #tp.sharding<@mesh, [{tp | 5, 3}, {}]>},
        tensor<8x2xf32> {tp.name = "minor", tp.sharding = #tp.sharding<@mesh, [{dp, tp}, {}]>}) {
  %0 = nn.reshape %x : tensor<2x8x4xf32> -> tensor<16x4xf32>
  %1 = nn.add %0, %bias : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
  %2 = nn.reshape %1 : tensor<16x4xf32> -> tensor<2x8x4xf32>
  %3 = tp.redistribute %w to <@mesh, [{tp | 4, 4}, {}]> : tensor<8x2xf32>
  %even = tp.redistribute %3 to <@mesh, [{tp, dp | 4, 4}, {}]> : tensor<8x2xf32>
  %uneven = tp.redistribute %w to <@mesh, [{tp | 5, 3}, {}]> : tensor<8x2xf32>
  // Half of each half, of which the ranks want one.
  %minor = tp.redistribute %3 to <@mesh, [{dp, tp}, {}]> : tensor<8x2xf32>
  return %2, %even, %uneven, %minor : tensor<2x8x4xf32>, tensor<8x2xf32>, tensor<8x2xf32>, tensor<8x2xf32>
}
