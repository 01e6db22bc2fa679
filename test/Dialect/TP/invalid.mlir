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

tp.mesh @mesh(dp = 2, tp = 2)
func.func @max_of_sums(%x: tensor<8x8xf32>) {
  // expected-error@+1 {{partial by sum over 'tp' and by max over 'dp': these reductions don't commute}}
  tp.redistribute %x to <@mesh, [{}, {}], partial = {tp: sum, dp: max}> : tensor<8x8xf32>
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

tp.mesh @mesh(tp = 6)
func.func @dependent_parts(%x: tensor<8x8xf32>) {
  // Of 6 ranks, halves and odd or even ones don't form a grid.
  // expected-error@+1 {{parts ':(1)2' and ':(3)2' of mesh dimension 'tp' can't be used together: 2 doesn't divide 3}}
  %0 = tp.redistribute %x to <@mesh, [{tp:(3)2}, {tp:(1)2} ]> : tensor<8x8xf32>
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
  // expected-error@+1 {{no rank's block of 'tensor<8x8xf32>', split along dimension 1 by a group of 4, is 'tensor<8x4xf32>'}}
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
  // Blocks of 6 rows over 4 ranks are 2, 2, 2 and 0.
  // expected-error@+1 {{no rank's block of 'tensor<6x4xf32>', split along dimension 0 by a group of 4, is 'tensor<1x4xf32>'}}
  %0 = tp.reduce_scatter sum %x dim 0 over @mesh {tp} : tensor<6x4xf32> -> tensor<1x4xf32>
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
  %0 = tp.permute %x from [1, 0] over @mesh {tp} : tensor<8x4xf32> -> tensor<8x4xf32>
  return
}

// -----

tp.mesh @mesh(tp = 4)
func.func @permute_range(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{source 4 is out of range; the group has 4 ranks}}
  %0 = tp.permute %x from [1, 0, 3, 4] over @mesh {tp} : tensor<8x4xf32> -> tensor<8x4xf32>
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @permute_rank(%x: tensor<8x4xf32>) attributes {tp.ranks = array<i64: 0>} {
  // expected-error@+1 {{moves blocks as they are: the result must have 2 dimensions of 'f32', found 'tensor<32xf32>'}}
  %0 = tp.permute %x from [1, 0] over @mesh {tp} : tensor<8x4xf32> -> tensor<32xf32>
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @permute_element(%x: tensor<8x4xf32>) attributes {tp.ranks = array<i64: 0>} {
  // expected-error@+1 {{moves blocks as they are: the result must have 2 dimensions of 'f32', found 'tensor<8x4xf64>'}}
  %0 = tp.permute %x from [1, 0] over @mesh {tp} : tensor<8x4xf32> -> tensor<8x4xf64>
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @permute_one_program(%x: tensor<3xf32>) {
  // expected-error@+1 {{gives rank 0 the block of rank 1, which runs the same program: a result of 'tensor<3xf32>' is needed, found 'tensor<2xf32>'}}
  %0 = tp.permute %x from [1, 0] over @mesh {tp} : tensor<3xf32> -> tensor<2xf32>
  return
}

// -----

// Rank 2 may get another shape, from rank 0; rank 1 gets its own block.
tp.mesh @mesh(tp = 3)
func.func @permute_own(%x: tensor<3xf32>) attributes {tp.ranks = array<i64: 1, 2>} {
  // expected-error@+1 {{gives rank 1 the block of rank 1, which runs the same program: a result of 'tensor<3xf32>' is needed, found 'tensor<2xf32>'}}
  %0 = tp.permute %x from [2, 1, 0] over @mesh {tp} : tensor<3xf32> -> tensor<2xf32>
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

// expected-error@+1 {{attribute 'tp.global_type': a ranked tensor type is expected, found i32}}
func.func @global_type(%x: tensor<8xf32> {tp.global_type = i32}) {
  return
}

// -----

func.func @unknown_attribute(%x: tensor<8xf32>) {
  // expected-error@+1 {{attribute 'tp.shard': unknown; the dialect has 'tp.sharding', 'tp.shardings', 'tp.fqn', 'tp.global_type', 'tp.open', 'tp.batch', 'tp.sequence', 'tp.name', 'tp.symbolic_shape', 'tp.loss', 'tp.ranks', 'tp.copy_of', 'tp.stage', 'tp.stage_of', 'tp.absent', 'tp.redistributions', 'tp.constants', 'tp.arena_bytes', 'tp.arena_use', 'tp.reshard', 'tp.fsdp_group', 'tp.pass', 'tp.buffer', 'tp.sparse_rows', 'tp.index_bound'}}
  %0 = nn.relu %x {tp.shard = 1} : tensor<8xf32>
  return
}

// -----

// expected-error@+1 {{has 4 positions, but 3 devices}}
tp.mesh @mesh(dp = 2, tp = 2) devices [0, 1, 2]

// -----

// expected-error@+1 {{device 1 appears twice}}
tp.mesh @mesh(dp = 2, tp = 2) devices [0, 1, 1, 2]

// -----

// expected-error@+1 {{device 4 is out of range; the mesh has ranks 0 to 3}}
tp.mesh @mesh(dp = 2, tp = 2) devices [0, 1, 2, 4]

// -----

tp.mesh @mesh(tp = 2)
func.func @segments(%x: tensor<8x8xf32>) {
  // expected-error@+1 {{the segments of dimension 0 add up to 6, its size is 8}}
  %0 = tp.redistribute %x to <@mesh, [{tp | 4, 2}, {}]> : tensor<8x8xf32>
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @one_segment(%x: tensor<8x8xf32>) {
  // expected-error@+1 {{at least two segments, of at least one element each, are expected}}
  %0 = tp.redistribute %x to <@mesh, [{tp | 8}, {}]> : tensor<8x8xf32>
  return
}

// -----

tp.mesh @mesh(x = 2, y = 2)
func.func @exchange(%x: tensor<4x4xf32>) {
  // expected-error@+1 {{no rank's blocks of 'tensor<8x8xf32>' are 'tensor<4x4xf32>' and 'tensor<4x2xf32>'}}
  %0 = tp.exchange %x of [8, 8] from <@mesh, [{x}, {y}]> to <@mesh, [{y}, {x}]> over @mesh {x, y} : tensor<4x4xf32> -> tensor<4x2xf32>
  return
}

// -----

tp.mesh @mesh(x = 2, y = 2)
func.func @exchange_partial(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{an exchange reduces nothing: both shardings must have the same Partial}}
  %0 = tp.exchange %x of [8, 8] from <@mesh, [{x}, {}], partial = {y: sum}> to <@mesh, [{}, {x}]> over @mesh {x} : tensor<4x8xf32> -> tensor<8x4xf32>
  return
}

// -----

tp.mesh @mesh(x = 2, y = 2)
func.func @exchange_group(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{the group must be spanned by the axes of 'from'}}
  %0 = tp.exchange %x of [8, 8] from <@mesh, [{x}, {}]> to <@mesh, [{}, {x}]> over @mesh {y} : tensor<4x8xf32> -> tensor<8x4xf32>
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @halo_dim(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{dimension 2 is out of range for 'tensor<2x4xf32>'}}
  %0 = tp.halo %x dim 2 of 8 begin [0, 3] over @mesh {tp} : tensor<2x4xf32> -> tensor<2x5xf32>
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @halo_size(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{needs a size of at least 0, found -8}}
  %0 = tp.halo %x dim 1 of -8 begin [0, 3] over @mesh {tp} : tensor<2x4xf32> -> tensor<2x5xf32>
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @halo_other_dims(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{changes only dimension 1 of 'tensor<2x4xf32>', found 'tensor<3x5xf32>'}}
  %0 = tp.halo %x dim 1 of 8 begin [0, 3] over @mesh {tp} : tensor<2x4xf32> -> tensor<3x5xf32>
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @halo_begin(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{has 3 beginnings, the group has 2 ranks}}
  %0 = tp.halo %x dim 1 of 8 begin [0, 3, 6] over @mesh {tp} : tensor<2x4xf32> -> tensor<2x5xf32>
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @halo_margin(%x: tensor<2x5xf32>) {
  // expected-error@+1 {{needs a block of at least 6 elements along dimension 1 on rank 0, which has 4 of 8, found 5}}
  %0 = tp.halo %x dim 1 of 8 begin [-2, 2] over @mesh {tp} : tensor<2x5xf32> -> tensor<2x6xf32>
  return
}

// -----

tp.mesh @mesh(tp = 4)
func.func @to_local(%x: tensor<8x8xf32>) {
  // expected-error@+1 {{a rank's block of 'tensor<8x8xf32>' is 'tensor<2x8xf32>', found 'tensor<4x8xf32>'}}
  %0 = tp.to_local %x as <@mesh, [{tp}, {}]> : tensor<8x8xf32> -> tensor<4x8xf32>
  return
}

// -----

tp.mesh @mesh(tp = 4)
func.func @from_local_uneven(%x: tensor<3x8xf32>) {
  // expected-error@+1 {{have different sizes; a local value needs one type}}
  %0 = tp.from_local %x as <@mesh, [{tp}, {}]> : tensor<3x8xf32> -> tensor<10x8xf32>
  return
}

// -----

// expected-error@+1 {{has more than 65536 ranks}}
tp.mesh @mesh(dp = 1000000, tp = 1000000)

// -----

tp.mesh @mesh(tp = 2)
// expected-error@+1 {{a sharding needs a tensor of static shape, found 'tensor<?x8xf32>'}}
func.func @dynamic(%x: tensor<?x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  return
}

// -----

tp.mesh @mesh(tp = 2)
// expected-error@+1 {{a sharding needs a tensor of integers, floats or indices, found 'tensor<8xcomplex<f32>>'}}
func.func @complex(%x: tensor<8xcomplex<f32>> {tp.sharding = #tp.sharding<@mesh, [{tp}]>}) {
  return
}

// -----

tp.mesh @mesh(tp = 2)
// expected-error@+1 {{a sharding needs a tensor of at most 1099511627776 elements, found 'tensor<9223372036854775807x8xf32>'}}
func.func @overflow(%x: tensor<9223372036854775807x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @no_collective(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{needs a body of one collective and a 'tp.yield' of its result}}
  %0 = tp.start {
    tp.yield %x : tensor<8xf32>
  } : !tp.pending<tensor<8xf32>>
  %1 = tp.wait %0 : !tp.pending<tensor<8xf32>>
  return %1 : tensor<8xf32>
}

// -----

tp.mesh @mesh(tp = 2)
func.func @other_type(%x: tensor<8xf32>) -> tensor<16xf32> {
  // expected-error@+1 {{has the pending type 'tensor<16xf32>', but its collective returns 'tensor<8xf32>'}}
  %0 = tp.start {
    %2 = tp.all_reduce sum %x over @mesh {tp} : tensor<8xf32>
    tp.yield %2 : tensor<8xf32>
  } : !tp.pending<tensor<16xf32>>
  %1 = tp.wait %0 : !tp.pending<tensor<16xf32>>
  return %1 : tensor<16xf32>
}

// -----

tp.mesh @mesh(tp = 2)
func.func @never_waited_for(%x: tensor<8xf32>) {
  // expected-error@+1 {{needs one 'tp.wait', in the same block}}
  %0 = tp.start {
    %2 = tp.all_reduce sum %x over @mesh {tp} : tensor<8xf32>
    tp.yield %2 : tensor<8xf32>
  } : !tp.pending<tensor<8xf32>>
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @other_segments(%x: tensor<4x8xf32>) -> tensor<4x4xf32> {
  // expected-error@+1 {{the segments of dimension 1 add up to 6, its size is 8}}
  %0 = tp.local_slice %x dim 1 over @mesh {tp | 4, 2} : tensor<4x8xf32> -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

tp.mesh @mesh(tp = 2)
func.func @gathered_segments(%x: tensor<4x4xf32>) -> tensor<4x8xf32> {
  // expected-error@+1 {{can't have segments; only 'tp.local_slice' supports them}}
  %0 = tp.all_gather %x dim 1 over @mesh {tp | 4, 4} : tensor<4x4xf32> -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

tp.mesh @mesh(tp = 2)
// expected-error @+1 {{the symbol of a function, on a function with 'tp.ranks', is expected, found @main}}
func.func @copy_without_ranks() attributes {tp.copy_of = @main} { return }

// -----

tp.mesh @mesh(tp = 2)
// expected-error @+1 {{the symbol of a function, on a function with 'tp.ranks', is expected, found "main"}}
func.func @copy_of_text() attributes {tp.copy_of = "main", tp.ranks = array<i64: 0>} { return }

// -----

func.func @open_op(%x: tensor<8xf32>) {
  // expected-error@+1 {{attribute 'tp.open': belongs on an argument or result of a function}}
  %0 = nn.relu %x {tp.open} : tensor<8xf32>
  return
}

// -----

// expected-error@+1 {{attribute 'tp.ranks': not an attribute of a function argument or result}}
func.func @ranks_argument(%x: tensor<8xf32> {tp.ranks = array<i64: 0>}) {
  return
}

// -----

// expected-error@+1 {{attribute 'tp.symbolic_shape': an array of strings is expected, found [1]}}
func.func @symbolic_kind(%x: tensor<8xf32> {tp.symbolic_shape = [1]}) {
  return
}

// -----

// expected-error@+1 {{attribute 'tp.symbolic_shape': has 2 sizes for type 'tensor<8xf32>'}}
func.func @symbolic_rank(%x: tensor<8xf32> {tp.symbolic_shape = ["s0", "2"]}) {
  return
}

// -----

// expected-error@+1 {{attribute 'tp.loss': a unit attribute is expected, found "mean"}}
func.func @loss_kind(%x: tensor<8xf32> {tp.loss = "mean"}) {
  return
}

// -----

// expected-error@+1 {{attribute 'tp.batch': belongs on an argument of a function}}
func.func @batch_result(%x: tensor<8xf32>) -> (tensor<8xf32> {tp.batch = ["dp"]}) {
  return %x : tensor<8xf32>
}
