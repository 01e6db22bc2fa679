// RUN: tp-opt %s --tp-optimize-collectives | FileCheck %s
// Collectives that undo one another are removed, consecutive ones joined.

tp.mesh @mesh(tp = 4)

// CHECK-LABEL: func.func @gather_then_slice
func.func @gather_then_slice(%x: tensor<8x4xf32>) -> tensor<2x16xf32> {
  // CHECK-NEXT: tp.all_to_all %{{.*}} split 0 concat 1 over @mesh {tp} {bytes = 96 : i64, fqn = "a"} : tensor<8x4xf32> -> tensor<2x16xf32>
  // CHECK-NEXT: return
  %0 = tp.all_gather %x dim 1 over @mesh {tp} {fqn = "a"} : tensor<8x4xf32> -> tensor<8x16xf32>
  %1 = tp.local_slice %0 dim 0 over @mesh {tp} : tensor<8x16xf32> -> tensor<2x16xf32>
  return %1 : tensor<2x16xf32>
}

// The whole is needed as well.
// CHECK-LABEL: func.func @gather_then_slice_and_whole
func.func @gather_then_slice_and_whole(%x: tensor<8x4xf32>) -> (tensor<2x16xf32>, tensor<8x16xf32>) {
  // CHECK-NEXT: tp.all_gather
  // CHECK-NEXT: tp.local_slice
  %0 = tp.all_gather %x dim 1 over @mesh {tp} : tensor<8x4xf32> -> tensor<8x16xf32>
  %1 = tp.local_slice %0 dim 0 over @mesh {tp} : tensor<8x16xf32> -> tensor<2x16xf32>
  return %1, %0 : tensor<2x16xf32>, tensor<8x16xf32>
}

