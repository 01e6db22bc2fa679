// tp-reduce removes a function that an all_reduce doesn't need.
// RUN: tp-reduce %s --reduction-tree="traversal-mode=0 test=%S/Inputs/has_all_reduce.sh" | FileCheck %s
// CHECK-NOT: @unneeded
// CHECK: func.func @main
// CHECK: nn.linear
// CHECK-NOT: @unneeded

tp.mesh @mesh(tp = 2)
func.func @unneeded(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = nn.relu %x : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
func.func @main(%x: tensor<8x32xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> tensor<8x16xf32> {
  %w = nn.parameter "down.weight" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<16x32xf32>
  %0 = nn.linear %x, %w : (tensor<8x32xf32>, tensor<16x32xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
func.func @after(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = nn.relu %x : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
