// RUN: tp-opt %s --convert-nn-to-linalg --split-input-file | FileCheck %s

// CHECK-DAG: #[[QUERY:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
// CHECK-DAG: #[[KEY:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
// CHECK-DAG: #[[VALUE:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>
// CHECK-DAG: #[[MASK:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, 0, 0, d3)>
// CHECK-LABEL: @masked
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<2x4x5x8xf32>, %[[K:[a-z0-9]+]]: tensor<2x4x7x8xf32>, %[[V:[a-z0-9]+]]: tensor<2x4x7x6xf32>, %[[M:[a-z0-9]+]]: tensor<2x1x1x7xi1>
// CHECK: %[[SCORES:.+]] = linalg.generic {indexing_maps = [#[[QUERY]], #[[KEY]], #{{.+}}], {{.*}}} ins(%[[Q]], %[[K]]
// CHECK: linalg.generic {indexing_maps = [#{{.+}}, #[[MASK]], #{{.+}}], {{.*}}} ins(%[[SCORES]], %[[M]]
// CHECK: arith.mulf
// CHECK: arith.select
// CHECK: %[[MAXIMUM:.+]] = linalg.generic
// CHECK: arith.maximumf
// A row of -inf: differences from 0, divided by 1.
// CHECK: linalg.generic {{.*}} ins(%[[MAXIMUM]]
// CHECK: arith.cmpf oeq
// CHECK: arith.select
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK: %[[SUM:.+]] = linalg.generic
// CHECK: arith.addf
// CHECK: linalg.generic {{.*}} ins(%[[SUM]]
// CHECK: arith.cmpf oeq
// CHECK: arith.select
// CHECK: %[[WEIGHTS:.+]] = linalg.generic
// CHECK: arith.divf
// CHECK: linalg.generic {indexing_maps = [#{{.+}}, #[[VALUE]], #{{.+}}], {{.*}}} ins(%[[WEIGHTS]], %[[V]]
func.func @masked(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x6xf32>,
                  %mask: tensor<2x1x1x7xi1>) -> tensor<2x4x5x6xf32> {
  %0 = nn.attention %q, %k, %v mask %mask scale 0.5
    : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x6xf32>, tensor<2x1x1x7xi1>) -> tensor<2x4x5x6xf32>
  return %0 : tensor<2x4x5x6xf32>
}

// -----

// Grouped heads: the group is a loop that key and value don't have.

// CHECK-DAG: #[[KEY:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4, d5)>
// CHECK-LABEL: @grouped_causal
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<2x4x5x8xf32>, %[[K:[a-z0-9]+]]: tensor<2x2x5x8xf32>
// CHECK: %[[GROUPED:.+]] = tensor.expand_shape %[[Q]] {{\[}}[0], [1, 2], [3], [4]]
// CHECK: linalg.generic {indexing_maps = [#{{.+}}, #[[KEY]], #{{.+}}], {{.*}}} ins(%[[GROUPED]], %[[K]]
// CHECK-DAG: %[[ROW:.+]] = linalg.index 3
// CHECK-DAG: %[[COLUMN:.+]] = linalg.index 4
// CHECK: arith.cmpi sle, %[[COLUMN]], %[[ROW]]
// CHECK: tensor.collapse_shape %{{.+}} {{\[}}[0], [1, 2], [3], [4]] {{.*}} into tensor<2x4x5x8xf32>
func.func @grouped_causal(%q: tensor<2x4x5x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>) -> tensor<2x4x5x8xf32> {
  %0 = nn.attention causal %q, %k, %v scale 0.5
    : (tensor<2x4x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>) -> tensor<2x4x5x8xf32>
  return %0 : tensor<2x4x5x8xf32>
}
