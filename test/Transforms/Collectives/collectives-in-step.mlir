// RUN: tp-opt %s --tp-optimize-collectives=bucket-bytes=64 | FileCheck %s
// Programs of different ranks change in the same way, or none does.

tp.mesh @mesh(tp = 2)

// Both have equal gathers: they are shared in both.
// CHECK-LABEL: func.func @shared
// CHECK-COUNT-1: tp.all_gather
// CHECK-NOT: tp.all_gather
// CHECK: return
func.func @shared(%x: tensor<3xf32>) -> (tensor<5xf32>, tensor<5xf32>) attributes {tp.ranks = array<i64: 0>} {
  %0 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<3xf32> -> tensor<5xf32>
  %1 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<3xf32> -> tensor<5xf32>
  return %0, %1 : tensor<5xf32>, tensor<5xf32>
}
// CHECK-LABEL: func.func @shared_0
// CHECK-COUNT-1: tp.all_gather
// CHECK-NOT: tp.all_gather
// CHECK: return
func.func @shared_0(%x: tensor<2xf32>) -> (tensor<5xf32>, tensor<5xf32>) attributes {tp.copy_of = @shared, tp.ranks = array<i64: 1>} {
  %0 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<2xf32> -> tensor<5xf32>
  %1 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<2xf32> -> tensor<5xf32>
  return %0, %1 : tensor<5xf32>, tensor<5xf32>
}

// One program could share the first two of three, the other one the last two: as many would be left, but not the same.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: tp.all_gather
func.func @others(%x: tensor<3xf32>, %y: tensor<3xf32>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) attributes {tp.ranks = array<i64: 0>} {
  %0 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<3xf32> -> tensor<5xf32>
  %1 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<3xf32> -> tensor<5xf32>
  %2 = tp.all_gather %y dim 0 over @mesh {tp} : tensor<3xf32> -> tensor<5xf32>
  return %0, %1, %2 : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
}
// CHECK-LABEL: func.func @others_0
// CHECK-COUNT-3: tp.all_gather
func.func @others_0(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) attributes {tp.copy_of = @others, tp.ranks = array<i64: 1>} {
  %0 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<2xf32> -> tensor<5xf32>
  %1 = tp.all_gather %y dim 0 over @mesh {tp} : tensor<2xf32> -> tensor<5xf32>
  %2 = tp.all_gather %y dim 0 over @mesh {tp} : tensor<2xf32> -> tensor<5xf32>
  return %0, %1, %2 : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
}

// Only the smaller blocks would fit into one bucket.
// CHECK-LABEL: func.func @bucket
// CHECK-NOT: nn.concat
func.func @bucket(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) attributes {tp.ranks = array<i64: 0>} {
  %0 = tp.permute %x from [0, 1] over @mesh {tp} : tensor<3x4xf32> -> tensor<3x4xf32>
  %1 = tp.all_reduce sum %0 over @mesh {tp} : tensor<3x4xf32>
  %2 = tp.all_reduce sum %y over @mesh {tp} : tensor<3x4xf32>
  return %1, %2 : tensor<3x4xf32>, tensor<3x4xf32>
}
func.func @bucket_0(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) attributes {tp.copy_of = @bucket, tp.ranks = array<i64: 1>} {
  %0 = tp.permute %x from [0, 1] over @mesh {tp} : tensor<2x4xf32> -> tensor<2x4xf32>
  %1 = tp.all_reduce sum %0 over @mesh {tp} : tensor<2x4xf32>
  %2 = tp.all_reduce sum %y over @mesh {tp} : tensor<2x4xf32>
  return %1, %2 : tensor<2x4xf32>, tensor<2x4xf32>
}

// Blocks of different sizes come back to where they were.
// CHECK-LABEL: func.func @permutes
// CHECK-SAME: %[[X:.*]]: tensor<3xf32>
// CHECK-NEXT: return %[[X]]
func.func @permutes(%x: tensor<3xf32>) -> tensor<3xf32> attributes {tp.ranks = array<i64: 0>} {
  %0 = tp.permute %x from [1, 0] over @mesh {tp} : tensor<3xf32> -> tensor<2xf32>
  %1 = tp.permute %0 from [1, 0] over @mesh {tp} : tensor<2xf32> -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
// CHECK-LABEL: func.func @permutes_0
// CHECK-SAME: %[[X:.*]]: tensor<2xf32>
// CHECK-NEXT: return %[[X]]
func.func @permutes_0(%x: tensor<2xf32>) -> tensor<2xf32> attributes {tp.copy_of = @permutes, tp.ranks = array<i64: 1>} {
  %0 = tp.permute %x from [1, 0] over @mesh {tp} : tensor<2xf32> -> tensor<3xf32>
  %1 = tp.permute %0 from [1, 0] over @mesh {tp} : tensor<3xf32> -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
