// RUN: tp-opt %s --tp-propagate | FileCheck %s
// RUN: tp-opt %s --tp-propagate --tp-partition | FileCheck %s --check-prefix=PART
// RUN: tp-opt %s --tp-parallelize | FileCheck %s --check-prefix=RANK

// A function is copied for each set of placements that it is called with.
tp.mesh @mesh(dp = 2, tp = 2)

// CHECK: func.func private @layer(%arg0: {{.*}}[{dp}, {}]>}, %arg1: {{.*}}[{}, {tp}]>}) -> ({{.*}}[{dp}, {tp}]>})
// CHECK: func.func private @layer_0(%arg0: {{.*}}[{dp}, {tp}]>}, %arg1: {{.*}}[{tp}, {}]>}) -> ({{.*}}[{dp}, {}], partial = {tp: sum}>})
// PART: func.func private @layer(%arg0: tensor<4x16xf32> {{.*}}, %arg1: tensor<16x8xf32>
// PART: func.func private @layer_0(%arg0: tensor<4x8xf32> {{.*}}, %arg1: tensor<8x16xf32>
// RANK-NOT: @layer
func.func @layer(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %y = nn.matmul %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// CHECK-LABEL: func.func @forward
// CHECK: call @layer(
// CHECK-SAME: {tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}]>}
// CHECK: call @layer_0(
// CHECK: call @layer(
// CHECK: call @layer_0(
// CHECK: tp.redistribute
// PART-LABEL: func.func @forward
// PART: call @layer({{.*}}) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
// RANK-LABEL: func.func @forward
// RANK-COUNT-4: nn.matmul
func.func @forward(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>},
                   %w1: tensor<16x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                   %w2: tensor<16x16xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}) {
  %0 = func.call @layer(%x, %w1) : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %1 = func.call @layer(%0, %w2) : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %c = tp.constraint %1 to <@mesh, [{dp}, {}]> : tensor<8x16xf32>
  %2 = func.call @layer(%c, %w1) : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %3 = func.call @layer(%2, %w2) : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}

// Placements that a function fixes for its arguments hold for every caller.
// CHECK-LABEL: func.func private @fixed(
// CHECK-SAME: %arg0: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}
func.func @fixed(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> tensor<8x16xf32> {
  %y = nn.relu %x : tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// CHECK-LABEL: func.func @caller
// CHECK: %[[S:.+]] = tp.redistribute %arg0 to <@mesh, {{\[}}{}, {tp}]>
// CHECK: call @fixed(%[[S]])
func.func @caller(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = func.call @fixed(%x) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
