// RUN: tp-opt %s --tp-propagate -split-input-file -verify-diagnostics

tp.mesh @mesh(tp = 2)
func.func @placed(%x: tensor<8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<8x4xf32> {
  // expected-error@+1 {{the input is placed already, (Shard(0)); tp.redistribute changes a placement}}
  %d = tp.distribute %x to <@mesh, [{}, {tp}]> : tensor<8x4xf32>
  return %d : tensor<8x4xf32>
}

// -----

tp.mesh @mesh(tp = 2)
func.func @mixed(%x: tensor<8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> tensor<8x4xf32> {
  %l = tp.to_local %x as <@mesh, [{}, {}]> : tensor<8x4xf32> -> tensor<8x4xf32>
  // expected-error@+1 {{mixes a local value with one that is placed (Shard(1))}}
  %y = nn.add %l, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %g = tp.from_local %y as <@mesh, [{}, {}]> : tensor<8x4xf32> -> tensor<8x4xf32>
  return %g : tensor<8x4xf32>
}

// -----

tp.mesh @mesh(tp = 2)
func.func @returned(%x: tensor<8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> tensor<8x2xf32> {
  %l = tp.to_local %x as <@mesh, [{}, {tp}]> : tensor<8x4xf32> -> tensor<8x2xf32>
  // expected-error@+1 {{can't take a local value; tp.from_local makes a global one of it}}
  return %l : tensor<8x2xf32>
}

// -----

tp.mesh @mesh(tp = 2)
func.func @not_local(%x: tensor<8x4xf32>) -> tensor<8x8xf32> {
  // expected-error@+1 {{the input isn't a local value; tp.to_local makes one of a global value}}
  %g = tp.from_local %x as <@mesh, [{}, {tp}]> : tensor<8x4xf32> -> tensor<8x8xf32>
  return %g : tensor<8x8xf32>
}
