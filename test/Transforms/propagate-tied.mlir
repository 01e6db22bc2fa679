// RUN: tp-opt %s --tp-propagate | FileCheck %s

// A parameter that two modules share has one placement, whatever each would ask for.
tp.mesh @mesh(tp = 2)

// CHECK-LABEL: func.func @tied
func.func @tied(%ids: tensor<4xi64>, %x: tensor<4x8xf32>)
    -> (tensor<4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}, tensor<4x10xf32>) {
  // CHECK: nn.parameter "w" {{.*}}#tp.sharding<@mesh, [{}, {}]>
  %a = nn.parameter "w" {tp.fqn = "emb"} : tensor<10x8xf32>
  %e = nn.embedding %ids, %a : (tensor<4xi64>, tensor<10x8xf32>) -> tensor<4x8xf32>
  // CHECK: nn.parameter "w" {{.*}}#tp.sharding<@mesh, [{}, {}]>
  %b = nn.parameter "w" {tp.fqn = "out"} : tensor<10x8xf32>
  %y = nn.linear %x, %b : (tensor<4x8xf32>, tensor<10x8xf32>) -> tensor<4x10xf32>
  return %e, %y : tensor<4x8xf32>, tensor<4x10xf32>
}
