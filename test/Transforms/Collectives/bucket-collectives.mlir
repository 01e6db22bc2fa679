// RUN: tp-opt %s --tp-optimize-collectives=bucket-bytes=256 | FileCheck %s
// RUN: tp-opt %s --tp-optimize-collectives | FileCheck %s --check-prefix=OFF
// Small collectives are joined into a few large ones.

tp.mesh @mesh(dp = 2, tp = 2)

// OFF-NOT: nn.concat
// OFF: tp.all_reduce sum %arg0 over @mesh {tp} {{.*}}fqn = "a"
// OFF-NEXT: tp.all_reduce sum %arg1 over @mesh {tp} {{.*}}fqn = "b"
// OFF-NOT: nn.concat

// CHECK-LABEL: func.func @reductions
// CHECK-SAME: %[[A:.*]]: tensor<4x2xf32>, %[[B:.*]]: tensor<8xf32>
func.func @reductions(%a: tensor<4x2xf32>, %b: tensor<8xf32>) -> (tensor<4x2xf32>, tensor<8xf32>) {
  // CHECK-NEXT: %[[FA:.*]] = nn.reshape %[[A]]
  // CHECK-NEXT: %[[F:.*]] = nn.concat %[[FA]], %[[B]] dim 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
  // CHECK-NEXT: %[[R:.*]] = tp.all_reduce sum %[[F]] over @mesh {tp} {bytes = 64 : i64, fqn = "a, b"}
  // CHECK-NEXT: %[[SA:.*]] = nn.slice %[[R]] dim 0 start 0
  // CHECK-NEXT: %[[RA:.*]] = nn.reshape %[[SA]] : tensor<8xf32> -> tensor<4x2xf32>
  // CHECK-NEXT: %[[RB:.*]] = nn.slice %[[R]] dim 0 start 8
  // CHECK-NEXT: return %[[RA]], %[[RB]]
  %0 = tp.all_reduce sum %a over @mesh {tp} {fqn = "a"} : tensor<4x2xf32>
  %1 = tp.all_reduce sum %b over @mesh {tp} {fqn = "b"} : tensor<8xf32>
  return %0, %1 : tensor<4x2xf32>, tensor<8xf32>
}

// Of another group, kind or element type, too large, and what depends on the first.
// CHECK-LABEL: func.func @apart
// CHECK-NOT: nn.concat
// CHECK: return
func.func @apart(%a: tensor<8xf32>, %b: tensor<8xf64>, %c: tensor<65xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf64>, tensor<65xf32>, tensor<8xf32>) {
  %0 = tp.all_reduce sum %a over @mesh {tp} : tensor<8xf32>
  %1 = tp.all_reduce sum %a over @mesh {dp} : tensor<8xf32>
  %2 = tp.all_reduce max %a over @mesh {tp} : tensor<8xf32>
  %3 = tp.all_reduce sum %b over @mesh {tp} : tensor<8xf64>
  %4 = tp.all_reduce sum %c over @mesh {tp} : tensor<65xf32>
  %5 = nn.exp %0 : tensor<8xf32>
  %6 = tp.all_reduce sum %5 over @mesh {tp} : tensor<8xf32>
  return %0, %1, %2, %3, %4, %6 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf64>, tensor<65xf32>, tensor<8xf32>
}

// Uses of the first member wait behind the bucket; the third one is in the next.
// CHECK-LABEL: func.func @between
// CHECK-SAME: %[[A:.*]]: tensor<32xf32>, %[[B:.*]]: tensor<32xf32>, %[[C:.*]]: tensor<32xf32>
func.func @between(%a: tensor<32xf32>, %b: tensor<32xf32>, %c: tensor<32xf32>) -> tensor<32xf32> {
  // CHECK-NEXT: nn.concat %[[A]], %[[B]]
  // CHECK-NEXT: tp.all_reduce
  // CHECK-NEXT: nn.slice
  // CHECK-NEXT: nn.slice
  // CHECK-NEXT: nn.exp
  // CHECK-NEXT: nn.mul
  // CHECK-NEXT: tp.all_reduce sum %[[C]]
  // CHECK-NEXT: nn.mul
  %0 = tp.all_reduce sum %a over @mesh {tp} : tensor<32xf32>
  %1 = nn.exp %0 : tensor<32xf32>
  %2 = tp.all_reduce sum %b over @mesh {tp} : tensor<32xf32>
  %3 = nn.mul %1, %2 : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
  %4 = tp.all_reduce sum %c over @mesh {tp} : tensor<32xf32>
  %5 = nn.mul %3, %4 : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
  return %5 : tensor<32xf32>
}

// Gathers, along any dimension; of uneven blocks not.
// CHECK-LABEL: func.func @gathers
// CHECK-SAME: %[[A:.*]]: tensor<2x3xf32>, %[[B:.*]]: tensor<4xf32>
func.func @gathers(%a: tensor<2x3xf32>, %b: tensor<4xf32>, %c: tensor<2xf32>) -> (tensor<2x6xf32>, tensor<8xf32>, tensor<3xf32>) {
  // CHECK: %[[F:.*]] = nn.concat {{.*}} -> tensor<10xf32>
  // CHECK-NEXT: %[[G:.*]] = tp.all_gather %[[F]] dim 0 over @mesh {tp} {bytes = 40 : i64} : tensor<10xf32> -> tensor<20xf32>
  // CHECK-NEXT: %[[ROWS:.*]] = nn.reshape %[[G]] : tensor<20xf32> -> tensor<2x10xf32>
  // CHECK-NEXT: nn.slice %[[ROWS]] dim 1 start 0 step 1 : tensor<2x10xf32> -> tensor<2x6xf32>
  // CHECK-NEXT: nn.reshape {{.*}} -> tensor<2x2x3xf32>
  // CHECK-NEXT: nn.transpose {{.*}} [1, 0, 2]
  // CHECK-NEXT: nn.reshape {{.*}} -> tensor<2x6xf32>
  // CHECK-NEXT: nn.slice %[[ROWS]] dim 1 start 6 step 1 : tensor<2x10xf32> -> tensor<2x4xf32>
  // CHECK-NEXT: nn.reshape {{.*}} -> tensor<8xf32>
  // CHECK-NEXT: tp.all_gather
  %0 = tp.all_gather %a dim 1 over @mesh {tp} : tensor<2x3xf32> -> tensor<2x6xf32>
  %1 = tp.all_gather %b dim 0 over @mesh {tp} : tensor<4xf32> -> tensor<8xf32>
  %2 = tp.all_gather %c dim 0 over @mesh {tp} : tensor<2xf32> -> tensor<3xf32>
  return %0, %1, %2 : tensor<2x6xf32>, tensor<8xf32>, tensor<3xf32>
}
