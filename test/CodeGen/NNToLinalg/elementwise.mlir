// RUN: tp-opt %s --convert-nn-to-linalg --split-input-file | FileCheck %s

// Operands that broadcast are read through their maps.

// CHECK-DAG: #[[IDENTITY:.+]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[COLUMN:.+]] = affine_map<(d0, d1, d2) -> (d1, 0)>
// CHECK-DAG: #[[ROW:.+]] = affine_map<(d0, d1, d2) -> (d2)>
// CHECK-LABEL: @broadcast
// CHECK: linalg.generic {indexing_maps = [#[[IDENTITY]], #[[COLUMN]], #[[IDENTITY]]]
// CHECK: arith.addf
// CHECK: linalg.generic {indexing_maps = [#[[IDENTITY]], #[[ROW]], #[[IDENTITY]]]
// CHECK: arith.mulf
func.func @broadcast(%x: tensor<2x3x4xf32>, %c: tensor<3x1xf32>, %r: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %0 = nn.add %x, %c : (tensor<2x3x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  %1 = nn.mul %0, %r : (tensor<2x3x4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  return %1 : tensor<2x3x4xf32>
}

// -----

// A reshape that only adds dimensions of size 1 isn't in the way of fusion.

// CHECK-DAG: #[[OUTER:.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-LABEL: @unsqueeze
// CHECK-SAME: %{{.+}}: tensor<2x3x4xf32>, %[[MASK:[a-z0-9]+]]: tensor<2x4xf32>
// CHECK-NOT: tensor.expand_shape
// CHECK: linalg.generic {indexing_maps = [#{{.+}}, #[[OUTER]], #{{.+}}]{{.*}}} ins(%{{.+}}, %[[MASK]]
func.func @unsqueeze(%x: tensor<2x3x4xf32>, %mask: tensor<2x4xf32>) -> tensor<2x3x4xf32> {
  %0 = nn.reshape %mask : tensor<2x4xf32> -> tensor<2x1x4xf32>
  %1 = nn.add %x, %0 : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x3x4xf32>
  return %1 : tensor<2x3x4xf32>
}

// -----

// A splat constant is a scalar in the body; small constant powers are products.

// CHECK-LABEL: @square
// CHECK: linalg.generic {{.*}} ins(%{{[a-z0-9]+}} : tensor<4xf32>)
// CHECK: ^bb0(%[[X:.+]]: f32, %{{.+}}: f32):
// CHECK: %[[SQUARE:.+]] = arith.mulf %[[X]], %[[X]] : f32
// CHECK: linalg.yield %[[SQUARE]]
func.func @square(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = nn.constant dense<2.0> : tensor<f32>
  %0 = nn.pow %x, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// 16-bit floats compute in f32 and are rounded once.

// CHECK-LABEL: @gelu_bf16
// CHECK: ^bb0(%[[X:.+]]: bf16, %{{.+}}: bf16):
// CHECK: %[[WIDE:.+]] = arith.extf %[[X]] : bf16 to f32
// CHECK: math.erf %{{.+}} : f32
// CHECK: %[[ROUNDED:.+]] = arith.truncf %{{.+}} : f32 to bf16
// CHECK: linalg.yield %[[ROUNDED]]
func.func @gelu_bf16(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = nn.gelu %x : tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// -----

// NaN passes through, also through comparisons' results.

// CHECK-LABEL: @nan
// CHECK: arith.maximumf
// CHECK: arith.cmpf une
// CHECK: arith.cmpf une, %{{.+}}, %{{.+}} : f32
func.func @nan(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xi1>, tensor<4xi1>) {
  %0 = nn.relu %x : tensor<4xf32>
  %1 = nn.compare ne %0, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %2 = nn.cast %0 : tensor<4xf32> -> tensor<4xi1>
  return %1, %2 : tensor<4xi1>, tensor<4xi1>
}

// -----

// Integer division is defined for every divisor; a constant one needs no checks.

// CHECK-LABEL: @integer_division
// CHECK: %[[SAFE:.+]] = arith.select
// CHECK: arith.divsi %{{.+}}, %[[SAFE]]
// CHECK: linalg.generic
// CHECK-NOT: arith.select
// CHECK: arith.divsi
func.func @integer_division(%x: tensor<4xi64>, %y: tensor<4xi64>) -> tensor<4xi64> {
  %c = nn.constant dense<3> : tensor<i64>
  %0 = nn.div %x, %y : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %1 = nn.div %0, %c : (tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
  return %1 : tensor<4xi64>
}
