// RUN: tp-opt %s --split-input-file --verify-diagnostics
// RUN: tp-opt %s --one-shot-bufferize --split-input-file --verify-diagnostics 2>/dev/null | FileCheck %s

#q = affine_map<(b, t, s, d, e) -> (t, b, d)>
#k = affine_map<(b, t, s, d, e) -> (s, d)>
#v = affine_map<(b, t, s, d, e) -> (s, e)>
#o = affine_map<(b, t, s, d, e) -> (b, t, e)>
#dk = affine_map<(b, t, s, d, e) -> (b, s, d)>
#dv = affine_map<(b, t, s, d, e) -> (b, s, e)>
// Results are in the buffers of what they go into; what two batches share is read by both.
// CHECK-LABEL: @buffers
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<4x2x8xf32>, %[[K:[a-z0-9]+]]: memref<5x8xf32>, %[[V:[a-z0-9]+]]: memref<5x6xf32>, %[[G:[a-z0-9]+]]: memref<2x4x6xf32>, %[[OUT:[a-z0-9]+]]: memref<2x5x6xf32>
// CHECK-DAG: %[[DQ:.+]] = memref.alloc() {{.*}} : memref<4x2x8xf32>
// CHECK-DAG: %[[DK:.+]] = memref.alloc() {{.*}} : memref<2x5x8xf32>
// CHECK-DAG: %[[DV:.+]] = memref.alloc() {{.*}} : memref<2x5x6xf32>
// CHECK: tprt.attention_gradient causal %[[Q]], %[[K]], %[[V]] gradient %[[G]] into %[[DQ]], %[[DK]], %[[DV]] scale 1.000000e+00 maps [{{.*}}] : memref<4x2x8xf32>, memref<5x8xf32>, memref<5x6xf32> gradient memref<2x4x6xf32> into memref<4x2x8xf32>, memref<2x5x8xf32>, memref<2x5x6xf32>
func.func @buffers(%qm: memref<4x2x8xf32>, %km: memref<5x8xf32>, %vm: memref<5x6xf32>, %gm: memref<2x4x6xf32>, %out: memref<2x5x6xf32>) -> (tensor<4x2x8xf32>, tensor<2x5x8xf32>) {
  %q = bufferization.to_tensor %qm restrict : memref<4x2x8xf32> to tensor<4x2x8xf32>
  %k = bufferization.to_tensor %km restrict : memref<5x8xf32> to tensor<5x8xf32>
  %v = bufferization.to_tensor %vm restrict : memref<5x6xf32> to tensor<5x6xf32>
  %g = bufferization.to_tensor %gm restrict : memref<2x4x6xf32> to tensor<2x4x6xf32>
  %dq = tensor.empty() : tensor<4x2x8xf32>
  %dk = tensor.empty() : tensor<2x5x8xf32>
  %dv = tensor.empty() : tensor<2x5x6xf32>
  %r:3 = tprt.attention_gradient causal %q, %k, %v gradient %g into %dq, %dk, %dv scale 1.0 maps [#q, #k, #v, #o, #q, #dk, #dv]
    : tensor<4x2x8xf32>, tensor<5x8xf32>, tensor<5x6xf32> gradient tensor<2x4x6xf32>
      into tensor<4x2x8xf32>, tensor<2x5x8xf32>, tensor<2x5x6xf32> -> tensor<4x2x8xf32>, tensor<2x5x8xf32>, tensor<2x5x6xf32>
  bufferization.materialize_in_destination %r#2 in restrict writable %out : (tensor<2x5x6xf32>, memref<2x5x6xf32>) -> ()
  return %r#0, %r#1 : tensor<4x2x8xf32>, tensor<2x5x8xf32>
}

// -----

#q = affine_map<(b, t, s, d, e) -> (b, t, d)>
#k = affine_map<(b, t, s, d, e) -> (s, d)>
#v = affine_map<(b, t, s, d, e) -> (s, e)>
#o = affine_map<(b, t, s, d, e) -> (b, t, e)>
func.func @shared(%x: memref<4x4x4xf32>, %y: memref<4x4xf32>) {
  // expected-error @+1 {{indexes the key's gradient without loop 0 of (batches, row, column, depth, width)}}
  tprt.attention_gradient %x, %y, %y gradient %x into %x, %y, %y scale 1.0 maps [#q, #k, #v, #o, #q, #k, #v]
    : memref<4x4x4xf32>, memref<4x4xf32>, memref<4x4xf32> gradient memref<4x4x4xf32> into memref<4x4x4xf32>, memref<4x4xf32>, memref<4x4xf32>
  return
}

// -----

#q = affine_map<(t, s, d, e) -> (t, d)>
#k = affine_map<(t, s, d, e) -> (s, d)>
#v = affine_map<(t, s, d, e) -> (s, e)>
#o = affine_map<(t, s, d, e) -> (t, e)>
func.func @sizes(%q: memref<4x4xf32>, %k: memref<3x4xf32>) {
  // expected-error @+1 {{has a value's gradient of size 4 along loop 1, which runs 3 times}}
  tprt.attention_gradient %q, %k, %k gradient %q into %q, %k, %q scale 1.0 maps [#q, #k, #v, #o, #q, #k, #v]
    : memref<4x4xf32>, memref<3x4xf32>, memref<3x4xf32> gradient memref<4x4xf32> into memref<4x4xf32>, memref<3x4xf32>, memref<4x4xf32>
  return
}
