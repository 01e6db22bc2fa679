// RUN: tp-opt %s --tp-partition --split-input-file --verify-diagnostics

tp.mesh @mesh(tp = 2)
func.func @breaks_rule(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<8xi64> {tp.sharding = #tp.sharding<@mesh, [{}]>}) {
  // expected-error@+2 {{placements break the sharding rule of 'nn.argmax': (Shard(1)) -> (Replicate)}}
  // expected-note@+1 {{the rule is ([0][1]) -> ([0]) {0=8, 1=16} whole={1}}}
  %0 = nn.argmax %x dim 1 {tp.sharding = #tp.sharding<@mesh, [{}]>} : tensor<8x16xf32> -> tensor<8xi64>
  return %0 : tensor<8xi64>
}

// -----

tp.mesh @mesh(tp = 2)
func.func @partial_into_relu(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                             %w: tensor<4x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}) {
  %0 = nn.linear %x, %w {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>} : (tensor<8x16xf32>, tensor<4x16xf32>) -> tensor<8x4xf32>
  // expected-error@+2 {{placements break the sharding rule of 'nn.relu': (Partial(sum)) -> (Replicate)}}
  // expected-note@+1 {{the rule is}}
  %1 = nn.relu %0 {tp.sharding = #tp.sharding<@mesh, [{}, {}]>} : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----

tp.mesh @mesh(tp = 2)
func.func @no_placement(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>})
    -> (tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}) {
  // expected-error@+1 {{has no placement; tp-propagate gives one to every op}}
  %0 = nn.relu %x : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

tp.mesh @mesh(tp = 2)
func.func @wrong_result(%x: tensor<8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}]>})
    -> (tensor<8xf32> {tp.sharding = #tp.sharding<@mesh, [{}]>}) {
  // expected-error@+1 {{result 0 is declared (Replicate) but returned as (Shard(0))}}
  return %x : tensor<8xf32>
}

// -----

tp.mesh @mesh(tp = 2)
func.func @assign_elsewhere() {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{tp}]>} : tensor<8xf32>
  %v = nn.parameter "v" {tp.sharding = #tp.sharding<@mesh, [{}]>} : tensor<8xf32>
  // expected-error@+1 {{assigns "w" a value that is (Replicate), but the parameter is (Shard(0)); tp-propagate redistributes it}}
  nn.assign "w", %v : tensor<8xf32>
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @assign_nothing() {
  %v = nn.parameter "v" {tp.sharding = #tp.sharding<@mesh, [{}]>} : tensor<8xf32>
  // expected-error@+1 {{assigns "w", but no 'nn.parameter' of this FQN precedes it}}
  nn.assign "w", %v : tensor<8xf32>
  return
}
