// RUN: tp-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{needs at least one dimension}}
tp.mesh @mesh()

// -----

// expected-error@+1 {{dimension 'tp' has size 0; at least 1 is needed}}
tp.mesh @mesh(tp = 0)

// -----

// expected-error@+1 {{dimension 'tp' appears twice}}
tp.mesh @mesh(tp = 2, tp = 4)

// -----

tp.mesh @mesh(tp = 2)
func.func @rank(%x: tensor<8x8xf32>) {
  // expected-error@+1 {{sharding has 1 dimension lists, the tensor 'tensor<8x8xf32>' has 2 dimensions}}
  %0 = tp.redistribute %x to <@mesh, [{tp}]> : tensor<8x8xf32>
  return
}

// -----

tp.mesh @mesh(dp = 2, tp = 2)
func.func @unknown_axis(%x: tensor<8x8xf32>) {
  // expected-error@+1 {{mesh 'mesh' has no dimension 'pp'; it has 'dp', 'tp'}}
  %0 = tp.redistribute %x to <@mesh, [{pp}, {}]> : tensor<8x8xf32>
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @twice(%x: tensor<8x8xf32>) {
  // expected-error@+1 {{mesh dimension 'tp' appears twice}}
  %0 = tp.redistribute %x to <@mesh, [{tp}, {tp}]> : tensor<8x8xf32>
  return
}

// -----

tp.mesh @mesh(tp = 8)
func.func @overlapping_parts(%x: tensor<8x8xf32>) {
  // expected-error@+1 {{mesh dimension 'tp' appears twice}}
  %0 = tp.redistribute %x to <@mesh, [{tp:(1)4}, {tp:(2)4}]> : tensor<8x8xf32>
  return
}

// -----

tp.mesh @mesh(tp = 8)
func.func @part(%x: tensor<8x8xf32>) {
  // expected-error@+1 {{part ':(1)3' doesn't divide mesh dimension 'tp' of size 8}}
  %0 = tp.redistribute %x to <@mesh, [{tp:(1)3}, {}]> : tensor<8x8xf32>
  return
}

// -----

func.func @no_mesh(%x: tensor<8x8xf32>) {
  // expected-error@+1 {{no tp.mesh called 'mesh'}}
  %0 = tp.redistribute %x to <@mesh, [{tp}, {}]> : tensor<8x8xf32>
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @kind(%x: tensor<8x8xf32>) {
  // expected-error@+1 {{unknown reduction 'mul'; one of sum, avg, max, min, product is expected}}
  %0 = tp.redistribute %x to <@mesh, [{}, {}], partial = {tp: mul}> : tensor<8x8xf32>
  return
}

// -----

tp.mesh @mesh(tp = 4)
func.func @gather(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{result should be 'tensor<8x16xf32>', found 'tensor<8x8xf32>'}}
  %0 = tp.all_gather %x dim 1 over @mesh {tp} : tensor<8x4xf32> -> tensor<8x8xf32>
  return
}

// -----

tp.mesh @mesh(tp = 4)
func.func @gather_dim(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{dimension 2 is out of range for 'tensor<8x4xf32>'}}
  %0 = tp.all_gather %x dim 2 over @mesh {tp} : tensor<8x4xf32> -> tensor<8x8xf32>
  return
}

// -----

tp.mesh @mesh(tp = 4)
func.func @scatter(%x: tensor<6x4xf32>) {
  // expected-error@+1 {{dimension 0 has size 6, not divisible by the 4 ranks of the group}}
  %0 = tp.reduce_scatter sum %x dim 0 over @mesh {tp} : tensor<6x4xf32> -> tensor<2x4xf32>
  return
}

// -----

tp.mesh @mesh(tp = 4)
func.func @all_to_all(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{split and concat must be different dimensions}}
  %0 = tp.all_to_all %x split 0 concat 0 over @mesh {tp} : tensor<8x4xf32> -> tensor<8x4xf32>
  return
}

// -----

tp.mesh @mesh(tp = 4)
func.func @permute(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{has 2 sources, the group has 4 ranks}}
  %0 = tp.permute %x from [1, 0] over @mesh {tp} : tensor<8x4xf32>
  return
}

// -----

tp.mesh @mesh(tp = 4)
func.func @permute_range(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{source 4 is out of range; the group has 4 ranks}}
  %0 = tp.permute %x from [1, 0, 3, 4] over @mesh {tp} : tensor<8x4xf32>
  return
}

// -----

tp.mesh @mesh(tp = 4)
func.func @broadcast(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{root 4 is out of range; the group has 4 ranks}}
  %0 = tp.broadcast %x root 4 over @mesh {tp} : tensor<8x4xf32>
  return
}

// -----

tp.mesh @mesh(tp = 4)
func.func @no_axes(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{needs at least one mesh dimension}}
  %0 = tp.all_reduce sum %x over @mesh {} : tensor<8x4xf32>
  return
}

// -----

// expected-error@+1 {{attribute 'tp.sharding': no tp.mesh called 'mesh'}}
func.func @argument(%x: tensor<8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}]>}) {
  return
}

// -----

tp.mesh @mesh(tp = 4)
// expected-error@+1 {{attribute 'tp.sharding': a #tp.sharding is expected, found "tp"}}
func.func @argument_kind(%x: tensor<8xf32> {tp.sharding = "tp"}) {
  return
}

// -----

func.func @unknown_attribute(%x: tensor<8xf32>) {
  // expected-error@+1 {{attribute 'tp.shard': unknown}}
  %0 = nn.relu %x {tp.shard = 1} : tensor<8xf32>
  return
}
