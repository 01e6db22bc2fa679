// RUN: tp-opt %s --tp-fuse-elementwise --split-input-file | FileCheck %s

// The bias becomes the contraction's initial value. The activation isn't fused with
// the contraction.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#bias = affine_map<(m, n) -> (n)>

// CHECK-LABEL: @linear
// CHECK-SAME: %[[X:.+]]: tensor<8x4xf32>, %[[W:.+]]: tensor<16x4xf32>, %[[B:.+]]: tensor<16xf32>
// CHECK: %[[INIT:.+]] = linalg.generic {{.*}} ins(%[[B]] : tensor<16xf32>)
// CHECK-NEXT: ^bb0(%[[E:.+]]: f32,
// CHECK-NEXT: linalg.yield %[[E]]
// CHECK: %[[Y:.+]] = linalg.generic {{.*}} ins(%[[X]], %[[W]] : {{.*}}) outs(%[[INIT]]
// CHECK: linalg.generic {{.*}} ins(%[[Y]] : tensor<8x16xf32>)
// CHECK: math.tanh
// CHECK: arith.mulf
// CHECK-NOT: linalg.generic
func.func @linear(%x: tensor<8x4xf32>, %w: tensor<16x4xf32>, %b: tensor<16xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %0 = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x4xf32>, tensor<16x4xf32>) outs(%init : tensor<8x16xf32>) {
  ^bb0(%a: f32, %c: f32, %acc: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x16xf32>
  %1 = linalg.generic {indexing_maps = [#id, #bias, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %b : tensor<8x16xf32>, tensor<16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<8x16xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1 : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.tanh %a : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%2 : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.mulf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}

// -----

// So it does where the rows were split in between, but not where the columns were.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>
#id3 = affine_map<(b, m, n) -> (b, m, n)>
#bias3 = affine_map<(b, m, n) -> (n)>

// CHECK-DAG: #[[BIAS:.+]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[ROW:.+]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: @rows
// CHECK-SAME: %[[X:.+]]: tensor<8x4xf32>, %[[W:.+]]: tensor<16x4xf32>, %[[B:.+]]: tensor<16xf32>
// CHECK: %[[INIT:.+]] = linalg.generic {indexing_maps = [#[[BIAS]], #{{.+}}], {{.*}} ins(%[[B]] : tensor<16xf32>) outs({{.*}} : tensor<8x16xf32>)
// CHECK: %[[Y:.+]] = linalg.generic {{.*}} ins(%[[X]], %[[W]] : {{.*}}) outs(%[[INIT]]
// CHECK: %[[R:.+]] = tensor.expand_shape %[[Y]] {{\[}}[0, 1], [2]] output_shape [2, 4, 16]
// CHECK-NEXT: return %[[R]]
func.func @rows(%x: tensor<8x4xf32>, %w: tensor<16x4xf32>, %b: tensor<16xf32>) -> tensor<2x4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %0 = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x4xf32>, tensor<16x4xf32>) outs(%init : tensor<8x16xf32>) {
  ^bb0(%a: f32, %c: f32, %acc: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x16xf32>
  %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [2, 4, 16] : tensor<8x16xf32> into tensor<2x4x16xf32>
  %e3 = tensor.empty() : tensor<2x4x16xf32>
  %2 = linalg.generic {indexing_maps = [#id3, #bias3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%1, %b : tensor<2x4x16xf32>, tensor<16xf32>) outs(%e3 : tensor<2x4x16xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<2x4x16xf32>
  return %2 : tensor<2x4x16xf32>
}

// CHECK-LABEL: @columns
// CHECK: linalg.fill
// CHECK: tensor.expand_shape
// CHECK: arith.addf
// CHECK: return
func.func @columns(%x: tensor<8x4xf32>, %w: tensor<16x4xf32>, %b: tensor<8xf32>) -> tensor<8x2x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %0 = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x4xf32>, tensor<16x4xf32>) outs(%init : tensor<8x16xf32>) {
  ^bb0(%a: f32, %c: f32, %acc: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x16xf32>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [8, 2, 8] : tensor<8x16xf32> into tensor<8x2x8xf32>
  %e3 = tensor.empty() : tensor<8x2x8xf32>
  %2 = linalg.generic {indexing_maps = [#id3, #bias3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%1, %b : tensor<8x2x8xf32>, tensor<8xf32>) outs(%e3 : tensor<8x2x8xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<8x2x8xf32>
  return %2 : tensor<8x2x8xf32>
}

// In f16 a separate sum would round a second time: the bias of the rows, a convolution's channels, is folded.

#rows3 = affine_map<(m, p, q) -> (m, 0, 0)>

// CHECK-LABEL: @narrow
// CHECK-SAME: %[[B:[^:]+]]: tensor<8x1x1xf16>
// CHECK: %[[V:.+]] = tensor.collapse_shape %[[B]] {{\[}}[0, 1, 2]] : tensor<8x1x1xf16> into tensor<8xf16>
// CHECK: %[[INIT:.+]] = linalg.generic {indexing_maps = [#[[ROW]], #{{.+}}], {{.*}} ins(%[[V]] : tensor<8xf16>)
// CHECK: %[[Y:.+]] = linalg.generic {{.*}} outs(%[[INIT]]
// CHECK: %[[R:.+]] = tensor.expand_shape %[[Y]] {{\[}}[0], [1, 2]] output_shape [8, 2, 8]
// CHECK-NEXT: return %[[R]]
func.func @narrow(%x: tensor<8x4xf16>, %w: tensor<16x4xf16>, %b: tensor<8x1x1xf16>) -> tensor<8x2x8xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<8x16xf16>
  %init = linalg.fill ins(%zero : f16) outs(%e : tensor<8x16xf16>) -> tensor<8x16xf16>
  %0 = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x4xf16>, tensor<16x4xf16>) outs(%init : tensor<8x16xf16>) {
  ^bb0(%a: f16, %c: f16, %acc: f16):
    %p = arith.mulf %a, %c : f16
    %s = arith.addf %acc, %p : f16
    linalg.yield %s : f16
  } -> tensor<8x16xf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [8, 2, 8] : tensor<8x16xf16> into tensor<8x2x8xf16>
  %e3 = tensor.empty() : tensor<8x2x8xf16>
  %2 = linalg.generic {indexing_maps = [#id3, #rows3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%1, %b : tensor<8x2x8xf16>, tensor<8x1x1xf16>) outs(%e3 : tensor<8x2x8xf16>) {
  ^bb0(%a: f16, %c: f16, %o: f16):
    %a32 = arith.extf %a : f16 to f32
    %c32 = arith.extf %c : f16 to f32
    %s = arith.addf %a32, %c32 : f32
    %r = arith.truncf %s : f32 to f16
    linalg.yield %r : f16
  } -> tensor<8x2x8xf16>
  return %2 : tensor<8x2x8xf16>
}

// -----

// An exponential that is read twice isn't computed twice, nor one per element of a
// broadcast; a cast is.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#id1 = affine_map<(i) -> (i)>

// CHECK-LABEL: @expensive
// CHECK: linalg.generic
// CHECK: arith.extf
// CHECK: math.exp
// CHECK: linalg.generic
// CHECK: arith.extf
// CHECK-NOT: math.exp
// CHECK: return
func.func @expensive(%x: tensor<8xf16>, %y: tensor<8x16xf32>) -> (tensor<8xf32>, tensor<8x16xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %e2 = tensor.empty() : tensor<8x16xf32>
  %0 = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf16>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f16, %o: f32):
    %t = arith.extf %a : f16 to f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
      ins(%0 : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #row, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y, %1, %0 : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>) outs(%e2 : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    %u = arith.addf %t, %c : f32
    linalg.yield %u : f32
  } -> tensor<8x16xf32>
  return %1, %2 : tensor<8xf32>, tensor<8x16xf32>
}

// -----

// Computed again in each reader, as that reads no more than the result would be: numbers less their row's maximum. A sum of two operands is stored.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: @again
// CHECK: linalg.generic {{.*}}ins(%arg0, %arg1 : tensor<8x16xbf16>, tensor<8xf32>)
// CHECK: arith.subf
// CHECK: math.exp
// CHECK: linalg.generic {{.*}}ins(%arg0, %arg1 : tensor<8x16xbf16>, tensor<8xf32>)
// CHECK: arith.subf
// CHECK: math.tanh
// CHECK: return
// CHECK-LABEL: @stored
// CHECK: %[[SUM:.+]] = linalg.generic {{.*}}ins(%arg0, %arg1
// CHECK: linalg.generic {{.*}}ins(%[[SUM]] :
// CHECK: linalg.generic {{.*}}ins(%[[SUM]] :
func.func @again(%x: tensor<8x16xbf16>, %m: tensor<8xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %e = tensor.empty() : tensor<8x16xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<8x16xbf16>, tensor<8xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: bf16, %b: f32, %o: f32):
    %t = arith.extf %a : bf16 to f32
    %u = arith.subf %t, %b : f32
    linalg.yield %u : f32
  } -> tensor<8x16xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.tanh %a : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  return %1, %2 : tensor<8x16xf32>, tensor<8x16xf32>
}
func.func @stored(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %e = tensor.empty() : tensor<8x16xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %u = arith.addf %a, %b : f32
    linalg.yield %u : f32
  } -> tensor<8x16xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.tanh %a : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  return %1, %2 : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// A chain of ops that each read the last two becomes one op, which computes each of them once.

#id = affine_map<(i) -> (i)>

// CHECK-LABEL: @chain
// CHECK: linalg.generic {{.*}}ins(%arg0, %arg1
// CHECK-COUNT-1: arith.mulf
// CHECK-COUNT-3: arith.divf
// CHECK-NOT: arith.divf
// CHECK: return
func.func @chain(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%0, %x : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%1, %0 : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%2, %1 : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %3 : tensor<8xf32>
}

// -----

// The bias of a convolution with groups: the dimension of its channels is joined with that of the groups.

#w = affine_map<(g, m, p, k) -> (g, m, k)>
#x = affine_map<(g, m, p, k) -> (g, k, p)>
#y = affine_map<(g, m, p, k) -> (g, m, p)>
#id2 = affine_map<(c, p) -> (c, p)>
#channel = affine_map<(c, p) -> (c)>

// CHECK-DAG: #[[GROUP:.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: @groups
// CHECK-SAME: %[[B:[^:]+]]: tensor<16xbf16>
// CHECK: %[[V:.+]] = tensor.expand_shape %[[B]] {{\[}}[0, 1]] output_shape [2, 8] : tensor<16xbf16> into tensor<2x8xbf16>
// CHECK: %[[INIT:.+]] = linalg.generic {indexing_maps = [#[[GROUP]], #{{.+}}], {{.*}} ins(%[[V]] : tensor<2x8xbf16>)
// CHECK: %[[Y:.+]] = linalg.generic {{.*}} outs(%[[INIT]]
// CHECK: %[[R:.+]] = tensor.collapse_shape %[[Y]] {{\[}}[0, 1], [2]]
// CHECK-NEXT: return %[[R]]
func.func @groups(%w: tensor<2x8x4xbf16>, %x: tensor<2x4x6xbf16>, %b: tensor<16xbf16>) -> tensor<16x6xbf16> {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<2x8x6xbf16>
  %init = linalg.fill ins(%zero : bf16) outs(%e : tensor<2x8x6xbf16>) -> tensor<2x8x6xbf16>
  %0 = linalg.generic {indexing_maps = [#w, #x, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%w, %x : tensor<2x8x4xbf16>, tensor<2x4x6xbf16>) outs(%init : tensor<2x8x6xbf16>) {
  ^bb0(%a: bf16, %c: bf16, %acc: bf16):
    %p = arith.mulf %a, %c : bf16
    %s = arith.addf %acc, %p : bf16
    linalg.yield %s : bf16
  } -> tensor<2x8x6xbf16>
  %1 = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<2x8x6xbf16> into tensor<16x6xbf16>
  %e2 = tensor.empty() : tensor<16x6xbf16>
  %2 = linalg.generic {indexing_maps = [#id2, #channel, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%1, %b : tensor<16x6xbf16>, tensor<16xbf16>) outs(%e2 : tensor<16x6xbf16>) {
  ^bb0(%a: bf16, %c: bf16, %o: bf16):
    %a32 = arith.extf %a : bf16 to f32
    %c32 = arith.extf %c : bf16 to f32
    %s = arith.addf %a32, %c32 : f32
    %r = arith.truncf %s : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<16x6xbf16>
  return %2 : tensor<16x6xbf16>
}

// -----

// The sum of a depthwise convolution is rounded after its bias is added.

#in = affine_map<(c, k) -> (c, k)>
#out = affine_map<(c, k) -> (c)>
#id1 = affine_map<(c) -> (c)>

// CHECK-LABEL: @depthwise
// CHECK: %[[SUM:.+]] = linalg.generic {{.*}}ins(%arg0 : tensor<8x3xbf16>)
// CHECK: linalg.generic {{.*}}ins(%[[SUM]], %arg1 : tensor<8xf32>, tensor<8xbf16>)
// CHECK-NEXT: ^bb0(%[[A:.+]]: f32, %[[C:.+]]: bf16, %{{.+}}: bf16):
// CHECK-NEXT: %[[C32:.+]] = arith.extf %[[C]] : bf16 to f32
// CHECK-NEXT: %[[S:.+]] = arith.addf %[[A]], %[[C32]] : f32
// CHECK-NEXT: arith.truncf %[[S]] : f32 to bf16
func.func @depthwise(%x: tensor<8x3xbf16>, %b: tensor<8xbf16>) -> tensor<8xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x3xbf16>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: bf16, %acc: f32):
    %a32 = arith.extf %a : bf16 to f32
    %s = arith.addf %acc, %a32 : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %e2 = tensor.empty() : tensor<8xbf16>
  %1 = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
      ins(%0 : tensor<8xf32>) outs(%e2 : tensor<8xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %r = arith.truncf %a : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<8xbf16>
  %2 = linalg.generic {indexing_maps = [#id1, #id1, #id1], iterator_types = ["parallel"]}
      ins(%1, %b : tensor<8xbf16>, tensor<8xbf16>) outs(%e2 : tensor<8xbf16>) {
  ^bb0(%a: bf16, %c: bf16, %o: bf16):
    %a32 = arith.extf %a : bf16 to f32
    %c32 = arith.extf %c : bf16 to f32
    %s = arith.addf %a32, %c32 : f32
    %r = arith.truncf %s : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<8xbf16>
  return %2 : tensor<8xbf16>
}
