// RUN: tp-opt %s --tp-lower-to-llvm | FileCheck %s

// A cache gets one position: it is written where it is. There is no other buffer, and the kernel moves only that slice.

// CHECK: arena_bytes = 0
// CHECK: kind = "kernel", op = "scatter"
// CHECK-NOT: memcpy
func.func @main(%position: tensor<1xi64> {tp.name = "position"}, %key: tensor<1x4x1x16xf32> {tp.name = "key"}) -> (tensor<1x4x16xf32> {tp.name = "sum"}) {
  %cache = nn.parameter "cache" frozen : tensor<1x4x64x16xf32>
  %next = nn.scatter copy %cache, %position, %key dim 2 : (tensor<1x4x64x16xf32>, tensor<1xi64>, tensor<1x4x1x16xf32>)
  nn.assign "cache", %next : tensor<1x4x64x16xf32>
  %sum = nn.reduce sum %next dims [2] : tensor<1x4x64x16xf32> -> tensor<1x4x16xf32>
  return %sum : tensor<1x4x16xf32>
}
