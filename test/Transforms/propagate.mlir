// RUN: tp-opt %s --tp-propagate | FileCheck %s

tp.mesh @mesh(tp = 2)

// A column split flows through elementwise ops; the row split gives a Partial,
// which is reduced where an op can't do without the sum.
// CHECK-LABEL: func.func @column_row
// CHECK-SAME: tp.sharding = #tp.sharding<@mesh, [{}, {}]>
func.func @column_row(%x: tensor<8x10xf32>) -> tensor<8x10xf32> {
  %w1 = nn.parameter "net1.weight" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<16x10xf32>
  // CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}
  %0 = nn.linear %x, %w1 : (tensor<8x10xf32>, tensor<16x10xf32>) -> tensor<8x16xf32>
  // CHECK: nn.gelu {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}
  %1 = nn.gelu %0 : tensor<8x16xf32>
  %w2 = nn.parameter "net2.weight" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<10x16xf32>
  // CHECK: %[[P:.*]] = nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>}
  %2 = nn.linear %1, %w2 : (tensor<8x16xf32>, tensor<10x16xf32>) -> tensor<8x10xf32>
  // CHECK: %[[R:.*]] = tp.redistribute %[[P]] to <@mesh, [{}, {}]> {fqn = "", reason = "nn.relu needs operand 0 as (Replicate)"}
  // CHECK: nn.relu %[[R]]
  %3 = nn.relu %2 : tensor<8x10xf32>
  return %3 : tensor<8x10xf32>
}

// A Partial passes through what is linear in it, and is reduced once.
// CHECK-LABEL: func.func @linear_ops
func.func @linear_ops(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                      %w: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> tensor<8x8xf32> {
  // CHECK: nn.linear
  %0 = nn.linear %x, %w : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x8xf32>
  // CHECK: nn.linear
  %1 = nn.linear %x, %w : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x8xf32>
  // CHECK-NOT: tp.redistribute
  // CHECK: nn.add {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>}
  %2 = nn.add %0, %1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = nn.constant dense<2.0> : tensor<f32>
  // CHECK: nn.mul {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>}
  %3 = nn.mul %2, %c : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  // CHECK: tp.redistribute %{{.*}} to <@mesh, [{}, {}]> {fqn = "", reason = "result 0 of the function is (Replicate)"}
  return %3 : tensor<8x8xf32>
}

// A bias is added once: after the reduction, in the layout that is asked for.
// CHECK-LABEL: func.func @bias
func.func @bias(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<8x10xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<10x16xf32>
  %b = nn.parameter "b" : tensor<10xf32>
  // CHECK: %[[Y:.*]] = nn.linear
  %0 = nn.linear %x, %w : (tensor<8x16xf32>, tensor<10x16xf32>) -> tensor<8x10xf32>
  // CHECK: %[[S:.*]] = tp.redistribute %[[Y]] to <@mesh, [{tp}, {}]> {fqn = "net", reason = "plan.yaml:4:3: RowwiseParallel output_layouts Shard(0)"}
  // CHECK: %[[Z:.*]] = nn.add %[[S]]
  // CHECK: return %[[Z]]
  %1 = nn.add %0, %b : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  %2 = tp.redistribute %1 to <@mesh, [{tp}, {}]> {fqn = "net", reason = "plan.yaml:4:3: RowwiseParallel output_layouts Shard(0)"} : tensor<8x10xf32>
  return %2 : tensor<8x10xf32>
}

// The heads of an attention are the major factor of the features.
// CHECK-LABEL: func.func @heads
func.func @heads(%q: tensor<2x8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {tp}]>},
                 %k: tensor<2x8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {tp}]>})
    -> (tensor<2x8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {tp}]>}) {
  // CHECK: nn.reshape {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}, {tp}, {}]>}
  %0 = nn.reshape %q : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  // CHECK: nn.transpose {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}, {}]>}
  %1 = nn.transpose %0 [0, 2, 1, 3] : tensor<2x8x4x4xf32> -> tensor<2x4x8x4xf32>
  %2 = nn.reshape %k : tensor<2x8x8xf32> -> tensor<2x8x2x4xf32>
  %3 = nn.transpose %2 [0, 2, 1, 3] : tensor<2x8x2x4xf32> -> tensor<2x2x8x4xf32>
  // CHECK-NOT: tp.redistribute
  // CHECK: nn.attention {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}, {}]>}
  %4 = nn.attention causal %1, %3, %3 scale 0.5 : (tensor<2x4x8x4xf32>, tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32>) -> tensor<2x4x8x4xf32>
  %5 = nn.transpose %4 [0, 2, 1, 3] : tensor<2x4x8x4xf32> -> tensor<2x8x4x4xf32>
  // CHECK: nn.reshape {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}, {tp}]>}
  // CHECK-NOT: tp.redistribute
  %6 = nn.reshape %5 : tensor<2x8x4x4xf32> -> tensor<2x8x16xf32>
  return %6 : tensor<2x8x16xf32>
}

// A value that several ops need whole is gathered once.
// CHECK-LABEL: func.func @whole
func.func @whole(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  // CHECK: %[[W:.*]] = tp.redistribute %{{.*}} to <@mesh, [{}, {}]> {fqn = "", reason = "nn.softmax needs operand 0 as (Replicate)"}
  // CHECK: nn.softmax %[[W]]
  %0 = nn.softmax %x dim 1 : tensor<8x16xf32>
  // CHECK-NOT: tp.redistribute
  // CHECK: nn.softmax %[[W]] dim 1
  %1 = nn.softmax %x dim 1 : tensor<8x16xf32>
  return %0, %1 : tensor<8x16xf32>, tensor<8x16xf32>
}

// 3 heads don't split over 2 ranks: what is wished of the merged dimension is none of the transpose's business.
// CHECK-LABEL: func.func @uneven_heads
func.func @uneven_heads(%x: tensor<2x3x8x4xf32>) -> (tensor<2x8x12xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {tp}]>}) {
  // CHECK-NEXT: nn.transpose %{{.*}} [0, 2, 1, 3] {tp.sharding = #tp.sharding<@mesh, [{}, {}, {}, {}]>}
  // CHECK-NEXT: nn.reshape %{{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}, {}]>}
  // CHECK-NEXT: tp.redistribute %{{.*}} to <@mesh, [{}, {}, {tp}]>
  // CHECK-NEXT: return
  %0 = nn.transpose %x [0, 2, 1, 3] : tensor<2x3x8x4xf32> -> tensor<2x8x3x4xf32>
  %1 = nn.reshape %0 : tensor<2x8x3x4xf32> -> tensor<2x8x12xf32>
  %2 = tp.redistribute %1 to <@mesh, [{}, {}, {tp}]> : tensor<2x8x12xf32>
  return %2 : tensor<2x8x12xf32>
}
