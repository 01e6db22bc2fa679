// RUN: tp-opt %s --tp-parallelize=latency-bytes=0 --split-input-file | FileCheck %s

// Softmax, norms and cross entropy over a split dimension reduce a few numbers per row,
// and gather no rows.
tp.mesh @mesh(tp = 4)

// CHECK-LABEL: func.func @softmax
// CHECK: nn.reduce max
// CHECK: tp.all_reduce max {{.*}}reason = "nn.softmax over a split dimension"{{.*}}tensor<8x1xf32>
// CHECK: nn.exp {{.*}}tensor<8x16xf32>
// CHECK: tp.all_reduce sum {{.*}}tensor<8x1xf32>
// CHECK: nn.div
// CHECK-NOT: tp.all_gather
func.func @softmax(%x: tensor<8x64xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<8x64xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) {
  %0 = nn.softmax %x dim 1 : tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}

// -----

tp.mesh @mesh(tp = 4)
// CHECK-LABEL: func.func @norms
// CHECK: tp.all_reduce sum {{.*}}"nn.rms_norm over a split dimension"{{.*}}tensor<8x1xf32>
// CHECK: nn.mul {{.*}} : (tensor<8x16xf32>, tensor<16xf32>)
// CHECK: tp.all_reduce sum {{.*}}"nn.layer_norm over a split dimension"
// CHECK: tp.all_reduce sum {{.*}}"nn.layer_norm over a split dimension"
// CHECK-NOT: tp.all_
func.func @norms(%x: tensor<8x64xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}, %w: tensor<64xf32>)
    -> (tensor<8x64xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) {
  %0 = nn.rms_norm %x weight %w over 1 eps 1.0e-5 : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
  %1 = nn.layer_norm %0 weight %w bias %w over 1 eps 1.0e-5 : (tensor<8x64xf32>, tensor<64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
  return %1 : tensor<8x64xf32>
}

// -----

tp.mesh @mesh(tp = 4)
// CHECK-LABEL: func.func @loss
// CHECK: tp.all_reduce max {{.*}}"nn.cross_entropy over split classes"
// CHECK: tp.all_reduce sum
// CHECK-NOT: tp.all_
func.func @loss(%x: tensor<8x64xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}, %t: tensor<8xi64>) -> tensor<f32> {
  %0 = nn.cross_entropy mean %x, %t ignore -100 smoothing 0.0 : (tensor<8x64xf32>, tensor<8xi64>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Where a row is short, one gather is less than two reductions.
tp.mesh @mesh(tp = 4)
// CHECK-LABEL: func.func @short
// CHECK: tp.all_gather
// CHECK-NOT: tp.all_
func.func @short(%x: tensor<8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}) {
  %0 = nn.softmax %x dim 1 : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
