// RUN: tp-opt %s --convert-nn-to-linalg --split-input-file | FileCheck %s

// CHECK-LABEL: @reshape
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x6x4xf32>
// CHECK: %[[COMMON:.+]] = tensor.collapse_shape %[[X]] {{\[}}[0, 1], [2]] : tensor<2x6x4xf32> into tensor<12x4xf32>
// CHECK: tensor.expand_shape %[[COMMON]] {{\[}}[0, 1], [2]] {{.*}} into tensor<4x3x4xf32>
func.func @reshape(%x: tensor<2x6x4xf32>) -> tensor<4x3x4xf32> {
  %0 = nn.reshape %x : tensor<2x6x4xf32> -> tensor<4x3x4xf32>
  return %0 : tensor<4x3x4xf32>
}

// -----

// CHECK-DAG: #[[MOVED:.+]] = affine_map<(d0, d1, d2) -> (d1, d2, d0)>
// CHECK-LABEL: @transpose
// CHECK: linalg.generic {indexing_maps = [#[[MOVED]], #{{.+}}], {{.*}}} ins({{.*}} : tensor<2x3x4xi1>) outs({{.*}} : tensor<4x2x3xi1>)
func.func @transpose(%x: tensor<2x3x4xi1>) -> tensor<4x2x3xi1> {
  %0 = nn.transpose %x [2, 0, 1] : tensor<2x3x4xi1> -> tensor<4x2x3xi1>
  return %0 : tensor<4x2x3xi1>
}

// -----

// Where only a dimension of size 1 moves, nothing does.

// CHECK-LABEL: @transpose_unit
// CHECK-NOT: linalg
// CHECK: tensor.collapse_shape
// CHECK: tensor.expand_shape
// CHECK-NOT: linalg
func.func @transpose_unit(%x: tensor<2x1x3x4xf32>) -> tensor<2x3x1x4xf32> {
  %0 = nn.transpose %x [0, 2, 1, 3] : tensor<2x1x3x4xf32> -> tensor<2x3x1x4xf32>
  return %0 : tensor<2x3x1x4xf32>
}

// -----

// CHECK-LABEL: @slice_and_concat
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x8xf32>
// CHECK: %[[ODD:.+]] = tensor.extract_slice %[[X]][0, 1] [2, 4] [1, 2]
// CHECK: %[[INIT:.+]] = tensor.empty() : tensor<2x12xf32>
// CHECK: %[[FIRST:.+]] = tensor.insert_slice %[[ODD]] into %[[INIT]][0, 0] [2, 4] [1, 1]
// CHECK: tensor.insert_slice %[[X]] into %[[FIRST]][0, 4] [2, 8] [1, 1]
func.func @slice_and_concat(%x: tensor<2x8xf32>) -> tensor<2x12xf32> {
  %0 = nn.slice %x dim 1 start 1 step 2 : tensor<2x8xf32> -> tensor<2x4xf32>
  %1 = nn.concat %0, %x dim 1 : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<2x12xf32>
  return %1 : tensor<2x12xf32>
}

// -----

// CHECK-LABEL: @slice_scatter
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x8xf32>, %[[PART:[a-z0-9]+]]: tensor<2x4xf32>
// CHECK: tensor.insert_slice %[[PART]] into %[[X]][0, 1] [2, 4] [1, 2]
func.func @slice_scatter(%x: tensor<2x8xf32>, %part: tensor<2x4xf32>) -> tensor<2x8xf32> {
  %0 = nn.slice_scatter %x, %part dim 1 start 1 step 2 : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: @iota
// CHECK: linalg.index 1
// CHECK: arith.muli
// CHECK: arith.addi
func.func @iota() -> tensor<2x4xi64> {
  %0 = nn.iota dim 1 start 3.0 step 2.0 : tensor<2x4xi64>
  return %0 : tensor<2x4xi64>
}
