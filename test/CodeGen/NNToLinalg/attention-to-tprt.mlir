// RUN: tp-opt %s --convert-attention-to-tprt --split-input-file | FileCheck %s
// RUN: tp-opt %s --convert-attention-to-tprt=on-device --split-input-file | FileCheck %s --check-prefix=DEVICE
// RUN: tp-opt %s --convert-attention-to-tprt --convert-nn-to-linalg --fold-transpose-into-contraction --canonicalize --split-input-file | FileCheck %s --check-prefix=FOLD

// CHECK-DAG: #[[QUERY:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d4)>
// CHECK-DAG: #[[KEY:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d4)>
// CHECK-DAG: #[[VALUE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d5)>
// CHECK-DAG: #[[MASK:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, 0, 0, d3)>
// CHECK-DAG: #[[OUT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d5)>
// CHECK-LABEL: @masked
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<2x4x5x8xf32>, %[[K:[a-z0-9]+]]: tensor<2x4x7x8xf32>, %[[V:[a-z0-9]+]]: tensor<2x4x7x6xf32>, %[[M:[a-z0-9]+]]: tensor<2x1x1x7xi1>
// CHECK: %[[INIT:.+]] = tensor.empty() : tensor<2x4x5x6xf32>
// CHECK: tprt.attention %[[Q]], %[[K]], %[[V]] mask %[[M]] into %[[INIT]] scale 5.000000e-01 maps [#[[QUERY]], #[[KEY]], #[[VALUE]], #[[MASK]], #[[OUT]]]
func.func @masked(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x6xf32>,
                  %mask: tensor<2x1x1x7xi1>) -> tensor<2x4x5x6xf32> {
  %0 = nn.attention %q, %k, %v mask %mask scale 0.5
    : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x6xf32>, tensor<2x1x1x7xi1>) -> tensor<2x4x5x6xf32>
  return %0 : tensor<2x4x5x6xf32>
}

// -----

// Grouped heads: the group is a batch that key and value lack.

// CHECK-DAG: #[[KEY:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d4, d5)>
// CHECK-DAG: #[[VALUE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d4, d6)>
// CHECK-LABEL: @grouped_causal
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<2x4x5x8xbf16>, %[[K:[a-z0-9]+]]: tensor<2x2x5x8xbf16>
// CHECK: %[[GROUPED:.+]] = tensor.expand_shape %[[Q]] {{\[}}[0], [1, 2], [3], [4]]
// CHECK: tprt.attention causal %[[GROUPED]], %[[K]], {{.*}} maps [#{{.+}}, #[[KEY]], #[[VALUE]], #{{.+}}]
// CHECK: tensor.collapse_shape %{{.+}} {{\[}}[0], [1, 2], [3], [4]] {{.*}} into tensor<2x4x5x8xbf16>
func.func @grouped_causal(%q: tensor<2x4x5x8xbf16>, %k: tensor<2x2x5x8xbf16>, %v: tensor<2x2x5x8xbf16>) -> tensor<2x4x5x8xbf16> {
  %0 = nn.attention causal %q, %k, %v scale 0.5
    : (tensor<2x4x5x8xbf16>, tensor<2x2x5x8xbf16>, tensor<2x2x5x8xbf16>) -> tensor<2x4x5x8xbf16>
  return %0 : tensor<2x4x5x8xbf16>
}

// -----

// Key and value that repeat each head for its group are read without the repetition, unless only one of them does.

