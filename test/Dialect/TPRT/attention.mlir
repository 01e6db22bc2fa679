// RUN: tp-opt %s --split-input-file --verify-diagnostics
// RUN: tp-opt %s --one-shot-bufferize --split-input-file --verify-diagnostics 2>/dev/null | FileCheck %s

#q = affine_map<(b, t, s, d, e) -> (t, b, d)>
#k = affine_map<(b, t, s, d, e) -> (b, s, d)>
#v = affine_map<(b, t, s, d, e) -> (b, s, e)>
#m = affine_map<(b, t, s, d, e) -> (0, s)>
#o = affine_map<(b, t, s, d, e) -> (b, t, e)>
// CHECK-LABEL: @buffers
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<4x2x8xf32>, %[[K:[a-z0-9]+]]: memref<2x5x8xf32>, %[[V:[a-z0-9]+]]: memref<2x5x6xf32>, %[[M:[a-z0-9]+]]: memref<1x5xi1>, %[[OUT:[a-z0-9]+]]: memref<2x4x6xf32>
// CHECK-NOT: memref.copy
// CHECK: tprt.attention %[[Q]], %[[K]], %[[V]] mask %[[M]] into %[[INIT:.+]] scale 1.000000e+00 maps [{{.*}}] : memref<4x2x8xf32>, memref<2x5x8xf32>, memref<2x5x6xf32> mask memref<1x5xi1> into memref<2x4x6xf32>
func.func @buffers(%qm: memref<4x2x8xf32>, %km: memref<2x5x8xf32>, %vm: memref<2x5x6xf32>, %mm: memref<1x5xi1>, %out: memref<2x4x6xf32>) {
  %q = bufferization.to_tensor %qm restrict : memref<4x2x8xf32> to tensor<4x2x8xf32>
  %k = bufferization.to_tensor %km restrict : memref<2x5x8xf32> to tensor<2x5x8xf32>
  %v = bufferization.to_tensor %vm restrict : memref<2x5x6xf32> to tensor<2x5x6xf32>
  %m = bufferization.to_tensor %mm restrict : memref<1x5xi1> to tensor<1x5xi1>
  %init = tensor.empty() : tensor<2x4x6xf32>
  %r = tprt.attention %q, %k, %v mask %m into %init scale 1.0 maps [#q, #k, #v, #m, #o]
    : tensor<4x2x8xf32>, tensor<2x5x8xf32>, tensor<2x5x6xf32> mask tensor<1x5xi1> into tensor<2x4x6xf32> -> tensor<2x4x6xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<2x4x6xf32>, memref<2x4x6xf32>) -> ()
  return
}

// -----

