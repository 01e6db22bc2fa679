// Ops that name a mesh are verified after all other ops, with the module's symbols.
// RUN: tp-opt %s --split-input-file --verify-diagnostics

func.func @collective(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error@+1 {{no tp.mesh called 'mesh'}}
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

tp.mesh @mesh(tp = 2)
func.func @collective_axis(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error@+1 {{mesh 'mesh' has no dimension 'dp'; it has 'tp'}}
  %0 = tp.broadcast %x root 0 over @mesh {dp} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

func.func @slice(%x: tensor<8x8xf32>) -> tensor<8x4xf32> {
  // expected-error@+1 {{no tp.mesh called 'mesh'}}
  %0 = tp.local_slice %x dim 1 over @mesh {tp} : tensor<8x8xf32> -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @exchange(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  // expected-error@+1 {{no tp.mesh called 'mesh'}}
  %0 = tp.exchange %x of [8, 8] from <@mesh, [{tp}, {}]> to <@mesh, [{}, {tp}]> over @mesh {tp} : tensor<4x8xf32> -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @halo(%x: tensor<4x4xf32>) -> tensor<4x5xf32> {
  // expected-error@+1 {{no tp.mesh called 'mesh'}}
  %0 = tp.halo %x dim 1 of 8 begin [0, 3] over @mesh {tp} : tensor<4x4xf32> -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// -----

func.func @offset() -> tensor<i64> {
  // expected-error@+1 {{no tp.mesh called 'mesh'}}
  %0 = tp.shard_offset of 10 over @mesh {tp} : tensor<i64>
  return %0 : tensor<i64>
}

// -----

func.func @distribute(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error@+1 {{no tp.mesh called 'mesh'}}
  %0 = tp.distribute %x to <@mesh, [{tp}, {}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

func.func @constraint(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error@+1 {{no tp.mesh called 'mesh'}}
  %0 = tp.constraint %x to <@mesh, [{tp}, {}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

func.func @to_local(%x: tensor<8x8xf32>) -> tensor<4x8xf32> {
  // expected-error@+1 {{no tp.mesh called 'mesh'}}
  %0 = tp.to_local %x as <@mesh, [{tp}, {}]> : tensor<8x8xf32> -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @from_local(%x: tensor<4x8xf32>) -> tensor<8x8xf32> {
  // expected-error@+1 {{no tp.mesh called 'mesh'}}
  %0 = tp.from_local %x as <@mesh, [{tp}, {}]> : tensor<4x8xf32> -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// The function precedes a mesh that is invalid itself.
func.func @invalid_mesh(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
// expected-error@+1 {{dimension 'tp' has size 0; at least 1 is needed}}
tp.mesh @mesh(tp = 0)
