// Redistributions that DTensor.redistribute refuses, from PyTorch's test_redistribute.py.
// RUN: tp-opt %s --tp-parallelize -split-input-file -verify-diagnostics

tp.mesh @mesh(tp = 4)
func.func @replicate_to_partial(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error@+1 {{can't redistribute from (Replicate) to (Partial(sum)): no value becomes Partial by a redistribution}}
  %0 = tp.redistribute %x to <@mesh, [{}, {}], partial = {tp: sum}> : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

tp.mesh @mesh(tp = 4)
func.func @shard_to_partial(%x: tensor<8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<8x4xf32> {
  // expected-error@+1 {{can't redistribute from (Shard(0)) to (Partial(sum)): no value becomes Partial by a redistribution}}
  %0 = tp.redistribute %x to <@mesh, [{}, {}], partial = {tp: sum}> : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// DTensor did nothing here, in earlier versions.
tp.mesh @mesh(tp = 4)
func.func @sum_to_avg(%x: tensor<16x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<4x4xf32> {
  %l = tp.to_local %x as <@mesh, [{tp}, {}]> : tensor<16x4xf32> -> tensor<4x4xf32>
  %g = tp.from_local %l as <@mesh, [{}, {}], partial = {tp: sum}> : tensor<4x4xf32> -> tensor<4x4xf32>
  // expected-error@+1 {{can't redistribute from (Partial(sum)) to (Partial(avg))}}
  %0 = tp.redistribute %g to <@mesh, [{}, {}], partial = {tp: avg}> : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

// Over two dimensions: one may stay Partial while the other changes, but none becomes so.
tp.mesh @mesh(dp = 2, tp = 2)
func.func @other_dimension(%x: tensor<16x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp, dp}, {}]>}) -> tensor<8x4xf32> {
  %l = tp.to_local %x as <@mesh, [{tp, dp}, {}]> : tensor<16x4xf32> -> tensor<4x4xf32>
  %g = tp.from_local %l as <@mesh, [{dp}, {}], partial = {tp: sum}> : tensor<4x4xf32> -> tensor<8x4xf32>
  // expected-error@+1 {{can't redistribute from (Shard(0), Partial(sum)) to (Partial(sum), Partial(sum))}}
  %0 = tp.redistribute %g to <@mesh, [{}, {}], partial = {dp: sum, tp: sum}> : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
