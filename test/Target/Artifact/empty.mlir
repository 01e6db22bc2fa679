// Tensors without elements, as ranks have them whose block is empty, through every kind of
// op. Sums over nothing are the identity of the reduction, products over nothing are 0.

// REQUIRES: tp-compile, tp-run
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: tp-compile %s -o empty.tpx
// RUN: %python %S/Inputs/empty.py
// RUN: tp-run empty.tpx --input x=x.npy --input e=e.npy --input w=w.npy --input w0=w0.npy --input xk0=xk0.npy \
// RUN:     --input wk0=wk0.npy --input bias=bias.npy --input q=q.npy --input q0=q0.npy --input kv0=kv0.npy \
// RUN:     --input ids0=ids0.npy --input h=h.npy --input hw=hw.npy | FileCheck %s

// CHECK-DAG: linear_rows: 2x0x5xf32 = []
// CHECK-DAG: linear_columns: 2x3x0xf32 = []
// CHECK-DAG: linear_sum: 3x5xf32 = [0, 0, 0, 0, 0, 0,
// CHECK-DAG: linear_bias: 3x5xf32 = [0, 1, 2, 3, 4, 0,
// CHECK-DAG: linear_f16: 3x5xf16 = [0, 0, 0, 0, 0, 0,
// CHECK-DAG: matmul: 3x3xf32 = [0, 0, 0, 0, 0, 0,
// CHECK-DAG: attention_heads: 2x0x3x4xf32 = []
// CHECK-DAG: attention_keys: 2x2x3x4xf32 = [0, 0, 0, 0, 0, 0,
// CHECK-DAG: embedding: 2x0x4xf32 = []
// CHECK-DAG: gather: 2x0x4xf32 = []
// CHECK-DAG: index_select: 2x0x4xf32 = []
// CHECK-DAG: argmax: 2x0xi64 = []
// CHECK-DAG: sum: 2x4xf32 = [0, 0, 0, 0, 0, 0,
// CHECK-DAG: max: 2x4xf32 = [-inf, -inf, -inf, -inf, -inf, -inf,
// CHECK-DAG: min: 2x4xf32 = [inf, inf, inf, inf, inf, inf,
// CHECK-DAG: product: 2x4xf32 = [1, 1, 1, 1, 1, 1,
// CHECK-DAG: mean: 2x4xf32 = [nan, nan, nan, nan, nan, nan,
// CHECK-DAG: cross_entropy: f32 = [0]
// CHECK-DAG: layer_norm: 2x0x4xf32 = []
// CHECK-DAG: softmax: 2x0x4xf32 = []
// CHECK-DAG: softmax_empty: 2x0x4xf32 = []
// CHECK-DAG: concat: 2x3x4xf32 = [0, 1, 2, 3, 4, 0,
// CHECK-DAG: reshape: 2x0x2x2xf32 = []
// CHECK-DAG: transpose: 0x2x4xf32 = []
// CHECK-DAG: slice: 2x0x4xf32 = []
// CHECK-DAG: elementwise: 2x0x4xf32 = []

