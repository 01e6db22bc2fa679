// RUN: tp-opt %s --tp-propagate --split-input-file --verify-diagnostics

// expected-error@+1 {{no tp.mesh to propagate placements over; declare one, or give tp-parallelize or tp-apply-plan a plan (plan=FILE)}}
module {
}

// -----

// expected-note@+1 {{the other one is here}}
tp.mesh @a(tp = 2)
// expected-error@+1 {{a program is parallelized over one mesh}}
tp.mesh @b(tp = 2)

// -----

tp.mesh @mesh(tp = 2)
func.func @no_rule(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'bufferization.alloc_tensor' has no sharding rule; it needs ShardingRuleOpInterface to be parallelized}}
  %0 = bufferization.alloc_tensor() copy(%x) : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

tp.mesh @mesh(tp = 2)
func.func @to_partial(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{can't redistribute from (Replicate) to (Partial(sum)): no value becomes Partial by a redistribution}}
  %0 = tp.redistribute %x to <@mesh, [{}], partial = {tp: sum}> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Which part of a mesh dimension it is comes with it.

tp.mesh @mesh(tp = 4)
func.func @to_part(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{can't redistribute from (Replicate) to (Shard(0, part=(1)2)+Partial(max, part=(2)2)): no value}}
  %0 = tp.redistribute %x to <@mesh, [{tp:(1)2}], partial = {tp:(2)2: max}> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

tp.mesh @mesh(dp = 2, tp = 4)
func.func @partial_over(%x: tensor<8x8xf32>) -> (tensor<8x8xf32> {tp.open}) {
  // expected-error@+1 {{no value becomes Partial by a redistribution}}
  %0 = tp.redistribute %x to <@mesh, [{}, {}], partial = {tp: max}> over {tp} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

tp.mesh @mesh(tp = 2)
// expected-error@+1 {{is partitioned already}}
func.func @again(%x: tensor<4xf32> {tp.global_type = tensor<8xf32>, tp.sharding = #tp.sharding<@mesh, [{tp}]>}) {
  return
}

// -----

tp.mesh @mesh(tp = 2)
// expected-error@+1 {{argument 0 is a 'tensor<8xcomplex<f32>>'; only integers, indices and floats can be placed}}
func.func @element_type(%x: tensor<8xcomplex<f32>>) {
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @assign_nothing(%x: tensor<8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}]>}) {
  // expected-error@+1 {{assigns "w", but no 'nn.parameter' of this FQN precedes it}}
  nn.assign "w", %x : tensor<8xf32>
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @assign_twice(%x: tensor<8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}]>}) {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{tp}]>} : tensor<8xf32>
  nn.assign "w", %x : tensor<8xf32>
  // expected-error@+1 {{assigns "w" a second time}}
  nn.assign "w", %w : tensor<8xf32>
  return
}
