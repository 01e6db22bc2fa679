// RUN: tp-opt %s --convert-nn-to-linalg --split-input-file | FileCheck %s

// The variance is taken from centered values.

// CHECK-LABEL: @layer_norm
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x8x16xf32>
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%[[X]] : {{.*}}) outs({{.*}} : tensor<2x8xf32>)
// CHECK: %[[MEAN:.+]] = linalg.generic
// CHECK: arith.divf
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%[[X]], %[[MEAN]]
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK: math.rsqrt
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<2x8x16xf32>)
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK: arith.mulf
// CHECK: arith.addf
func.func @layer_norm(%x: tensor<2x8x16xf32>, %w: tensor<16xf32>, %b: tensor<16xf32>) -> tensor<2x8x16xf32> {
  %0 = nn.layer_norm %x weight %w bias %b over 1 eps 1.0e-5 : (tensor<2x8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
  return %0 : tensor<2x8x16xf32>
}

// -----

// CHECK-LABEL: @rms_norm_bf16
// CHECK: linalg.generic {{.*}}"reduction"]} {{.*}} outs({{.*}} : tensor<2x8xf32>)
// CHECK: arith.extf
// CHECK: math.rsqrt %{{.+}} : f32
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<2x8x16xbf16>)
// CHECK: arith.truncf
func.func @rms_norm_bf16(%x: tensor<2x8x16xbf16>, %w: tensor<16xbf16>) -> tensor<2x8x16xbf16> {
  %0 = nn.rms_norm %x weight %w over 1 eps 1.0e-5 : (tensor<2x8x16xbf16>, tensor<16xbf16>) -> tensor<2x8x16xbf16>
  return %0 : tensor<2x8x16xbf16>
}

// -----

// CHECK-LABEL: @log_softmax
// CHECK: iterator_types = ["reduction", "parallel"]
// CHECK: arith.maximumf
// CHECK: iterator_types = ["reduction", "parallel"]
// CHECK: math.exp
// CHECK: iterator_types = ["parallel"]
// CHECK: math.log
// CHECK: iterator_types = ["parallel", "parallel"]
// CHECK-COUNT-2: arith.subf
func.func @log_softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = nn.log_softmax %x dim 0 : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: @mean_keepdim
// CHECK: iterator_types = ["parallel", "reduction", "reduction"]
// CHECK: arith.addf {{.*}} fastmath<reassoc,contract>
// CHECK: %[[COUNT:.+]] = arith.constant 3.200000e+01
// CHECK: arith.divf %{{.+}}, %[[COUNT]]
// CHECK: tensor.expand_shape {{.*}} into tensor<2x1x1xf32>
func.func @mean_keepdim(%x: tensor<2x4x8xf32>) -> tensor<2x1x1xf32> {
  %0 = nn.reduce mean %x dims [1, 2] keepdim : tensor<2x4x8xf32> -> tensor<2x1x1xf32>
  return %0 : tensor<2x1x1xf32>
}

// -----

// The first of equal elements wins, and NaN over all.

// CHECK-LABEL: @argmax
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<2xf32>, tensor<2xi64>)
// CHECK: ^bb0(%[[X:.+]]: f32, %[[BEST:.+]]: f32, %{{.+}}: i64):
// CHECK: arith.cmpf ugt, %[[X]], %[[BEST]]
// CHECK: arith.cmpf ord, %[[BEST]], %[[BEST]]
func.func @argmax(%x: tensor<2x4xf32>) -> tensor<2xi64> {
  %0 = nn.argmax %x dim 1 : tensor<2x4xf32> -> tensor<2xi64>
  return %0 : tensor<2xi64>
}
