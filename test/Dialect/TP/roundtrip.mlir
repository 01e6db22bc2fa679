// RUN: tp-opt %s --verify-roundtrip | FileCheck %s
// RUN: tp-opt %s --mlir-print-op-generic | tp-opt | FileCheck %s

// CHECK: tp.mesh @mesh(dp = 2, tp = 4)
tp.mesh @mesh(dp = 2, tp = 4)
// CHECK: tp.mesh @odd("my-axis" = 3)
tp.mesh @odd("my-axis" = 3)

// CHECK-LABEL: func.func @shardings
// CHECK-SAME: %{{.*}}: tensor<8x8xf32> {tp.name = "x", tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}]>}
// CHECK-SAME: -> (tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp, dp}, {}]>})
func.func @shardings(%x: tensor<8x8xf32> {tp.name = "x", tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}]>})
    -> (tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp, dp}, {}]>}) {
  // CHECK: tp.redistribute %{{.*}} to <@mesh, [{}, {}], partial = {tp: sum, dp: avg}> : tensor<8x8xf32>
  %0 = tp.redistribute %x to <@mesh, [{}, {}], partial = {tp: sum, dp: avg}> : tensor<8x8xf32>
  // CHECK: tp.redistribute %{{.*}} to <@mesh, [{tp:(1)2}, {tp:(2)2}]> {fqn = "mlp", reason = "plan.yaml:3:1: why"} : tensor<8x8xf32>
  %1 = tp.redistribute %0 to <@mesh, [{tp:(1)2}, {tp:(2)2}]> {fqn = "mlp", reason = "plan.yaml:3:1: why"} : tensor<8x8xf32>
  // CHECK: tp.redistribute %{{.*}} to <@mesh, [{}, {}], partial = {tp:(2)2: sum}> : tensor<8x8xf32>
  %3 = tp.redistribute %x to <@mesh, [{}, {}], partial = {tp:(2)2: sum}> : tensor<8x8xf32>
  // CHECK: tp.redistribute %{{.*}} to <@odd, [{"my-axis"}, {}]> : tensor<8x8xf32>
  %2 = tp.redistribute %x to <@odd, [{"my-axis"}, {}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @collectives
func.func @collectives(%x: tensor<8x4xf32>) {
  // CHECK: tp.all_gather %{{.*}} dim 1 over @mesh {tp} : tensor<8x4xf32> -> tensor<8x16xf32>
  %0 = tp.all_gather %x dim 1 over @mesh {tp} : tensor<8x4xf32> -> tensor<8x16xf32>
  // CHECK: tp.reduce_scatter max %{{.*}} dim 0 over @mesh {dp, tp} : tensor<8x4xf32> -> tensor<1x4xf32>
  %1 = tp.reduce_scatter max %x dim 0 over @mesh {dp, tp} : tensor<8x4xf32> -> tensor<1x4xf32>
  // CHECK: tp.all_reduce sum %{{.*}} over @mesh {tp} {bytes = 96 : i64, fqn = "a.b", reason = "r"} : tensor<8x4xf32>
  %2 = tp.all_reduce sum %x over @mesh {tp} {bytes = 96 : i64, fqn = "a.b", reason = "r"} : tensor<8x4xf32>
  // CHECK: tp.all_to_all %{{.*}} split 0 concat 1 over @mesh {tp} : tensor<8x4xf32> -> tensor<2x16xf32>
  %3 = tp.all_to_all %x split 0 concat 1 over @mesh {tp} : tensor<8x4xf32> -> tensor<2x16xf32>
  // CHECK: tp.permute %{{.*}} from [1, 2, 3, 0] over @mesh {tp} : tensor<8x4xf32> -> tensor<8x4xf32>
  %4 = tp.permute %x from [1, 2, 3, 0] over @mesh {tp} : tensor<8x4xf32> -> tensor<8x4xf32>
  // CHECK: tp.broadcast %{{.*}} root 3 over @mesh {tp} : tensor<8x4xf32>
  %5 = tp.broadcast %x root 3 over @mesh {tp} : tensor<8x4xf32>
  // CHECK: tp.local_slice %{{.*}} dim 0 over @mesh {tp:(1)2} : tensor<8x4xf32> -> tensor<4x4xf32>
  %6 = tp.local_slice %x dim 0 over @mesh {tp:(1)2} : tensor<8x4xf32> -> tensor<4x4xf32>
  // CHECK: tp.local_slice %{{.*}} dim 0 over @mesh {tp:(1)2 | 6, 2} : tensor<8x4xf32> -> tensor<4x4xf32>
  %segments = tp.local_slice %x dim 0 over @mesh {tp:(1)2 | 6, 2} : tensor<8x4xf32> -> tensor<4x4xf32>
  // CHECK: tp.shard_offset of 8 over @mesh {dp, tp} : tensor<i64>
  %7 = tp.shard_offset of 8 over @mesh {dp, tp} : tensor<i64>
  return
}

// CHECK: tp.mesh @ordered(dp = 2, tp = 2) devices [0, 2, 1, 3]
tp.mesh @ordered(dp = 2, tp = 2) devices [0, 2, 1, 3]

// Blocks of 10 over 4 ranks are 3, 3, 3 and 1.
// CHECK-LABEL: func.func @uneven
// CHECK-SAME: attributes {tp.copy_of = @even, tp.ranks = array<i64: 3, 7>}
func.func @uneven(%x: tensor<1x4xf32>, %y: tensor<10x8xf32>, %z: tensor<2x4xf32>) attributes {tp.copy_of = @even, tp.ranks = array<i64: 3, 7>} {
  // CHECK: tp.all_gather %{{.*}} dim 0 over @mesh {tp} : tensor<1x4xf32> -> tensor<10x4xf32>
  %0 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<1x4xf32> -> tensor<10x4xf32>
  // CHECK: tp.exchange %{{.*}} of [10, 8] from <@mesh, [{tp}, {dp}]> to <@mesh, [{}, {dp, tp}]> over @mesh {tp, dp} : tensor<1x4xf32> -> tensor<10x1xf32>
  %1 = tp.exchange %x of [10, 8] from <@mesh, [{tp}, {dp}]> to <@mesh, [{}, {dp, tp}]> over @mesh {tp, dp} : tensor<1x4xf32> -> tensor<10x1xf32>
  // CHECK: tp.permute %{{.*}} from [3, 1, 2, 0] over @mesh {tp} : tensor<1x4xf32> -> tensor<3x4xf32>
  %3 = tp.permute %x from [3, 1, 2, 0] over @mesh {tp} : tensor<1x4xf32> -> tensor<3x4xf32>
  // CHECK: tp.halo %{{.*}} dim 0 of 10 begin [-1, 2, 5, 8] over @mesh {tp} : tensor<2x4xf32> -> tensor<3x4xf32>
  %4 = tp.halo %z dim 0 of 10 begin [-1, 2, 5, 8] over @mesh {tp} : tensor<2x4xf32> -> tensor<3x4xf32>
  // CHECK: tp.shard_offset of 10 over @mesh {tp} : tensor<i64>
  %2 = tp.shard_offset of 10 over @mesh {tp} : tensor<i64>
  return
}

// CHECK-LABEL: func.func @views
func.func @views(%x: tensor<8x8xf32>) {
  // CHECK: tp.distribute %{{.*}} to <@mesh, [{tp | 4, 4}, {}]> : tensor<8x8xf32>
  %0 = tp.distribute %x to <@mesh, [{tp | 4, 4}, {}]> : tensor<8x8xf32>
  // CHECK: tp.to_local %{{.*}} as <@mesh, [{tp}, {}]> grad <@mesh, [{}, {}], partial = {tp: sum}> : tensor<8x8xf32> -> tensor<2x8xf32>
  %1 = tp.to_local %0 as <@mesh, [{tp}, {}]> grad <@mesh, [{}, {}], partial = {tp: sum}> : tensor<8x8xf32> -> tensor<2x8xf32>
  // CHECK: tp.from_local %{{.*}} as <@mesh, [{}, {tp}]> : tensor<2x8xf32> -> tensor<2x32xf32>
  %2 = tp.from_local %1 as <@mesh, [{}, {tp}]> : tensor<2x8xf32> -> tensor<2x32xf32>
  return
}

// CHECK-LABEL: func.func @pending
func.func @pending(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK: %[[P:.*]] = tp.start {
  // CHECK-NEXT: %[[R:.*]] = tp.all_reduce sum %{{.*}} over @mesh {tp} : tensor<8x4xf32>
  // CHECK-NEXT: tp.yield %[[R]] : tensor<8x4xf32>
  // CHECK-NEXT: } : !tp.pending<tensor<8x4xf32>>
  // CHECK-NEXT: tp.wait %[[P]] : !tp.pending<tensor<8x4xf32>>
  %0 = tp.start {
    %1 = tp.all_reduce sum %x over @mesh {tp} : tensor<8x4xf32>
    tp.yield %1 : tensor<8x4xf32>
  } : !tp.pending<tensor<8x4xf32>>
  %2 = tp.wait %0 : !tp.pending<tensor<8x4xf32>>
  return %2 : tensor<8x4xf32>
}

// CHECK: tp.pipeline @mesh over "dp" schedule "1F1B" microbatches 4
tp.pipeline @mesh over "dp" schedule "1F1B" microbatches 4

// CHECK-LABEL: func.func @stage
// CHECK-SAME: attributes {tp.ranks = array<i64: 0, 1, 2, 3>, tp.stage = 0 : i64}
func.func @stage(%x: tensor<8x4xf32>, %empty: tensor<0x0xf32> {tp.absent}) attributes {tp.ranks = array<i64: 0, 1, 2, 3>, tp.stage = 0 : i64} {
  // CHECK: tp.transfer %{{.*}} from 0 to 1 over @mesh {dp} : tensor<8x4xf32> -> tensor<0x0xf32>
  %0 = tp.transfer %x from 0 to 1 over @mesh {dp} : tensor<8x4xf32> -> tensor<0x0xf32>
  // CHECK: tp.transfer %{{.*}} from 1 to 0 varying {tp} over @mesh {dp} : tensor<0x0xf32> -> tensor<8x4xf32>
  %1 = tp.transfer %empty from 1 to 0 varying {tp} over @mesh {dp} : tensor<0x0xf32> -> tensor<8x4xf32>
  return
}
