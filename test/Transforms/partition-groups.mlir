// RUN: tp-opt %s --tp-partition --split-input-file | FileCheck %s

tp.mesh @mesh(tp = 2)

// Each rank has half of the columns of each expert.
// CHECK-LABEL: func.func @columns
// CHECK: nn.grouped_matmul %{{.*}}, %{{.*}} bounds %{{.*}} : (tensor<16x8xf32>, tensor<4x8x3xf32>, tensor<5xi32>) -> tensor<16x3xf32>
func.func @columns(%x: tensor<16x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>},
                   %w: tensor<4x8x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {tp}]>},
                   %b: tensor<5xi32> {tp.sharding = #tp.sharding<@mesh, [{}]>})
    -> (tensor<16x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) {
  %0 = nn.grouped_matmul %x, %w bounds %b {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : (tensor<16x8xf32>, tensor<4x8x6xf32>, tensor<5xi32>) -> tensor<16x6xf32>
  return %0 : tensor<16x6xf32>
}

// -----

tp.mesh @mesh(tp = 2)

// Each rank has half of the experts.
// CHECK-LABEL: func.func @experts
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<5xi32> {{.*}}{
// CHECK: %[[OFFSET:.+]] = tp.shard_offset of 4 over @mesh {tp}
// CHECK: %[[FIRST:.+]] = nn.cast %[[OFFSET]]
// CHECK: %[[PLACES:.+]] = nn.add %{{.+}}, %[[FIRST]] : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
// CHECK: %[[BOUNDS:.+]] = nn.index_select %[[B]], %[[PLACES]] dim 0 : (tensor<5xi32>, tensor<3xi32>) -> tensor<3xi32>
// CHECK: nn.grouped_matmul %{{.*}}, %{{.*}} bounds %[[BOUNDS]] : (tensor<16x8xf32>, tensor<2x8x6xf32>, tensor<3xi32>) -> tensor<16x6xf32>
func.func @experts(%x: tensor<16x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>},
                   %w: tensor<4x8x6xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}]>},
                   %b: tensor<5xi32> {tp.sharding = #tp.sharding<@mesh, [{}]>})
    -> (tensor<16x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>}) {
  %0 = nn.grouped_matmul %x, %w bounds %b {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>} : (tensor<16x8xf32>, tensor<4x8x6xf32>, tensor<5xi32>) -> tensor<16x6xf32>
  return %0 : tensor<16x6xf32>
}

// -----

tp.mesh @mesh(tp = 2)

// What is scattered into zeros may be Partial.
// CHECK-LABEL: func.func @scatter
// CHECK-SAME: %[[I:[a-z0-9]+]]: tensor<3xi64> {{.*}}, %[[S:[a-z0-9]+]]: tensor<3x4xf32>
// CHECK: %[[ZERO:.+]] = nn.constant dense<0.000000e+00>
// CHECK: nn.scatter add %[[ZERO]], %[[I]], %[[S]]
func.func @scatter(%i: tensor<3xi64> {tp.sharding = #tp.sharding<@mesh, [{}]>},
                   %s: tensor<3x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>})
    -> (tensor<8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>}) {
  %x = nn.constant {tp.sharding = #tp.sharding<@mesh, [{}, {}]>} dense<0.0> : tensor<8x4xf32>
  %0 = nn.scatter add %x, %i, %s dim 0 {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>} : (tensor<8x4xf32>, tensor<3xi64>, tensor<3x4xf32>)
  return %0 : tensor<8x4xf32>
}
