// RUN: tp-opt %s --convert-routing-to-tprt --split-input-file | FileCheck %s
// RUN: tp-opt %s --convert-routing-to-tprt --convert-nn-to-linalg --fold-transpose-into-contraction --canonicalize --split-input-file | FileCheck %s --check-prefix=FOLD

// CHECK-LABEL: @sort
// CHECK-SAME: %[[X:.+]]: tensor<4x8xf32>
// CHECK: %[[VALUES:.+]] = tensor.empty() : tensor<4x2xf32>
// CHECK: %[[INDICES:.+]] = tensor.empty() : tensor<4x2xi64>
// CHECK: tprt.sort descending %[[X]] into %[[VALUES]], %[[INDICES]] dim 1 : tensor<4x8xf32> into tensor<4x2xf32>, tensor<4x2xi64> -> tensor<4x2xf32>, tensor<4x2xi64>
func.func @sort(%x: tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi64>) {
  %0:2 = nn.sort descending %x dim 1 count 2 : tensor<4x8xf32> -> (tensor<4x2xf32>, tensor<4x2xi64>)
  return %0#0, %0#1 : tensor<4x2xf32>, tensor<4x2xi64>
}

// -----

// Weights as nn.Linear has them are read through the map.

// CHECK-DAG: #[[ROWS:.+]] = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
// CHECK-DAG: #[[WEIGHT:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
// CHECK-DAG: #[[RESULT:.+]] = affine_map<(d0, d1, d2, d3) -> (d1, d2)>
// CHECK-LABEL: @matmul
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<16x8xf32>, %{{[a-z0-9]+}}: tensor<4x6x8xf32>, %[[B:[a-z0-9]+]]: tensor<5xi32>
// CHECK: tprt.check_index %[[B]] below 17 what "mlp.experts: grouped_matmul" : tensor<5xi32>
// CHECK: tprt.grouped_gemm %[[X]], %{{.+}} bounds %[[B]] into %{{.+}} maps [#[[ROWS]], #[[WEIGHT]], #[[RESULT]]] : tensor<16x8xf32>, tensor<4x8x6xf32> bounds tensor<5xi32> into tensor<16x6xf32> -> tensor<16x6xf32>

// FOLD-DAG: #[[WEIGHT:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
// FOLD-LABEL: @matmul
// FOLD-SAME: %[[X:[a-z0-9]+]]: tensor<16x8xf32>, %[[W:[a-z0-9]+]]: tensor<4x6x8xf32>
// FOLD-NOT: linalg.generic
// FOLD: tprt.grouped_gemm %[[X]], %[[W]] {{.*}} maps [#{{.+}}, #[[WEIGHT]], #{{.+}}]
func.func @matmul(%x: tensor<16x8xf32>, %w: tensor<4x6x8xf32>, %b: tensor<5xi32>) -> tensor<16x6xf32> {
  %t = nn.transpose %w [0, 2, 1] : tensor<4x6x8xf32> -> tensor<4x8x6xf32>
  %0 = nn.grouped_matmul %x, %t bounds %b {tp.fqn = "mlp.experts"} : (tensor<16x8xf32>, tensor<4x8x6xf32>, tensor<5xi32>) -> tensor<16x6xf32>
  return %0 : tensor<16x6xf32>
}

// -----

// A GEMM can't read a matrix neither of whose strides is 1.

// CHECK-LABEL: @groups_last
// FOLD-LABEL: @groups_last
// FOLD: linalg.generic
// FOLD: tprt.grouped_gemm
func.func @groups_last(%x: tensor<16x8xf32>, %w: tensor<6x8x4xf32>, %b: tensor<5xi32>) -> tensor<16x6xf32> {
  %t = nn.transpose %w [2, 1, 0] : tensor<6x8x4xf32> -> tensor<4x8x6xf32>
  %0 = nn.grouped_matmul %x, %t bounds %b : (tensor<16x8xf32>, tensor<4x8x6xf32>, tensor<5xi32>) -> tensor<16x6xf32>
  return %0 : tensor<16x6xf32>
}

// -----

// CHECK-DAG: #[[LHS:.+]] = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
// CHECK-DAG: #[[RHS:.+]] = affine_map<(d0, d1, d2, d3) -> (d1, d2)>
// CHECK-DAG: #[[RESULT:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
// CHECK-LABEL: @outer_sum
// CHECK: tprt.grouped_gemm {{.*}} maps [#[[LHS]], #[[RHS]], #[[RESULT]]] : tensor<16x8xbf16>, tensor<16x6xbf16> bounds tensor<5xi64> into tensor<4x8x6xbf16> -> tensor<4x8x6xbf16>
func.func @outer_sum(%x: tensor<16x8xbf16>, %g: tensor<16x6xbf16>, %b: tensor<5xi64>) -> tensor<4x8x6xbf16> {
  %0 = nn.grouped_outer_sum %x, %g bounds %b : (tensor<16x8xbf16>, tensor<16x6xbf16>, tensor<5xi64>) -> tensor<4x8x6xbf16>
  return %0 : tensor<4x8x6xbf16>
}