// FOLD-LABEL: @repeated
// FOLD-SAME: %{{[a-z0-9]+}}: tensor<2x4x5x8xf32>, %[[K:[a-z0-9]+]]: tensor<2x2x7x8xf32>, %[[V:[a-z0-9]+]]: tensor<2x2x7x6xf32>
// FOLD-NOT: linalg.generic
// FOLD: tprt.attention %{{.+}}, %[[K]], %[[V]] mask
func.func @repeated(%q: tensor<2x4x5x8xf32>, %k: tensor<2x2x7x8xf32>, %v: tensor<2x2x7x6xf32>, %mask: tensor<2x1x5x7xi1>) -> tensor<2x4x5x6xf32> {
  %k0 = nn.reshape %k : tensor<2x2x7x8xf32> -> tensor<2x2x1x7x8xf32>
  %k1 = nn.broadcast %k0 : tensor<2x2x1x7x8xf32> -> tensor<2x2x2x7x8xf32>
  %k2 = nn.reshape %k1 : tensor<2x2x2x7x8xf32> -> tensor<2x4x7x8xf32>
  %v0 = nn.reshape %v : tensor<2x2x7x6xf32> -> tensor<2x2x1x7x6xf32>
  %v1 = nn.broadcast %v0 : tensor<2x2x1x7x6xf32> -> tensor<2x2x2x7x6xf32>
  %v2 = nn.reshape %v1 : tensor<2x2x2x7x6xf32> -> tensor<2x4x7x6xf32>
  %0 = nn.attention %q, %k2, %v2 mask %mask scale 0.5
    : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x6xf32>, tensor<2x1x5x7xi1>) -> tensor<2x4x5x6xf32>
  return %0 : tensor<2x4x5x6xf32>
}

// FOLD-LABEL: @half_repeated
// FOLD-SAME: %[[V:[a-z0-9]+]]: tensor<2x4x7x6xf32>
// FOLD: linalg.generic
// FOLD: tprt.attention %{{.+}}, %{{.+}}, %[[V]] into
func.func @half_repeated(%q: tensor<2x4x5x8xf32>, %k: tensor<2x2x7x8xf32>, %v: tensor<2x4x7x6xf32>) -> tensor<2x4x5x6xf32> {
  %k0 = nn.reshape %k : tensor<2x2x7x8xf32> -> tensor<2x2x1x7x8xf32>
  %k1 = nn.broadcast %k0 : tensor<2x2x1x7x8xf32> -> tensor<2x2x2x7x8xf32>
  %k2 = nn.reshape %k1 : tensor<2x2x2x7x8xf32> -> tensor<2x4x7x8xf32>
  %0 = nn.attention %q, %k2, %v scale 0.5
    : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x6xf32>) -> tensor<2x4x5x6xf32>
  return %0 : tensor<2x4x5x6xf32>
}

// -----

// Heads are split and joined without moving anything, in groups too.

// FOLD-DAG: #[[QUERY:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d3, d1, d2, d5)>
// FOLD-DAG: #[[KEY:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d1, d5)>
// FOLD-DAG: #[[OUT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d3, d1, d2, d6)>
// FOLD-LABEL: @heads
// FOLD-NOT: linalg.transpose
// FOLD-NOT: linalg.generic
// FOLD: tprt.attention {{.*}} maps [#[[QUERY]], #[[KEY]], #{{.+}}, #[[OUT]]]
// FOLD-NOT: linalg.transpose
// FOLD-NOT: linalg.generic
// FOLD: return
func.func @heads(%q: tensor<2x5x32xf32>, %k: tensor<2x5x16xf32>, %v: tensor<2x5x16xf32>) -> tensor<2x5x32xf32> {
  %q0 = nn.reshape %q : tensor<2x5x32xf32> -> tensor<2x5x4x8xf32>
  %k0 = nn.reshape %k : tensor<2x5x16xf32> -> tensor<2x5x2x8xf32>
  %v0 = nn.reshape %v : tensor<2x5x16xf32> -> tensor<2x5x2x8xf32>
  %q1 = nn.transpose %q0 [0, 2, 1, 3] : tensor<2x5x4x8xf32> -> tensor<2x4x5x8xf32>
  %k1 = nn.transpose %k0 [0, 2, 1, 3] : tensor<2x5x2x8xf32> -> tensor<2x2x5x8xf32>
  %v1 = nn.transpose %v0 [0, 2, 1, 3] : tensor<2x5x2x8xf32> -> tensor<2x2x5x8xf32>
  %0 = nn.attention causal %q1, %k1, %v1 scale 0.5
    : (tensor<2x4x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>) -> tensor<2x4x5x8xf32>
  %1 = nn.transpose %0 [0, 2, 1, 3] : tensor<2x4x5x8xf32> -> tensor<2x5x4x8xf32>
  %2 = nn.reshape %1 : tensor<2x5x4x8xf32> -> tensor<2x5x32xf32>
  return %2 : tensor<2x5x32xf32>
}

