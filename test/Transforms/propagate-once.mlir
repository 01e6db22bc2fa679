// RUN: tp-opt %s --tp-propagate --tp-partition | FileCheck %s

// A replicated term added to a Partial is masked on all ranks but the first.
tp.mesh @mesh(tp = 2)

// CHECK-LABEL: func.func @bias
func.func @bias(%x: tensor<4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}, %b: tensor<6xf32>)
    -> (tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>}) {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<6x8xf32>
  // CHECK: %[[Y:.*]] = nn.linear
  %y = nn.linear %x, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  // CHECK: %[[I:.*]] = tp.shard_offset of 2 over @mesh {tp} : tensor<i64>
  // CHECK: %[[FIRST:.*]] = nn.compare eq %[[I]]
  // CHECK: %[[B:.*]] = nn.where %[[FIRST]], %{{.*}}, %{{.*}} : (tensor<i1>, tensor<6xf32>, tensor<f32>) -> tensor<6xf32>
  // CHECK: nn.add %[[Y]], %[[B]]
  // CHECK-NOT: tp.all_reduce
  %z = nn.add %y, %b : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %z : tensor<4x6xf32>
}

// Where the sum is wanted whole, the Partial is reduced first: nothing needs to be masked.
// CHECK-LABEL: func.func @whole
func.func @whole(%x: tensor<4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}, %b: tensor<6xf32>) -> tensor<4x6xf32> {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<6x8xf32>
  %y = nn.linear %x, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  // CHECK-NOT: nn.where
  // CHECK: tp.all_reduce sum
  // CHECK: nn.add
  %z = nn.add %y, %b : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %r = tp.redistribute %z to <@mesh, [{}, {}]> : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
