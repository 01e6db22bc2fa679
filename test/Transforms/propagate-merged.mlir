// Where a factor of a merged dimension ends within a mesh dimension, parts of it split the factors.

// RUN: tp-opt %s --split-input-file --tp-propagate="latency-bytes=0" | FileCheck %s
// RUN: tp-opt %s --split-input-file --tp-parallelize="latency-bytes=0" | FileCheck %s --check-prefix=RANKS

tp.mesh @mesh(y = 2, x = 4)

// A rank has 2 of the 4 elements that it needs, or none: all together lack 24.
// CHECK-LABEL: func.func @merge
// CHECK: %[[X:.*]] = tp.redistribute %{{.*}} to <@mesh, [{y, x:(1)2}, {x:(2)2}]>
// CHECK: nn.reshape %[[X]] {tp.sharding = #tp.sharding<@mesh, [{y, x}]>}
// CHECK-NEXT: return
// RANKS-LABEL: func.func @merge
// RANKS: tp.exchange {{.*}} {bytes = 16 : i64
// RANKS-NEXT: = nn.reshape
// RANKS-NEXT: return
func.func @merge(%x: tensor<4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{y}, {x}]>})
    -> (tensor<32xf32> {tp.sharding = #tp.sharding<@mesh, [{y, x}]>}) {
  %0 = nn.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
  return %0 : tensor<32xf32>
}

// -----

tp.mesh @mesh(y = 2, x = 4)

// CHECK-LABEL: func.func @split
// CHECK: nn.reshape %{{.*}} {tp.sharding = #tp.sharding<@mesh, [{y, x:(1)2}, {x:(2)2}]>}
// CHECK-NEXT: tp.redistribute %{{.*}} to <@mesh, [{y}, {x}]>
func.func @split(%x: tensor<32xf32> {tp.sharding = #tp.sharding<@mesh, [{y, x}]>})
    -> (tensor<4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{y}, {x}]>}) {
  %0 = nn.reshape %x : tensor<32xf32> -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
