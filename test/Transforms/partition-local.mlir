// RUN: tp-opt %s --tp-propagate --tp-partition="one-shot=false memory=true" | FileCheck %s

// On the way from a value that was local, blocks of 2 rows over y = 5 are 1, 1, 0, 0 and 0, whereas those of the result
// are 1, 1, 1, 1 and 0; 17 columns over x are 9 and 8: six programs.
tp.mesh @mesh(x = 2, y = 5)

// CHECK: tp.ranks = array<i64: 0, 1>
// CHECK: tp.local_slice %{{.*}} dim 0 over @mesh {y} : tensor<2x17xf32> -> tensor<1x17xf32>
// CHECK: tp.ranks = array<i64: 2, 3>
// CHECK: tp.local_slice %{{.*}} dim 0 over @mesh {y} : tensor<2x17xf32> -> tensor<0x17xf32>
// CHECK: tp.ranks = array<i64: 4>
// CHECK: return %{{.*}} : tensor<0x9xf32>
// CHECK: tp.ranks = array<i64: 5, 6>
// CHECK: tp.ranks = array<i64: 7, 8>
// CHECK: tp.ranks = array<i64: 9>
// CHECK: return %{{.*}} : tensor<0x8xf32>
func.func @rejoined(%x: tensor<4x17xf32> {tp.sharding = #tp.sharding<@mesh, [{x}, {}]>})
    -> (tensor<4x17xf32> {tp.sharding = #tp.sharding<@mesh, [{y}, {x}]>}) {
  %l = tp.to_local %x as <@mesh, [{x}, {}]> : tensor<4x17xf32> -> tensor<2x17xf32>
  %g = tp.from_local %l as <@mesh, [{x}, {}]> : tensor<2x17xf32> -> tensor<4x17xf32>
  return %g : tensor<4x17xf32>
}