func.func @main(
    %x: tensor<2x3x4xf32> {tp.name = "x"},
    %e: tensor<2x0x4xf32> {tp.name = "e"},
    %w: tensor<5x4xf32> {tp.name = "w"},
    %w0: tensor<0x4xf32> {tp.name = "w0"},
    %xk0: tensor<3x0xf32> {tp.name = "xk0"},
    %wk0: tensor<5x0xf32> {tp.name = "wk0"},
    %bias: tensor<5xf32> {tp.name = "bias"},
    %q: tensor<2x2x3x4xf32> {tp.name = "q"},
    %q0: tensor<2x0x3x4xf32> {tp.name = "q0"},
    %kv0: tensor<2x2x0x4xf32> {tp.name = "kv0"},
    %ids0: tensor<2x0xi64> {tp.name = "ids0"},
    %h: tensor<3x0xf16> {tp.name = "h"},
    %hw: tensor<5x0xf16> {tp.name = "hw"}) -> (tensor<2x0x5xf32> {tp.name = "linear_rows"}, tensor<2x3x0xf32> {tp.name = "linear_columns"},
          tensor<3x5xf32> {tp.name = "linear_sum"}, tensor<3x5xf32> {tp.name = "linear_bias"},
          tensor<2x0x3x4xf32> {tp.name = "attention_heads"}, tensor<2x2x3x4xf32> {tp.name = "attention_keys"},
          tensor<2x0x4xf32> {tp.name = "embedding"}, tensor<2x4xf32> {tp.name = "sum"}, tensor<2x4xf32> {tp.name = "max"}, tensor<2x4xf32> {tp.name = "min"}, tensor<2x4xf32> {tp.name = "product"},
          tensor<2x4xf32> {tp.name = "mean"},
          tensor<2x0x4xf32> {tp.name = "layer_norm"}, tensor<2x0x4xf32> {tp.name = "softmax"}, tensor<2x0x4xf32> {tp.name = "softmax_empty"}, tensor<2x3x4xf32> {tp.name = "concat"},
          tensor<2x0x2x2xf32> {tp.name = "reshape"}, tensor<0x2x4xf32> {tp.name = "transpose"}, tensor<2x0x4xf32> {tp.name = "slice"}, tensor<2x0x4xf32> {tp.name = "elementwise"},
          tensor<3x5xf16> {tp.name = "linear_f16"}, tensor<f32> {tp.name = "cross_entropy"}, tensor<3x3xf32> {tp.name = "matmul"}, tensor<2x0xi64> {tp.name = "argmax"}, tensor<2x0x4xf32> {tp.name = "gather"}, tensor<2x0x4xf32> {tp.name = "index_select"}) {
  %a = nn.linear %e, %w : (tensor<2x0x4xf32>, tensor<5x4xf32>) -> tensor<2x0x5xf32>
  %b = nn.linear %x, %w0 : (tensor<2x3x4xf32>, tensor<0x4xf32>) -> tensor<2x3x0xf32>
  %c = nn.linear %xk0, %wk0 : (tensor<3x0xf32>, tensor<5x0xf32>) -> tensor<3x5xf32>
  %d0 = nn.linear %xk0, %wk0 : (tensor<3x0xf32>, tensor<5x0xf32>) -> tensor<3x5xf32>
  %d = nn.add %d0, %bias : (tensor<3x5xf32>, tensor<5xf32>) -> tensor<3x5xf32>
  %f = nn.attention %q0, %q0, %q0 scale 0.5 : (tensor<2x0x3x4xf32>, tensor<2x0x3x4xf32>, tensor<2x0x3x4xf32>) -> tensor<2x0x3x4xf32>
  %g = nn.attention %q, %kv0, %kv0 scale 0.5 : (tensor<2x2x3x4xf32>, tensor<2x2x0x4xf32>, tensor<2x2x0x4xf32>) -> tensor<2x2x3x4xf32>
  %i = nn.embedding %ids0, %w : (tensor<2x0xi64>, tensor<5x4xf32>) -> tensor<2x0x4xf32>
  %j = nn.reduce sum %e dims [1] : tensor<2x0x4xf32> -> tensor<2x4xf32>
  %k = nn.reduce max %e dims [1] : tensor<2x0x4xf32> -> tensor<2x4xf32>
  %l = nn.reduce min %e dims [1] : tensor<2x0x4xf32> -> tensor<2x4xf32>
  %m = nn.reduce product %e dims [1] : tensor<2x0x4xf32> -> tensor<2x4xf32>
  %n = nn.reduce mean %e dims [1] : tensor<2x0x4xf32> -> tensor<2x4xf32>
  %o = nn.layer_norm %e over 1 eps 1.0e-5 : (tensor<2x0x4xf32>) -> tensor<2x0x4xf32>
  %p = nn.softmax %e dim 2 : tensor<2x0x4xf32>
  %r = nn.softmax %e dim 1 : tensor<2x0x4xf32>
  %s = nn.concat %e, %x dim 1 : (tensor<2x0x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %t = nn.reshape %e : tensor<2x0x4xf32> -> tensor<2x0x2x2xf32>
  %u = nn.transpose %e [1, 0, 2] : tensor<2x0x4xf32> -> tensor<0x2x4xf32>
  %v = nn.slice %x dim 1 start 3 step 1 : tensor<2x3x4xf32> -> tensor<2x0x4xf32>
  %y0 = nn.add %e, %v : (tensor<2x0x4xf32>, tensor<2x0x4xf32>) -> tensor<2x0x4xf32>
  %y = nn.gelu %y0 : tensor<2x0x4xf32>
  %z = nn.linear %h, %hw : (tensor<3x0xf16>, tensor<5x0xf16>) -> tensor<3x5xf16>
  %t0 = nn.reshape %ids0 : tensor<2x0xi64> -> tensor<0xi64>
  %l0 = nn.constant dense<1.0> : tensor<0x5xf32>
  %aa = nn.cross_entropy sum %l0, %t0 ignore -100 smoothing 0.0 : (tensor<0x5xf32>, tensor<0xi64>) -> tensor<f32>
  %kt = nn.transpose %xk0 [1, 0] : tensor<3x0xf32> -> tensor<0x3xf32>
  %bb = nn.matmul %xk0, %kt : (tensor<3x0xf32>, tensor<0x3xf32>) -> tensor<3x3xf32>
  %cc = nn.argmax %e dim 2 : tensor<2x0x4xf32> -> tensor<2x0xi64>
  %i0 = nn.constant dense<0> : tensor<2x0x4xi64>
  %dd = nn.gather %x, %i0 dim 1 : (tensor<2x3x4xf32>, tensor<2x0x4xi64>) -> tensor<2x0x4xf32>
  %ee = nn.index_select %x, %t0 dim 1 : (tensor<2x3x4xf32>, tensor<0xi64>) -> tensor<2x0x4xf32>
  return %a, %b, %c, %d, %f, %g, %i, %j, %k, %l, %m, %n, %o, %p, %r, %s, %t, %u, %v, %y, %z, %aa, %bb, %cc, %dd, %ee : tensor<2x0x5xf32>, tensor<2x3x0xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<2x0x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x0x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x0x4xf32>, tensor<2x0x4xf32>, tensor<2x0x4xf32>, tensor<2x3x4xf32>, tensor<2x0x2x2xf32>, tensor<0x2x4xf32>, tensor<2x0x4xf32>, tensor<2x0x4xf32>, tensor<3x5xf16>, tensor<f32>, tensor<3x3xf32>, tensor<2x0xi64>, tensor<2x0x4xf32>, tensor<2x0x4xf32>
}