// -----

// Gradients are read and written in the layout of linear layers, too. Those of the heads of a group are summed.

// FOLD-DAG: #[[QUERY:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d3, d1, d2, d5)>
// FOLD-DAG: #[[KEY:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d1, d5)>
// FOLD-DAG: #[[VALUE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d1, d6)>
// FOLD-DAG: #[[OUT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d3, d1, d2, d6)>
// FOLD-DAG: #[[DKEY:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d4, d5)>
// FOLD-LABEL: @gradient
// FOLD-NOT: linalg.transpose
// FOLD-NOT: linalg.generic
// FOLD: %[[R:.+]]:3 = tprt.attention_gradient causal {{.*}} maps [#[[QUERY]], #[[KEY]], #[[VALUE]], #[[OUT]], #[[QUERY]], #[[DKEY]], #{{.+}}]
// FOLD-SAME: into tensor<2x5x2x2x8xf32>, tensor<2x2x2x5x8xf32>, tensor<2x2x2x5x8xf32>
// FOLD: linalg.generic {{.*}}"reduction"{{.*}} ins(%[[R]]#1
func.func @gradient(%q: tensor<2x5x32xf32>, %k: tensor<2x5x16xf32>, %v: tensor<2x5x16xf32>, %g: tensor<2x5x32xf32>) -> (tensor<2x5x32xf32>, tensor<2x2x5x8xf32>) {
  %q0 = nn.reshape %q : tensor<2x5x32xf32> -> tensor<2x5x4x8xf32>
  %k0 = nn.reshape %k : tensor<2x5x16xf32> -> tensor<2x5x2x8xf32>
  %v0 = nn.reshape %v : tensor<2x5x16xf32> -> tensor<2x5x2x8xf32>
  %g0 = nn.reshape %g : tensor<2x5x32xf32> -> tensor<2x5x4x8xf32>
  %q1 = nn.transpose %q0 [0, 2, 1, 3] : tensor<2x5x4x8xf32> -> tensor<2x4x5x8xf32>
  %k1 = nn.transpose %k0 [0, 2, 1, 3] : tensor<2x5x2x8xf32> -> tensor<2x2x5x8xf32>
  %v1 = nn.transpose %v0 [0, 2, 1, 3] : tensor<2x5x2x8xf32> -> tensor<2x2x5x8xf32>
  %g1 = nn.transpose %g0 [0, 2, 1, 3] : tensor<2x5x4x8xf32> -> tensor<2x4x5x8xf32>
  %0:3 = nn.attention_gradient causal %q1, %k1, %v1 gradient %g1 scale 0.5
    : (tensor<2x4x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x4x5x8xf32>) -> (tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>)
  %1 = nn.transpose %0#0 [0, 2, 1, 3] : tensor<2x4x5x8xf32> -> tensor<2x5x4x8xf32>
  %2 = nn.reshape %1 : tensor<2x5x4x8xf32> -> tensor<2x5x32xf32>
  %3 = nn.reshape %0#1 : tensor<2x4x5x8xf32> -> tensor<2x2x2x5x8xf32>
  %4 = nn.reduce sum %3 dims [2] : tensor<2x2x2x5x8xf32> -> tensor<2x2x5x8xf32>
  return %2, %4 : tensor<2x5x32xf32>, tensor<2x2x5x8xf32>
}

// -----

// More batches than the runtime has loops for: spelled out.