// CHECK-LABEL: func.func @scatter_then_gather
func.func @scatter_then_gather(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // CHECK-NEXT: tp.all_reduce max %{{.*}} over @mesh {tp} {bytes = 768 : i64, fqn = "a, b"}
  // CHECK-NEXT: return
  %0 = tp.reduce_scatter max %x dim 0 over @mesh {tp} {fqn = "a"} : tensor<8x16xf32> -> tensor<2x16xf32>
  %1 = tp.all_gather %0 dim 0 over @mesh {tp} {fqn = "b"} : tensor<2x16xf32> -> tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// The blocks are used, or gathered along another dimension.
// CHECK-LABEL: func.func @scatter_and_gather
func.func @scatter_and_gather(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<2x16xf32>, tensor<2x64xf32>) {
  // CHECK: tp.reduce_scatter
  // CHECK: tp.all_gather
  // CHECK: tp.reduce_scatter
  // CHECK: tp.all_gather
  %0 = tp.reduce_scatter sum %x dim 0 over @mesh {tp} : tensor<8x16xf32> -> tensor<2x16xf32>
  %1 = tp.all_gather %0 dim 0 over @mesh {tp} : tensor<2x16xf32> -> tensor<8x16xf32>
  %2 = tp.reduce_scatter sum %y dim 0 over @mesh {tp} : tensor<8x16xf32> -> tensor<2x16xf32>
  %3 = tp.all_gather %2 dim 1 over @mesh {tp} : tensor<2x16xf32> -> tensor<2x64xf32>
  return %1, %0, %3 : tensor<8x16xf32>, tensor<2x16xf32>, tensor<2x64xf32>
}

// CHECK-LABEL: func.func @all_to_all_and_back
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32>
func.func @all_to_all_and_back(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  // CHECK-NEXT: tp.all_to_all
  // CHECK-NEXT: %[[T:.*]] = nn.transpose
  // CHECK-NEXT: %[[A:.*]] = tp.all_to_all %[[T]]
  // CHECK-NEXT: %[[B:.*]] = nn.transpose %[[A]]
  // CHECK-NEXT: return %[[X]], %[[B]]
  %0 = tp.all_to_all %x split 0 concat 1 over @mesh {tp} : tensor<8x4xf32> -> tensor<2x16xf32>
  %1 = tp.all_to_all %0 split 1 concat 0 over @mesh {tp} : tensor<2x16xf32> -> tensor<8x4xf32>
  // Not the inverse.
  %2 = nn.transpose %0 [1, 0] : tensor<2x16xf32> -> tensor<16x2xf32>
  %3 = tp.all_to_all %2 split 0 concat 1 over @mesh {tp} : tensor<16x2xf32> -> tensor<4x8xf32>
  %4 = nn.transpose %3 [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  return %1, %4 : tensor<8x4xf32>, tensor<8x4xf32>
}

// CHECK-LABEL: func.func @permutes
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>, %[[Y:.*]]: tensor<8xf32>
func.func @permutes(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NEXT: %[[P:.*]] = tp.permute %[[Y]] from [2, 0, 3, 1]
  // CHECK-NEXT: return %[[X]], %[[P]], %[[X]]
  %0 = tp.permute %x from [1, 2, 3, 0] over @mesh {tp} : tensor<8xf32> -> tensor<8xf32>
  %1 = tp.permute %0 from [3, 0, 1, 2] over @mesh {tp} : tensor<8xf32> -> tensor<8xf32>
  // Rank 0 gets what rank 1 had, which is what rank 2 had.
  %2 = tp.permute %y from [1, 2, 3, 0] over @mesh {tp} : tensor<8xf32> -> tensor<8xf32>
  %3 = tp.permute %2 from [1, 3, 2, 0] over @mesh {tp} : tensor<8xf32> -> tensor<8xf32>
  %4 = tp.permute %x from [0, 1, 2, 3] over @mesh {tp} : tensor<8xf32> -> tensor<8xf32>
  return %1, %3, %4 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// The value between two permutes has a use of its own.
// CHECK-LABEL: func.func @permute_used
func.func @permute_used(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-COUNT-2: tp.permute
  %0 = tp.permute %x from [1, 2, 3, 0] over @mesh {tp} : tensor<8xf32> -> tensor<8xf32>
  %1 = tp.permute %0 from [3, 0, 2, 1] over @mesh {tp} : tensor<8xf32> -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @exchange_and_back
func.func @exchange_and_back(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK-NEXT: return %arg0
  %0 = tp.exchange %x of [16, 8] from <@mesh, [{tp}, {} ]> to <@mesh, [{}, {tp} ]> over @mesh {tp} : tensor<4x8xf32> -> tensor<16x2xf32>
  %1 = tp.exchange %0 of [16, 8] from <@mesh, [{}, {tp} ]> to <@mesh, [{tp}, {} ]> over @mesh {tp} : tensor<16x2xf32> -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// Equal but for the reduction.
// CHECK-LABEL: func.func @kinds
func.func @kinds(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NEXT: %[[A:.*]] = tp.all_reduce sum
  // CHECK-NEXT: %[[B:.*]] = tp.all_reduce max
  // CHECK-NEXT: return %[[A]], %[[B]]
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<8xf32>
  %1 = tp.all_reduce max %x over @mesh {tp} : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// A branch uses what has been gathered before it; branches don't share with each other.
// CHECK-LABEL: func.func @in_branches
func.func @in_branches(%c: i1, %x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %[[G:.*]] = tp.all_gather %arg1
  // CHECK-NEXT: scf.if
  // CHECK-NEXT: %[[H:.*]] = tp.all_gather %arg2
  // CHECK-NEXT: nn.add %[[G]], %[[H]]
  // CHECK: else
  // CHECK-NEXT: tp.all_gather %arg2
  %0 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<2xf32> -> tensor<8xf32>
  %1 = scf.if %c -> tensor<8xf32> {
    %2 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<2xf32> -> tensor<8xf32>
    %3 = tp.all_gather %y dim 0 over @mesh {tp} : tensor<2xf32> -> tensor<8xf32>
    %4 = nn.add %2, %3 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %4 : tensor<8xf32>
  } else {
    %2 = tp.all_gather %y dim 0 over @mesh {tp} : tensor<2xf32> -> tensor<8xf32>
    scf.yield %2 : tensor<8xf32>
  }
  %5 = nn.add %0, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %5 : tensor<8xf32>
}

// Terms that are scattered alike are added first, unless something else uses a block, or dimensions differ.
// CHECK-LABEL: func.func @scattered_sums
// CHECK-SAME: (%[[X:.*]]: tensor<8x4xf32>, %[[Y:.*]]: tensor<8x4xf32>)
func.func @scattered_sums(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) -> tensor<2x4xf32> {
  // CHECK-NEXT: %[[SUM:.*]] = nn.add %[[X]], %[[Y]] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK-NEXT: %[[PART:.*]] = tp.reduce_scatter sum %[[SUM]] dim 0 over @mesh {tp} {{.*}}fqn = "a, b"
  // CHECK-NEXT: return %[[PART]]
  %0 = tp.reduce_scatter sum %x dim 0 over @mesh {tp} {fqn = "a"} : tensor<8x4xf32> -> tensor<2x4xf32>
  %1 = tp.reduce_scatter sum %y dim 0 over @mesh {tp} {fqn = "b"} : tensor<8x4xf32> -> tensor<2x4xf32>
  %2 = nn.add %0, %1 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @scattered_otherwise
func.func @scattered_otherwise(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>, %z: tensor<2x16xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  // CHECK-COUNT-2: tp.reduce_scatter
  // CHECK-NEXT: nn.add
  // CHECK-COUNT-2: tp.reduce_scatter
  // CHECK-NEXT: nn.add
  // CHECK-COUNT-2: tp.reduce_scatter
  // CHECK-NEXT: nn.mul
  %0 = tp.reduce_scatter sum %x dim 0 over @mesh {tp} : tensor<8x4xf32> -> tensor<2x4xf32>
  %1 = tp.reduce_scatter sum %y dim 0 over @mesh {tp} : tensor<8x4xf32> -> tensor<2x4xf32>
  %2 = nn.add %0, %1 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %x2 = nn.relu %x : tensor<8x4xf32>
  %3 = tp.reduce_scatter sum %x2 dim 0 over @mesh {tp} : tensor<8x4xf32> -> tensor<2x4xf32>
  %4 = tp.reduce_scatter sum %z dim 1 over @mesh {tp} : tensor<2x16xf32> -> tensor<2x4xf32>
  %5 = nn.add %3, %4 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %y2 = nn.relu %y : tensor<8x4xf32>
  %6 = tp.reduce_scatter sum %y2 dim 0 over @mesh {tp} : tensor<8x4xf32> -> tensor<2x4xf32>
  %x3 = nn.gelu %x : tensor<8x4xf32>
  %7 = tp.reduce_scatter sum %x3 dim 0 over @mesh {tp} : tensor<8x4xf32> -> tensor<2x4xf32>
  %8 = nn.mul %6, %7 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0, %2, %5, %8 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}
