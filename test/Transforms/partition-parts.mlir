// RUN: tp-opt %s --tp-partition | FileCheck %s

// Parts of one mesh dimension are redistributed one by one.

tp.mesh @mesh(tp = 4)

// CHECK-LABEL: func.func @second_part
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
func.func @second_part(%x: tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp:(1)2}, {} ]>})
    -> (tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp:(1)2}, {tp:(2)2} ]>}) {
  // CHECK: %[[Y:.*]] = tp.local_slice %[[X]] dim 1 over @mesh {tp:(2)2} : tensor<4x8xf32> -> tensor<4x4xf32>
  // CHECK: return %[[Y]]
  %y = tp.redistribute %x to <@mesh, [{tp:(1)2}, {tp:(2)2} ]> : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @whole
func.func @whole(%x: tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp:(1)2}, {} ]>})
    -> (tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>}) {
  // An all_to_all over the major half, then a slice, would receive twice as much.
  // CHECK: tp.exchange %{{.*}} of [8, 8] from <@mesh, [{tp:(1)2}, {}]> to <@mesh, [{}, {tp}]> over @mesh {tp:(1)2} {bytes = 32 : i64}
  %y = tp.redistribute %x to <@mesh, [{}, {tp} ]> : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
