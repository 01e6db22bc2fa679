// RUN: tp-opt %s --tp-partition | FileCheck %s
// RUN: tp-opt %s --tp-partition --mlir-print-op-generic | tp-opt | FileCheck %s

tp.mesh @mesh(tp = 2)

// CHECK-LABEL: func.func @column_row
// CHECK-SAME: %[[X:.*]]: tensor<8x10xf32> {tp.global_type = tensor<8x10xf32>
// CHECK-SAME: -> (tensor<4x10xf32> {tp.global_type = tensor<8x10xf32>
func.func @column_row(%x: tensor<8x10xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>})
    -> (tensor<8x10xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  // CHECK: nn.parameter "net1.weight" {tp.fqn = "net1", tp.global_type = tensor<16x10xf32>, tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<8x10xf32>
  %w1 = nn.parameter "net1.weight" {tp.fqn = "net1", tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<16x10xf32>
  // CHECK: nn.linear %[[X]], %{{.*}} : (tensor<8x10xf32>, tensor<8x10xf32>) -> tensor<8x8xf32>
  %0 = nn.linear %x, %w1 {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : (tensor<8x10xf32>, tensor<16x10xf32>) -> tensor<8x16xf32>
  %w2 = nn.parameter "net2.weight" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<10x16xf32>
  // CHECK: %[[P:.*]] = nn.linear {{.*}} : (tensor<8x8xf32>, tensor<10x8xf32>) -> tensor<8x10xf32>
  %1 = nn.linear %0, %w2 {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>} : (tensor<8x16xf32>, tensor<10x16xf32>) -> tensor<8x10xf32>
  // CHECK: tp.reduce_scatter sum %[[P]] dim 0 over @mesh {tp} {bytes = 160 : i64, fqn = "net2", reason = "because"} : tensor<8x10xf32> -> tensor<4x10xf32>
  %2 = tp.redistribute %1 to <@mesh, [{tp}, {}]> {fqn = "net2", reason = "because"} : tensor<8x10xf32>
  return %2 : tensor<8x10xf32>
}

// CHECK-LABEL: func.func @redistributions
func.func @redistributions(%x: tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>})
    -> (tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}) {
  // CHECK: tp.local_slice %{{.*}} dim 0 over @mesh {tp} : tensor<8x8xf32> -> tensor<4x8xf32>
  %0 = tp.redistribute %x to <@mesh, [{tp}, {}]> : tensor<8x8xf32>
  // CHECK: tp.all_to_all %{{.*}} split 1 concat 0 over @mesh {tp} {bytes = 64 : i64} : tensor<4x8xf32> -> tensor<8x4xf32>
  %1 = tp.redistribute %0 to <@mesh, [{}, {tp}]> : tensor<8x8xf32>
  // CHECK: tp.all_gather %{{.*}} dim 1 over @mesh {tp} {bytes = 128 : i64} : tensor<8x4xf32> -> tensor<8x8xf32>
  %2 = tp.redistribute %1 to <@mesh, [{}, {}]> : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// A table split by rows: a masked lookup in this rank's rows.
// CHECK-LABEL: func.func @embedding
func.func @embedding(%ids: tensor<2x8xi64> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>})
    -> (tensor<2x8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {}]>}) {
  %w = nn.parameter "table" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<100x4xf32>
  // CHECK: %[[FIRST:.*]] = tp.shard_offset of 100 over @mesh {tp} {tp.fqn = "emb"} : tensor<i64>
  // CHECK: %[[REL:.*]] = nn.sub %{{.*}}, %[[FIRST]]
  // CHECK: %[[MINE:.*]] = nn.logical_and
  // An index that no rank holds stays what it is.
  // CHECK: %[[VALID:.*]] = nn.logical_and
  // CHECK: %[[OTHER:.*]] = nn.where %[[VALID]], %{{.*}}, %arg0
  // CHECK: %[[SAFE:.*]] = nn.where %[[MINE]], %[[REL]], %[[OTHER]]
  // CHECK: %[[ROWS:.*]] = nn.embedding %[[SAFE]], %{{.*}} {tp.fqn = "emb", tp.index_bound = 100 : i64} : (tensor<2x8xi64>, tensor<50x4xf32>) -> tensor<2x8x4xf32>
  // CHECK: %[[MASKED:.*]] = nn.where %{{.*}}, %[[ROWS]]
  // CHECK: tp.all_reduce sum %[[MASKED]]
  %0 = nn.embedding %ids, %w {tp.fqn = "emb", tp.sharding = #tp.sharding<@mesh, [{}, {}, {}], partial = {tp: sum}>} : (tensor<2x8xi64>, tensor<100x4xf32>) -> tensor<2x8x4xf32>
  %1 = tp.redistribute %0 to <@mesh, [{}, {}, {}]> : tensor<2x8x4xf32>
  return %1 : tensor<2x8x4xf32>
}

// Split groups: a rank has its own. Split input channels: the sum over the ranks.
// CHECK-LABEL: func.func @convolution
func.func @convolution(%x: tensor<2x4x1x8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}, {}, {}]>})
    -> (tensor<2x6x4x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {}, {}]>}) {
  %v = nn.parameter "groups" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}, {}, {}]>} : tensor<4x2x1x3x3xf32>
  %w = nn.parameter "channels" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}, {}]>} : tensor<6x8x3x3xf32>
  // CHECK: %[[G:.*]] = nn.convolution %{{.*}}, %{{.*}} stride [1, 1] padding [1, 1] dilation [1, 1] {{.*}}: (tensor<2x2x1x8x8xf32>, tensor<2x2x1x3x3xf32>) -> tensor<2x2x2x8x8xf32>
  %0 = nn.convolution %x, %v stride [1, 1] padding [1, 1] dilation [1, 1] {tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}, {}, {}]>} : (tensor<2x4x1x8x8xf32>, tensor<4x2x1x3x3xf32>) -> tensor<2x4x2x8x8xf32>
  // CHECK: %[[R:.*]] = nn.reshape %[[G]] {{.*}}-> tensor<2x4x8x8xf32>
  %1 = nn.reshape %0 {tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}, {}]>} : tensor<2x4x2x8x8xf32> -> tensor<2x8x8x8xf32>
  // CHECK: %[[C:.*]] = nn.convolution %[[R]], %{{.*}} : (tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x4x4xf32>
  // CHECK: tp.all_reduce sum %[[C]]
  %2 = nn.convolution %1, %w stride [2, 2] padding [1, 1] dilation [1, 1] {tp.sharding = #tp.sharding<@mesh, [{}, {}, {}, {}], partial = {tp: sum}>} : (tensor<2x8x8x8xf32>, tensor<6x8x3x3xf32>) -> tensor<2x6x4x4xf32>
  %3 = tp.redistribute %2 to <@mesh, [{}, {}, {}, {}]> : tensor<2x6x4x4xf32>
  return %3 : tensor<2x6x4x4xf32>
}

// The count of a mean over a split dimension is the whole one.
// CHECK-LABEL: func.func @mean
func.func @mean(%x: tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<8xf32> {tp.sharding = #tp.sharding<@mesh, [{}]>}) {
  // CHECK: %[[S:.*]] = nn.reduce sum %{{.*}} dims [1] : tensor<8x4xf32> -> tensor<8xf32>
  // CHECK: %[[N:.*]] = nn.constant dense<8.000000e+00> : tensor<f32>
  // CHECK: %[[M:.*]] = nn.div %[[S]], %[[N]]
  // CHECK: tp.all_reduce sum %[[M]]
  %0 = nn.reduce mean %x dims [1] {tp.sharding = #tp.sharding<@mesh, [{}], partial = {tp: sum}>} : tensor<8x8xf32> -> tensor<8xf32>
  %1 = tp.redistribute %0 to <@mesh, [{}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}
