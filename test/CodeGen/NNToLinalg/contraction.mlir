// RUN: tp-opt %s --convert-nn-to-linalg --split-input-file | FileCheck %s

// CHECK-DAG: #[[MK:.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[NK:.+]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[MN:.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: @linear
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x8x16xf32>, %[[W:[a-z0-9]+]]: tensor<4x16xf32>
// CHECK: %[[ROWS:.+]] = tensor.collapse_shape %[[X]] {{\[}}[0, 1], [2]]
// CHECK: %[[ZEROS:.+]] = linalg.fill
// CHECK: %[[Y:.+]] = linalg.generic {indexing_maps = [#[[MK]], #[[NK]], #[[MN]]], iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK-SAME: ins(%[[ROWS]], %[[W]] : {{.*}}) outs(%[[ZEROS]] : tensor<16x4xf32>)
// CHECK: tensor.expand_shape %[[Y]] {{\[}}[0, 1], [2]]
func.func @linear(%x: tensor<2x8x16xf32>, %w: tensor<4x16xf32>) -> tensor<2x8x4xf32> {
  %0 = nn.linear %x, %w : (tensor<2x8x16xf32>, tensor<4x16xf32>) -> tensor<2x8x4xf32>
  return %0 : tensor<2x8x4xf32>
}

// -----

// A contraction of bf16 is one, for GEMM, which accumulates in f32 and rounds once; what uses no element twice is a sum in f32.

// CHECK-LABEL: @linear_bf16
// CHECK: linalg.generic {{.*}}"reduction"]} ins({{.*}} : tensor<8x16xbf16>, tensor<4x16xbf16>) outs({{.*}} : tensor<8x4xbf16>)
// CHECK: arith.mulf %{{.+}}, %{{.+}} fastmath<contract> : bf16
// CHECK: arith.addf %{{.+}}, %{{.+}} fastmath<reassoc,contract> : bf16
// CHECK-NOT: arith.truncf
// CHECK-LABEL: @dot_bf16
// CHECK: linalg.generic {{.*}}"reduction"]} ins({{.*}} : tensor<1x16xbf16>, tensor<1x16xbf16>) outs({{.*}} : tensor<1x1xf32>)
// CHECK: arith.truncf
func.func @linear_bf16(%x: tensor<8x16xbf16>, %w: tensor<4x16xbf16>) -> tensor<8x4xbf16> {
  %0 = nn.linear %x, %w : (tensor<8x16xbf16>, tensor<4x16xbf16>) -> tensor<8x4xbf16>
  return %0 : tensor<8x4xbf16>
}
func.func @dot_bf16(%x: tensor<1x16xbf16>, %w: tensor<1x16xbf16>) -> tensor<1x1xbf16> {
  %0 = nn.linear %x, %w : (tensor<1x16xbf16>, tensor<1x16xbf16>) -> tensor<1x1xbf16>
  return %0 : tensor<1x1xbf16>
}

// -----

// A batch dimension that one operand repeats is missing in its map.

// CHECK-DAG: #[[LHS:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d4)>
// CHECK-DAG: #[[RHS:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d1, d4, d3)>
// CHECK-LABEL: @matmul
// CHECK: linalg.generic {indexing_maps = [#[[LHS]], #[[RHS]], #{{.+}}]
func.func @matmul(%x: tensor<2x1x4x6xf32>, %y: tensor<3x6x5xf32>) -> tensor<2x3x4x5xf32> {
  %0 = nn.matmul %x, %y : (tensor<2x1x4x6xf32>, tensor<3x6x5xf32>) -> tensor<2x3x4x5xf32>
  return %0 : tensor<2x3x4x5xf32>
}

// -----

// With a plain matrix on the right, the batch is part of m.

// CHECK-LABEL: @matmul_matrix
// CHECK: tensor.collapse_shape {{.*}} into tensor<8x6xf32>
// CHECK: linalg.generic {{.*}} ins({{.*}} : tensor<8x6xf32>, tensor<6x5xf32>)
func.func @matmul_matrix(%x: tensor<2x4x6xf32>, %y: tensor<6x5xf32>) -> tensor<2x4x5xf32> {
  %0 = nn.matmul %x, %y : (tensor<2x4x6xf32>, tensor<6x5xf32>) -> tensor<2x4x5xf32>
  return %0 : tensor<2x4x5xf32>
}
