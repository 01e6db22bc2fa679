// The assertions of PyTorch's test_redistribute.py about more than one redistribution.
// RUN: tp-opt %s --tp-parallelize | FileCheck %s --implicit-check-not=tp.all_ --implicit-check-not=tp.reduce_scatter --implicit-check-not=tp.exchange --implicit-check-not=tp.permute

tp.mesh @mesh(dp = 2, tp = 2)

// Partial to Partial: nothing; then one all-reduce for the result.
// CHECK-LABEL: func.func @stays_partial
// CHECK: tp.all_reduce sum %{{.*}} over @mesh {tp}
func.func @stays_partial(%x: tensor<8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<4x4xf32> {
  %l = tp.to_local %x as <@mesh, [{tp}, {}]> : tensor<8x4xf32> -> tensor<4x4xf32>
  %g = tp.from_local %l as <@mesh, [{}, {}], partial = {tp: sum}> : tensor<4x4xf32> -> tensor<4x4xf32>
  %0 = tp.redistribute %g to <@mesh, [{}, {}], partial = {tp: sum}> : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// One mesh dimension stays Partial while another is gathered.
// CHECK-LABEL: func.func @beside_partial
// CHECK: tp.all_gather %{{.*}} dim 0 over @mesh {dp}
// CHECK: return
func.func @beside_partial(%x: tensor<16x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp, dp}, {}]>})
    -> (tensor<16x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  %l = tp.to_local %x as <@mesh, [{tp, dp}, {}]> : tensor<16x4xf32> -> tensor<4x4xf32>
  %g = tp.from_local %l as <@mesh, [{dp}, {}], partial = {tp: sum}> : tensor<4x4xf32> -> tensor<8x4xf32>
  %m = tp.to_local %g as <@mesh, [{}, {}], partial = {tp: sum}> : tensor<8x4xf32> -> tensor<8x4xf32>
  %r = tp.from_local %m as <@mesh, [{tp}, {}]> : tensor<8x4xf32> -> tensor<16x4xf32>
  return %r : tensor<16x4xf32>
}

// to_local(grad_placements=Partial) of a replicated value: nothing in the forward pass.
// CHECK-LABEL: func.func @grad_placements
// CHECK: return
func.func @grad_placements(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %l = tp.to_local %x as <@mesh, [{}, {}]> grad <@mesh, [{}, {}], partial = {tp: sum}> : tensor<8x4xf32> -> tensor<8x4xf32>
  %r = tp.from_local %l as <@mesh, [{}, {}]> : tensor<8x4xf32> -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// _StridedShard over dp and Shard over tp are the order tp, dp: the same blocks, nothing to do.
// CHECK-LABEL: func.func @strided
// CHECK: return
func.func @strided(%x: tensor<8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp, dp}, {}]>})
    -> (tensor<8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp, dp}, {}]>}) {
  return %x : tensor<8x4xf32>
}
