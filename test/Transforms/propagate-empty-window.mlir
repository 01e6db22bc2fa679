// RUN: tp-opt %s --tp-propagate | FileCheck %s

// Concatenation with an empty tensor adds no segment.
tp.mesh @mesh(dp = 2)

// CHECK-LABEL: func.func @nothing
// CHECK: nn.concat
func.func @nothing(%x: tensor<2x3xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}, %y: tensor<0x3xf32>)
    -> (tensor<2x3xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}) {
  %0 = nn.concat %x, %y dim 0 : (tensor<2x3xf32>, tensor<0x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
