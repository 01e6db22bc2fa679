// RUN: tp-opt %s --tp-propagate --tp-partition | FileCheck %s

tp.mesh @mesh(tp = 2)

// Between to_local and from_local, ops see a rank's block alone.
// CHECK-LABEL: func.func @view
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32>
func.func @view(%x: tensor<8x4xf32>) -> (tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) {
  // CHECK: %[[D:.*]] = tp.local_slice %[[X]] dim 0 over @mesh {tp} : tensor<8x4xf32> -> tensor<4x4xf32>
  %d = tp.distribute %x to <@mesh, [{tp}, {}]> : tensor<8x4xf32>
  // CHECK: %[[G:.*]] = tp.all_gather %[[D]] dim 0
  %l = tp.to_local %d as <@mesh, [{}, {}]> : tensor<8x4xf32> -> tensor<8x4xf32>
  // CHECK: %[[R:.*]] = nn.relu %[[G]] : tensor<8x4xf32>
  %r = nn.relu %l : tensor<8x4xf32>
  // CHECK: return %[[R]]
  %g = tp.from_local %r as <@mesh, [{}, {tp}]> : tensor<8x4xf32> -> tensor<8x8xf32>
  return %g : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @partial
func.func @partial(%x: tensor<8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<4x4xf32> {
  %l = tp.to_local %x as <@mesh, [{tp}, {}]> : tensor<8x4xf32> -> tensor<4x4xf32>
  // CHECK: tp.all_reduce sum
  %g = tp.from_local %l as <@mesh, [{}, {}], partial = {tp: sum}> : tensor<4x4xf32> -> tensor<4x4xf32>
  return %g : tensor<4x4xf32>
}
