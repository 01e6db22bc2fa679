// RUN: tp-opt %s --tp-partition --split-input-file | FileCheck %s

tp.mesh @mesh(tp = 2)

// A gradient of a table split by rows: each rank adds to its own rows what belongs to them, and zero for the others'.
// CHECK-LABEL: func.func @scatter_add_rows
// CHECK-SAME: %[[IDS:.*]]: tensor<2x8xi64> {{.*}}, %[[ROWS:.*]]: tensor<2x8x4xf32>
// CHECK: %[[FIRST:.*]] = tp.shard_offset of 100 over @mesh {tp} {tp.fqn = "emb"} : tensor<i64>
// CHECK: %[[REL:.*]] = nn.sub %[[IDS]], %[[FIRST]]
// CHECK: %[[MINE:.*]] = nn.logical_and
// CHECK: %[[OTHER:.*]] = nn.where %{{.*}}, %{{.*}}, %[[IDS]]
// CHECK: %[[SAFE:.*]] = nn.where %[[MINE]], %[[REL]], %[[OTHER]]
// CHECK: %[[COLUMN:.*]] = nn.reshape %[[MINE]] {{.*}}: tensor<2x8xi1> -> tensor<2x8x1xi1>
// CHECK: %[[OWN:.*]] = nn.where %[[COLUMN]], %[[ROWS]]
// CHECK: nn.scatter_add_rows %[[SAFE]], %[[OWN]] {{.*}}: (tensor<2x8xi64>, tensor<2x8x4xf32>) -> tensor<50x4xf32>
func.func @scatter_add_rows(%ids: tensor<2x8xi64> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>},
                            %rows: tensor<2x8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {}]>})
    -> (tensor<100x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  %0 = nn.scatter_add_rows %ids, %rows {tp.fqn = "emb", tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : (tensor<2x8xi64>, tensor<2x8x4xf32>) -> tensor<100x4xf32>
  return %0 : tensor<100x4xf32>
}

// With the batch split, the sum is over the ranks too.
// CHECK-LABEL: func.func @scatter_add_batch
// CHECK: %[[P:.*]] = nn.scatter_add_rows %{{.*}} : (tensor<1x8xi64>, tensor<1x8x4xf32>) -> tensor<100x4xf32>
// CHECK: tp.all_reduce sum %[[P]]
func.func @scatter_add_batch(%ids: tensor<2x8xi64> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>},
                             %rows: tensor<2x8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}]>})
    -> (tensor<100x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}) {
  %0 = nn.scatter_add_rows %ids, %rows {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>} : (tensor<2x8xi64>, tensor<2x8x4xf32>) -> tensor<100x4xf32>
  %1 = tp.redistribute %0 to <@mesh, [{}, {}]> : tensor<100x4xf32>
  return %1 : tensor<100x4xf32>
}

// A gather from a split dimension becomes a masked lookup in each rank's block.
// CHECK-LABEL: func.func @gather
// CHECK-SAME: %[[X:.*]]: tensor<4x5xf32> {{.*}}, %[[I:.*]]: tensor<4x1xi64>
// CHECK: tp.shard_offset of 10 over @mesh {tp}
// CHECK: %[[MINE:.*]] = nn.logical_and
// CHECK: %[[OTHER:.*]] = nn.where %{{.*}}, %{{.*}}, %[[I]]
// CHECK: %[[SAFE:.*]] = nn.where %[[MINE]], %{{.*}}, %[[OTHER]]
// CHECK: %[[FOUND:.*]] = nn.gather %[[X]], %[[SAFE]] dim 1
// CHECK: %[[MASKED:.*]] = nn.where %[[MINE]], %[[FOUND]]
// CHECK: tp.all_reduce sum %[[MASKED]]
func.func @gather(%x: tensor<4x10xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                  %i: tensor<4x1xi64> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>})
    -> (tensor<4x1xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}) {
  %0 = nn.gather %x, %i dim 1 {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>} : (tensor<4x10xf32>, tensor<4x1xi64>) -> tensor<4x1xf32>
  %1 = tp.redistribute %0 to <@mesh, [{}, {}]> : tensor<4x1xf32>
  return %1 : tensor<4x1xf32>
}

// Integers are counted from the rank's own place on, in steps.
// CHECK-LABEL: func.func @iota
// CHECK: %[[OWN:.*]] = nn.iota dim 0 start 5.000000e+00 step 3.000000e+00 : tensor<4xi32>
// CHECK: %[[FIRST:.*]] = tp.shard_offset of 8 over @mesh {tp} : tensor<i64>
// CHECK: %[[NARROW:.*]] = nn.cast %[[FIRST]] : tensor<i64> -> tensor<i32>
// CHECK: %[[STEP:.*]] = nn.constant dense<3> : tensor<i32>
// CHECK: %[[SHIFT:.*]] = nn.mul %[[NARROW]], %[[STEP]]
// CHECK: nn.add %[[OWN]], %[[SHIFT]]
func.func @iota() -> (tensor<8xi32> {tp.sharding = #tp.sharding<@mesh, [{tp}]>}) {
  %0 = nn.iota dim 0 start 5.0 step 3.0 {tp.sharding = #tp.sharding<@mesh, [{tp}]>} : tensor<8xi32>
  return %0 : tensor<8xi32>
}

// Segments that are split each on their own.
// CHECK-LABEL: func.func @iota_segments
// CHECK: nn.iota dim 0 start 0.000000e+00 step 1.000000e+00 : tensor<2xi64>
// CHECK: tp.shard_offset of 4
// CHECK: %[[A:.*]] = nn.add
// CHECK: nn.iota dim 0 start 4.000000e+00 step 1.000000e+00 : tensor<1xi64>
// CHECK: tp.shard_offset of 2
// CHECK: %[[B:.*]] = nn.add
// CHECK: nn.concat %[[A]], %[[B]] dim 0
func.func @iota_segments() -> (tensor<6xi64> {tp.sharding = #tp.sharding<@mesh, [{tp | 4, 2}]>}) {
  %0 = nn.iota dim 0 start 0.0 step 1.0 {tp.sharding = #tp.sharding<@mesh, [{tp | 4, 2}]>} : tensor<6xi64>
  return %0 : tensor<6xi64>
}

// A rank assigns its own block.
// CHECK-LABEL: func.func @assign
// CHECK: %[[W:.*]] = nn.parameter "w" {{.*}} : tensor<4x3xf32>
// CHECK: %[[NEXT:.*]] = nn.exp %[[W]]
// CHECK: nn.assign "w", %[[NEXT]] init 0.000000e+00 {tp.fqn = "m"} : tensor<4x3xf32>
func.func @assign() {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<8x3xf32>
  %0 = nn.exp %w {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<8x3xf32>
  nn.assign "w", %0 init 0.0 {tp.fqn = "m"} : tensor<8x3xf32>
  return
}

// Another op reads the parameter after its assignment.
// CHECK-LABEL: func.func @read_after_assign
// CHECK: nn.assign "w"
// CHECK: nn.parameter "w" {{.*}} : tensor<4x3xf32>
func.func @read_after_assign() -> (tensor<8x3xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<8x3xf32>
  %0 = nn.exp %w {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<8x3xf32>
  nn.assign "w", %0 : tensor<8x3xf32>
  %1 = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<8x3xf32>
  return %1 : tensor<8x3xf32>
}
