// RUN: tp-opt %s --tp-propagate --tp-partition | FileCheck %s
// RUN: tp-opt %s --tp-parallelize | FileCheck %s --check-prefix=RANK

// Ranks whose blocks differ call their own programs.
tp.mesh @mesh(tp = 4)

// CHECK: func.func private @layer(%arg0: tensor<3x8xf32>{{.*}}tp.ranks = array<i64: 0, 1, 2>
// CHECK: func.func private @layer_0(%arg0: tensor<1x8xf32>{{.*}}tp.copy_of = @layer, tp.ranks = array<i64: 3>
// RANK-NOT: @layer
func.func @layer(%x: tensor<10x8xf32>) -> tensor<10x8xf32> {
  %y = nn.relu %x : tensor<10x8xf32>
  return %y : tensor<10x8xf32>
}
// CHECK: func.func @forward({{.*}}tp.ranks = array<i64: 0, 1, 2>
// CHECK: call @layer(
// CHECK: func.func @forward_{{.*}}tp.ranks = array<i64: 3>
// CHECK: call @layer_0(
// RANK: func.func @forward({{.*}}tensor<3x8xf32>
// RANK: nn.relu {{.*}} : tensor<3x8xf32>
// RANK: func.func @forward_{{.*}}tensor<1x8xf32>
// RANK: nn.relu {{.*}} : tensor<1x8xf32>
func.func @forward(%x: tensor<10x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<10x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  %0 = func.call @layer(%x) : (tensor<10x8xf32>) -> tensor<10x8xf32>
  return %0 : tensor<10x8xf32>
}
