// RUN: tp-opt %s --convert-nn-to-linalg --fold-transpose-into-contraction --canonicalize --split-input-file | FileCheck %s

// Attention reads and writes (batch, length, heads, size): no data moves.

// CHECK-DAG: #[[QUERY:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d4)>
// CHECK-DAG: #[[KEY:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d1, d4)>
// CHECK-DAG: #[[RESULT:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d3)>
// CHECK-LABEL: @attention
// CHECK: linalg.generic {indexing_maps = [#[[QUERY]], #[[KEY]], #{{.+}}]
// CHECK: linalg.generic {indexing_maps = [#{{.+}}, #{{.+}}, #[[RESULT]]]
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @attention(%0: tensor<2x5x4x8xf32>, %1: tensor<2x5x4x8xf32>, %2: tensor<2x5x4x8xf32>) -> tensor<2x5x32xf32> {
  %q = nn.transpose %0 [0, 2, 1, 3] : tensor<2x5x4x8xf32> -> tensor<2x4x5x8xf32>
  %k = nn.transpose %1 [0, 2, 1, 3] : tensor<2x5x4x8xf32> -> tensor<2x4x5x8xf32>
  %v = nn.transpose %2 [0, 2, 1, 3] : tensor<2x5x4x8xf32> -> tensor<2x4x5x8xf32>
  %a = nn.attention %q, %k, %v scale 0.5 : (tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>) -> tensor<2x4x5x8xf32>
  %t = nn.transpose %a [0, 2, 1, 3] : tensor<2x4x5x8xf32> -> tensor<2x5x4x8xf32>
  %r = nn.reshape %t : tensor<2x5x4x8xf32> -> tensor<2x5x32xf32>
  return %r : tensor<2x5x32xf32>
}

// -----

// The same across the reshapes of grouped heads.

// CHECK-DAG: #[[QUERY:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d3, d1, d2, d5)>
// CHECK-DAG: #[[RESULT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d3, d1, d2, d4)>
// CHECK-LABEL: @grouped
// CHECK: linalg.generic {indexing_maps = [#[[QUERY]], #{{.+}}, #{{.+}}]
// CHECK: linalg.generic {indexing_maps = [#{{.+}}, #{{.+}}, #[[RESULT]]]
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @grouped(%0: tensor<2x5x4x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>) -> tensor<2x5x4x8xf32> {
  %q = nn.transpose %0 [0, 2, 1, 3] : tensor<2x5x4x8xf32> -> tensor<2x4x5x8xf32>
  %a = nn.attention %q, %k, %v scale 0.5 : (tensor<2x4x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>) -> tensor<2x4x5x8xf32>
  %t = nn.transpose %a [0, 2, 1, 3] : tensor<2x4x5x8xf32> -> tensor<2x5x4x8xf32>
  return %t : tensor<2x5x4x8xf32>
}

// -----

// Not where GEMM would lose its contiguous dimension: heads would be innermost.

// CHECK-LABEL: @innermost_batch
// CHECK: linalg.transpose
// CHECK: "reduction"
func.func @innermost_batch(%x: tensor<5x8x4xf32>, %y: tensor<4x8x6xf32>) -> tensor<4x5x6xf32> {
  %0 = tensor.empty() : tensor<4x5x8xf32>
  %t = linalg.transpose ins(%x : tensor<5x8x4xf32>) outs(%0 : tensor<4x5x8xf32>) permutation = [2, 0, 1]
  %r = nn.matmul %t, %y : (tensor<4x5x8xf32>, tensor<4x8x6xf32>) -> tensor<4x5x6xf32>
  return %r : tensor<4x5x6xf32>
}

// -----

// A result that has another user is left in its layout.

// CHECK-LABEL: @two_users
// CHECK: "reduction"
// CHECK: linalg.generic {{.*}}"parallel"]} ins({{.*}} : tensor<2x4x6xf32>) outs({{.*}} : tensor<4x2x6xf32>)
func.func @two_users(%x: tensor<2x4x8xf32>, %y: tensor<2x8x6xf32>) -> (tensor<2x4x6xf32>, tensor<4x2x6xf32>) {
  %0 = nn.matmul %x, %y : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %1 = nn.transpose %0 [1, 0, 2] : tensor<2x4x6xf32> -> tensor<4x2x6xf32>
  return %0, %1 : tensor<2x4x6xf32>, tensor<4x2x6xf32>
}
