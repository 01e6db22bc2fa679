// A slice of what was written to it is the source; what changes nothing isn't written.
// RUN: tp-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @read_back
// CHECK-SAME: (%{{.*}}: tensor<2x8xf32>, %[[PART:.*]]: tensor<2x4xf32>)
// CHECK-NEXT: return %[[PART]]
func.func @read_back(%x: tensor<2x8xf32>, %part: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = nn.slice_scatter %x, %part dim 1 start 1 step 2 : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
  %1 = nn.slice %0 dim 1 start 1 step 2 : tensor<2x8xf32> -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @write_back
// CHECK-SAME: (%[[X:.*]]: tensor<2x8xf32>)
// CHECK-NEXT: return %[[X]]
func.func @write_back(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = nn.slice %x dim 1 start 4 step 1 : tensor<2x8xf32> -> tensor<2x4xf32>
  %1 = nn.slice_scatter %x, %0 dim 1 start 4 step 1 : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}

// CHECK-LABEL: func.func @whole
// CHECK-SAME: (%{{.*}}: tensor<2x8xf32>, %[[PART:.*]]: tensor<2x8xf32>)
// CHECK-NEXT: return %[[PART]]
func.func @whole(%x: tensor<2x8xf32>, %part: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = nn.slice_scatter %x, %part dim 1 start 0 step 1 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// CHECK-LABEL: func.func @other_range
// CHECK: nn.slice_scatter
// CHECK: nn.slice
func.func @other_range(%x: tensor<2x8xf32>, %part: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = nn.slice_scatter %x, %part dim 1 start 0 step 2 : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
  %1 = nn.slice %0 dim 1 start 0 step 1 : tensor<2x8xf32> -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}
