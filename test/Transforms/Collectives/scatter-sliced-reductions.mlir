// RUN: tp-opt %s --tp-optimize-collectives | FileCheck %s
// Reductions and slices over mesh dimensions that they don't share.

tp.mesh @mesh(dp = 2, tp = 4)

// CHECK-LABEL: func.func @reduced_over_more
func.func @reduced_over_more(%x: tensor<8x6xf32>) -> tensor<2x6xf32> {
  // CHECK-NEXT: %[[S:.*]] = tp.reduce_scatter sum %arg0 dim 0 over @mesh {tp} {bytes = 144 : i64, fqn = "a"} : tensor<8x6xf32> -> tensor<2x6xf32>
  // CHECK-NEXT: tp.all_reduce sum %[[S]] over @mesh {dp} {bytes = 48 : i64, fqn = "a"}
  // CHECK-NEXT: return
  %0 = tp.all_reduce sum %x over @mesh {dp, tp} {fqn = "a"} : tensor<8x6xf32>
  %1 = tp.local_slice %0 dim 0 over @mesh {tp} : tensor<8x6xf32> -> tensor<2x6xf32>
  return %1 : tensor<2x6xf32>
}

// CHECK-LABEL: func.func @sliced_by_more_within
func.func @sliced_by_more_within(%x: tensor<8x6xf32>) -> tensor<1x6xf32> {
  // CHECK-NEXT: %[[S:.*]] = tp.reduce_scatter max %arg0 dim 0 over @mesh {tp} {{.*}} -> tensor<2x6xf32>
  // CHECK-NEXT: tp.local_slice %[[S]] dim 0 over @mesh {dp}
  // CHECK-NEXT: return
  %0 = tp.all_reduce max %x over @mesh {tp} : tensor<8x6xf32>
  %1 = tp.local_slice %0 dim 0 over @mesh {tp, dp} : tensor<8x6xf32> -> tensor<1x6xf32>
  return %1 : tensor<1x6xf32>
}

// CHECK-LABEL: func.func @sliced_by_more_around
func.func @sliced_by_more_around(%x: tensor<8x6xf32>) -> tensor<1x6xf32> {
  // CHECK-NEXT: %[[S:.*]] = tp.local_slice %arg0 dim 0 over @mesh {dp} : tensor<8x6xf32> -> tensor<4x6xf32>
  // CHECK-NEXT: tp.reduce_scatter sum %[[S]] dim 0 over @mesh {tp} {{.*}} -> tensor<1x6xf32>
  // CHECK-NEXT: return
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<8x6xf32>
  %1 = tp.local_slice %0 dim 0 over @mesh {dp, tp} : tensor<8x6xf32> -> tensor<1x6xf32>
  return %1 : tensor<1x6xf32>
}

// Over nothing in common, in blocks that differ in between, and where the whole is used.
// CHECK-LABEL: func.func @keep
// CHECK-NOT: tp.reduce_scatter
// CHECK: return
func.func @keep(%x: tensor<8x6xf32>, %y: tensor<6xf32>) -> (tensor<2x6xf32>, tensor<1xf32>, tensor<8x6xf32>, tensor<2x6xf32>) {
  %0 = tp.all_reduce sum %x over @mesh {dp} : tensor<8x6xf32>
  %1 = tp.local_slice %0 dim 0 over @mesh {tp} : tensor<8x6xf32> -> tensor<2x6xf32>
  %2 = tp.all_reduce sum %y over @mesh {tp} : tensor<6xf32>
  %3 = tp.local_slice %2 dim 0 over @mesh {tp, dp} : tensor<6xf32> -> tensor<1xf32>
  %4 = tp.all_reduce sum %x over @mesh {dp, tp} : tensor<8x6xf32>
  %5 = tp.local_slice %4 dim 0 over @mesh {tp} : tensor<8x6xf32> -> tensor<2x6xf32>
  return %1, %3, %4, %5 : tensor<2x6xf32>, tensor<1xf32>, tensor<8x6xf32>, tensor<2x6xf32>
}