#q = affine_map<(t, s, d, e) -> (t, d)>
#k = affine_map<(t, s, d, e) -> (s, d)>
#v = affine_map<(t, s, d, e) -> (s, e)>
#o = affine_map<(t, s, d, e) -> (t, e)>
func.func @integers(%x: memref<4x4xi64>) {
  // expected-error @+1 {{computes f32, f64, f16 and bf16, not 'i64'}}
  tprt.attention %x, %x, %x into %x scale 1.0 maps [#q, #k, #v, #o] : memref<4x4xi64>, memref<4x4xi64>, memref<4x4xi64> into memref<4x4xi64>
  return
}

// -----

#q = affine_map<(t, s, d, e) -> (t, d)>
func.func @maps(%x: memref<4x4xf32>) {
  // expected-error @+1 {{has 3 maps for 4 operands}}
  tprt.attention %x, %x, %x into %x scale 1.0 maps [#q, #q, #q] : memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32> into memref<4x4xf32>
  return
}

// -----

#q = affine_map<(t, s, d) -> (t, d)>
func.func @loops(%x: memref<4x4xf32>) {
  // expected-error @+1 {{has 3 loops; expected 4 to 12}}
  tprt.attention %x, %x, %x into %x scale 1.0 maps [#q, #q, #q, #q] : memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32> into memref<4x4xf32>
  return
}

// -----

#q = affine_map<(t, s, d, e) -> (t, d)>
#k = affine_map<(t, s, d, e) -> (t, d)>
#v = affine_map<(t, s, d, e) -> (s, e)>
#o = affine_map<(t, s, d, e) -> (t, e)>
func.func @roles(%x: memref<4x4xf32>) {
  // expected-error @+1 {{indexes the key by loop 0 of (batches, row, column, depth, width)}}
  tprt.attention %x, %x, %x into %x scale 1.0 maps [#q, #k, #v, #o] : memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32> into memref<4x4xf32>
  return
}

// -----

#q = affine_map<(t, s, d, e) -> (t, d)>
#k = affine_map<(t, s, d, e) -> (s, d)>
#v = affine_map<(t, s, d, e) -> (s, e)>
#o = affine_map<(t, s, d, e) -> (t, e)>
func.func @sizes(%q: memref<4x4xf32>, %k: memref<3x5xf32>, %v: memref<3x4xf32>) {
  // expected-error @+1 {{has a key of size 5 along loop 2, which runs 4 times}}
  tprt.attention %q, %k, %v into %q scale 1.0 maps [#q, #k, #v, #o] : memref<4x4xf32>, memref<3x5xf32>, memref<3x4xf32> into memref<4x4xf32>
  return
}

// -----

#q = affine_map<(t, s, d, e) -> (t, d)>
#k = affine_map<(t, s, d, e) -> (s, d)>
#v = affine_map<(t, s, d, e) -> (s, e)>
#o = affine_map<(t, s, d, e) -> (t, e)>
func.func @types(%q: memref<4x4xf32>, %k: memref<3x4xbf16>) {
  // expected-error @+1 {{has a key of 'bf16' beside a query of 'f32'}}
  tprt.attention %q, %k, %k into %q scale 1.0 maps [#q, #k, #v, #o] : memref<4x4xf32>, memref<3x4xbf16>, memref<3x4xbf16> into memref<4x4xf32>
  return
}

// -----

#q = affine_map<(b, t, s, d, e) -> (t, d)>
#k = affine_map<(b, t, s, d, e) -> (s, d)>
#v = affine_map<(b, t, s, d, e) -> (s, e)>
#o = affine_map<(b, t, s, d, e) -> (t, e)>
func.func @unused(%x: memref<4x4xf32>) {
  // expected-error @+1 {{has a batch loop that indexes no operand}}
  tprt.attention %x, %x, %x into %x scale 1.0 maps [#q, #k, #v, #o] : memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32> into memref<4x4xf32>
  return
}

// -----

#q = affine_map<(b, t, s, d, e) -> (b, t, d)>
#k = affine_map<(b, t, s, d, e) -> (b, s, d)>
#v = affine_map<(b, t, s, d, e) -> (b, s, e)>
#n = affine_map<(b, t, s, d, e) -> ()>
#o = affine_map<(b, t, s, d, e) -> (b, t, e)>
#l = affine_map<(b, t, s, d, e) -> (b, t)>
// CHECK-LABEL: @blocks
// CHECK: tprt.attention_block %{{.+}}, %{{.+}}, %{{.+}} offset %{{.+}} into %{{.+}}, %{{.+}} scale 1.000000e+00 maps [{{.*}}] : memref<2x4x8xbf16>, memref<2x5x8xbf16>, memref<2x5x6xbf16> offset memref<i64> into memref<2x4x6xbf16>, memref<2x4xf32>
// CHECK: tprt.attention_block_gradient %{{.+}}, %{{.+}}, %{{.+}} gradient %{{.+}} lse %{{.+}} delta %{{.+}} offset %{{.+}} into %{{.+}}, %{{.+}}, %{{.+}} scale 1.000000e+00
func.func @blocks(%q: memref<2x4x8xbf16>, %k: memref<2x5x8xbf16>, %v: memref<2x5x6xbf16>, %n: memref<i64>, %o: memref<2x4x6xbf16>, %l: memref<2x4xf32>) {
  tprt.attention_block %q, %k, %v offset %n into %o, %l scale 1.0 maps [#q, #k, #v, #n, #o, #l]
    : memref<2x4x8xbf16>, memref<2x5x8xbf16>, memref<2x5x6xbf16> offset memref<i64> into memref<2x4x6xbf16>, memref<2x4xf32>
  tprt.attention_block_gradient %q, %k, %v gradient %o lse %l delta %l offset %n into %q, %k, %v scale 1.0
      maps [#q, #k, #v, #o, #l, #l, #n, #q, #k, #v]
    : memref<2x4x8xbf16>, memref<2x5x8xbf16>, memref<2x5x6xbf16> gradient memref<2x4x6xbf16> lse memref<2x4xf32> delta memref<2x4xf32>
      offset memref<i64> into memref<2x4x8xbf16>, memref<2x5x8xbf16>, memref<2x5x6xbf16>
  return
}

// -----

#q = affine_map<(t, s, d, e) -> (t, d)>
#k = affine_map<(t, s, d, e) -> (s, d)>
#v = affine_map<(t, s, d, e) -> (s, e)>
#o = affine_map<(t, s, d, e) -> (t, e)>
#l = affine_map<(t, s, d, e) -> (t)>
func.func @narrow_lse(%x: memref<4x4xbf16>, %l: memref<4xbf16>) {
  // expected-error @+1 {{has a log-sum-exp of 'bf16' beside a query of 'bf16'}}
  tprt.attention_block %x, %x, %x into %x, %l scale 1.0 maps [#q, #k, #v, #o, #l] : memref<4x4xbf16>, memref<4x4xbf16>, memref<4x4xbf16> into memref<4x4xbf16>, memref<4xbf16>
  return
}

// -----

#q = affine_map<(t, s, d, e) -> (t, d)>
#k = affine_map<(t, s, d, e) -> (s, d)>
#v = affine_map<(t, s, d, e) -> (s, e)>
#o = affine_map<(t, s, d, e) -> (t, e)>
#l = affine_map<(t, s, d, e) -> (s)>
func.func @lse_by_column(%x: memref<4x4xf32>, %l: memref<4xf32>) {
  // expected-error @+1 {{indexes the log-sum-exp without loop 0 of (batches, row, column, depth, width)}}
  tprt.attention_block %x, %x, %x into %x, %l scale 1.0 maps [#q, #k, #v, #o, #l] : memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32> into memref<4x4xf32>, memref<4xf32>
  return
}
