// RUN: tp-opt %s --split-input-file --tp-lower-to-llvm | FileCheck %s

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

// -----

// The same where attention reads the cache, whose heads are repeated for the query heads of a group: attention reads it
// where it is. The arena holds only the mask.

// CHECK: arena_bytes = 64
// CHECK-NOT: memcpy
func.func @main(%position: tensor<1xi64> {tp.name = "position"}, %query: tensor<1x8x1x16xf32> {tp.name = "query"},
                %key: tensor<1x4x1x16xf32> {tp.name = "key"}, %value: tensor<1x4x1x16xf32> {tp.name = "value"}) -> (tensor<1x8x1x16xf32> {tp.name = "y"}) {
  %columns = nn.iota dim 3 start 0.0 step 1.0 : tensor<1x1x1x64xi64>
  %mask = nn.compare le %columns, %position : (tensor<1x1x1x64xi64>, tensor<1xi64>) -> tensor<1x1x1x64xi1>
  %keys = nn.parameter "keys" frozen : tensor<1x4x64x16xf32>
  %k0 = nn.scatter copy %keys, %position, %key dim 2 : (tensor<1x4x64x16xf32>, tensor<1xi64>, tensor<1x4x1x16xf32>)
  nn.assign "keys", %k0 init 0.0 : tensor<1x4x64x16xf32>
  %k1 = nn.reshape %k0 : tensor<1x4x64x16xf32> -> tensor<1x4x1x64x16xf32>
  %k2 = nn.broadcast %k1 : tensor<1x4x1x64x16xf32> -> tensor<1x4x2x64x16xf32>
  %k3 = nn.reshape %k2 : tensor<1x4x2x64x16xf32> -> tensor<1x8x64x16xf32>
  %values = nn.parameter "values" frozen : tensor<1x4x64x16xf32>
  %v0 = nn.scatter copy %values, %position, %value dim 2 : (tensor<1x4x64x16xf32>, tensor<1xi64>, tensor<1x4x1x16xf32>)
  nn.assign "values", %v0 init 0.0 : tensor<1x4x64x16xf32>
  %v1 = nn.reshape %v0 : tensor<1x4x64x16xf32> -> tensor<1x4x1x64x16xf32>
  %v2 = nn.broadcast %v1 : tensor<1x4x1x64x16xf32> -> tensor<1x4x2x64x16xf32>
  %v3 = nn.reshape %v2 : tensor<1x4x2x64x16xf32> -> tensor<1x8x64x16xf32>
  %y = nn.attention %query, %k3, %v3 mask %mask scale 0.25
    : (tensor<1x8x1x16xf32>, tensor<1x8x64x16xf32>, tensor<1x8x64x16xf32>, tensor<1x1x1x64xi1>) -> tensor<1x8x1x16xf32>
  return %y : tensor<1x8x1x16xf32>
}
