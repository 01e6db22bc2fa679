// RUN: tp-opt %s --tp-optimize-collectives | FileCheck %s
// RUN: tp-opt %s --tp-optimize-collectives --remarks-filter='tp-.*' --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=REMARK

tp.mesh @mesh(tp = 2)

// REMARK: remark: [Passed] ReduceScatter | Category:tp-optimize-collectives
// CHECK-LABEL: func.func @scatter
func.func @scatter(%x: tensor<8x16xf32>) -> tensor<8x8xf32> {
  // CHECK: %[[Y:.*]] = tp.reduce_scatter sum %{{.*}} dim 1 over @mesh {tp} {bytes = 256 : i64, fqn = "a", reason = "r"} : tensor<8x16xf32> -> tensor<8x8xf32>
  // CHECK-NEXT: return %[[Y]]
  %0 = tp.all_reduce sum %x over @mesh {tp} {bytes = 512 : i64, fqn = "a", reason = "r"} : tensor<8x16xf32>
  %1 = tp.local_slice %0 dim 1 over @mesh {tp} : tensor<8x16xf32> -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// The whole is used as well: nothing to gain.
// CHECK-LABEL: func.func @keep
func.func @keep(%x: tensor<8x16xf32>) -> (tensor<8x8xf32>, tensor<8x16xf32>) {
  // CHECK: tp.all_reduce
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<8x16xf32>
  // CHECK: tp.local_slice
  %1 = tp.local_slice %0 dim 1 over @mesh {tp} : tensor<8x16xf32> -> tensor<8x8xf32>
  return %1, %0 : tensor<8x8xf32>, tensor<8x16xf32>
}

// CHECK-LABEL: func.func @inverse
// CHECK-SAME: %[[X:.*]]: tensor<8x16xf32>, %[[Z:.*]]: tensor<8x8xf32>
func.func @inverse(%x: tensor<8x16xf32>, %z: tensor<8x8xf32>) -> (tensor<8x16xf32>, tensor<8x8xf32>) {
  // CHECK-NEXT: return %[[X]], %[[Z]]
  %0 = tp.local_slice %x dim 1 over @mesh {tp} : tensor<8x16xf32> -> tensor<8x8xf32>
  %1 = tp.all_gather %0 dim 1 over @mesh {tp} : tensor<8x8xf32> -> tensor<8x16xf32>
  %2 = tp.all_gather %z dim 1 over @mesh {tp} : tensor<8x8xf32> -> tensor<8x16xf32>
  %3 = tp.local_slice %2 dim 1 over @mesh {tp} : tensor<8x16xf32> -> tensor<8x8xf32>
  return %1, %3 : tensor<8x16xf32>, tensor<8x8xf32>
}

// Not inverse: other dimensions.
// CHECK-LABEL: func.func @other_dimension
func.func @other_dimension(%x: tensor<8x16xf32>) -> tensor<16x8xf32> {
  // CHECK: tp.local_slice
  // CHECK: tp.all_gather
  %0 = tp.local_slice %x dim 1 over @mesh {tp} : tensor<8x16xf32> -> tensor<8x8xf32>
  %1 = tp.all_gather %0 dim 0 over @mesh {tp} : tensor<8x8xf32> -> tensor<16x8xf32>
  return %1 : tensor<16x8xf32>
}

// CHECK-LABEL: func.func @shared
func.func @shared(%x: tensor<8x8xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<16x8xf32>) {
  // CHECK: %[[G:.*]] = tp.all_gather %{{.*}} dim 1 {{.*}}fqn = "wq"
  %0 = tp.all_gather %x dim 1 over @mesh {tp} {fqn = "wq"} : tensor<8x8xf32> -> tensor<8x16xf32>
  // CHECK-NOT: fqn = "wk"
  %1 = tp.all_gather %x dim 1 over @mesh {tp} {fqn = "wk"} : tensor<8x8xf32> -> tensor<8x16xf32>
  // CHECK: %[[H:.*]] = tp.all_gather %{{.*}} dim 0
  %2 = tp.all_gather %x dim 0 over @mesh {tp} {fqn = "wk"} : tensor<8x8xf32> -> tensor<16x8xf32>
  // CHECK: return %[[G]], %[[G]], %[[H]]
  return %0, %1, %2 : tensor<8x16xf32>, tensor<8x16xf32>, tensor<16x8xf32>
}

// CHECK-LABEL: func.func @unused
// CHECK-NEXT: return
func.func @unused(%x: tensor<8x8xf32>) {
  %0 = tp.all_gather %x dim 1 over @mesh {tp} : tensor<8x8xf32> -> tensor<8x16xf32>
  %1 = nn.relu %0 : tensor<8x16xf32>
  return
}