// CHECK-LABEL: @many
// CHECK: nn.attention
// FOLD-LABEL: @many
// FOLD: math.exp
func.func @many(%q: tensor<1x1x1x1x1x1x1x1x2x3x4xf32>) -> tensor<1x1x1x1x1x1x1x1x2x3x4xf32> {
  %0 = nn.attention %q, %q, %q scale 0.5
    : (tensor<1x1x1x1x1x1x1x1x2x3x4xf32>, tensor<1x1x1x1x1x1x1x1x2x3x4xf32>, tensor<1x1x1x1x1x1x1x1x2x3x4xf32>) -> tensor<1x1x1x1x1x1x1x1x2x3x4xf32>
  return %0 : tensor<1x1x1x1x1x1x1x1x2x3x4xf32>
}

// -----

// CHECK-LABEL: @many_gradient
// CHECK: nn.attention_gradient
// FOLD-LABEL: @many_gradient
// FOLD: math.exp
func.func @many_gradient(%q: tensor<1x1x1x1x1x1x1x1x2x3x4xf32>) -> tensor<1x1x1x1x1x1x1x1x2x3x4xf32> {
  %0:3 = nn.attention_gradient %q, %q, %q gradient %q scale 0.5
    : (tensor<1x1x1x1x1x1x1x1x2x3x4xf32>, tensor<1x1x1x1x1x1x1x1x2x3x4xf32>, tensor<1x1x1x1x1x1x1x1x2x3x4xf32>, tensor<1x1x1x1x1x1x1x1x2x3x4xf32>)
      -> (tensor<1x1x1x1x1x1x1x1x2x3x4xf32>, tensor<1x1x1x1x1x1x1x1x2x3x4xf32>, tensor<1x1x1x1x1x1x1x1x2x3x4xf32>)
  return %0#1 : tensor<1x1x1x1x1x1x1x1x2x3x4xf32>
}

// -----

// Attention to a block: an element per row drops its last dimension. The runtime does it on the host only.

// CHECK-DAG: #[[NONE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> ()>
// CHECK-DAG: #[[LSE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>
// CHECK-LABEL: @blocks
// CHECK: %[[R:.+]]:2 = tprt.attention_block %{{.+}}, %{{.+}}, %{{.+}} offset %{{.+}} into %{{.+}}, %{{.+}} scale 5.000000e-01 maps [#{{.+}}, #{{.+}}, #{{.+}}, #[[NONE]], #{{.+}}, #[[LSE]]]
// CHECK-SAME: -> tensor<2x2x2x5x8xf32>, tensor<2x2x2x5xf32>
// CHECK: tprt.attention_block_gradient %{{.+}}, %{{.+}}, %{{.+}} gradient %{{.+}} lse %{{.+}} delta %{{.+}} offset %{{.+}} into %{{.+}}, %{{.+}}, %{{.+}} scale 5.000000e-01
// CHECK-SAME: lse tensor<2x2x2x5xf32> delta tensor<2x2x2x5xf32>
// DEVICE-LABEL: @blocks
// DEVICE: nn.attention_block
// DEVICE: nn.attention_block_gradient
func.func @blocks(%q: tensor<2x4x5x8xf32>, %k: tensor<2x2x6x8xf32>, %o: tensor<i64>) -> (tensor<2x4x5x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) {
  %0:2 = nn.attention_block %q, %k, %k offset %o scale 0.5
    : (tensor<2x4x5x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<i64>) -> (tensor<2x4x5x8xf32>, tensor<2x4x5x1xf32>)
  %1:3 = nn.attention_block_gradient %q, %k, %k gradient %0#0 lse %0#1 delta %0#1 offset %o scale 0.5
    : (tensor<2x4x5x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5x1xf32>, tensor<2x4x5x1xf32>, tensor<i64>)
      -> (tensor<2x4x5x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>)
  return %1#0, %1#1, %1#2 : tensor<2x4x5x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>
}
