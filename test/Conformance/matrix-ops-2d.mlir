// The assertions of PyTorch's test_matrix_ops.py about Partial operands over two mesh dimensions.
// RUN: tp-opt %s --tp-parallelize | FileCheck %s --implicit-check-not=tp.all_ --implicit-check-not=tp.reduce_scatter --implicit-check-not=tp.exchange --implicit-check-not=tp.permute
// RUN: tp-opt %s --tp-propagate | FileCheck %s --check-prefix=PLACED

tp.mesh @mesh(dp = 2, tp = 2)

// Each operand Partial over one of them: none, and the product is Partial over both; 1 for the result.
// CHECK-LABEL: func.func @each
// PLACED-LABEL: func.func @each
// PLACED: nn.matmul {{.*}}partial = {{{(dp: sum, tp: sum|tp: sum, dp: sum)}}}
// CHECK: nn.matmul
// CHECK: tp.all_reduce sum %{{.*}} over @mesh {dp, tp}
func.func @each(%x: tensor<8x4xf32>, %y: tensor<4x8xf32>) -> tensor<8x8xf32> {
  %l = tp.to_local %x as <@mesh, [{}, {}]> : tensor<8x4xf32> -> tensor<8x4xf32>
  %a = tp.from_local %l as <@mesh, [{}, {}], partial = {dp: sum}> : tensor<8x4xf32> -> tensor<8x4xf32>
  %m = tp.to_local %y as <@mesh, [{}, {}]> : tensor<4x8xf32> -> tensor<4x8xf32>
  %b = tp.from_local %m as <@mesh, [{}, {}], partial = {tp: sum}> : tensor<4x8xf32> -> tensor<4x8xf32>
  %z = nn.matmul %a, %b : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %z : tensor<8x8xf32>
}

// Both Partial over both: PyTorch reduces one of them over each dimension, 2 collectives; here both dimensions are one.
// CHECK-LABEL: func.func @both
// CHECK: tp.all_reduce sum %{{.*}} over @mesh {dp, tp}
// CHECK: nn.matmul
// CHECK: tp.all_reduce sum %{{.*}} over @mesh {dp, tp}
func.func @both(%x: tensor<8x4xf32>, %y: tensor<4x8xf32>) -> tensor<8x8xf32> {
  %l = tp.to_local %x as <@mesh, [{}, {}]> : tensor<8x4xf32> -> tensor<8x4xf32>
  %a = tp.from_local %l as <@mesh, [{}, {}], partial = {dp: sum, tp: sum}> : tensor<8x4xf32> -> tensor<8x4xf32>
  %m = tp.to_local %y as <@mesh, [{}, {}]> : tensor<4x8xf32> -> tensor<4x8xf32>
  %b = tp.from_local %m as <@mesh, [{}, {}], partial = {dp: sum, tp: sum}> : tensor<4x8xf32> -> tensor<4x8xf32>
  %z = nn.matmul %a, %b : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %z : tensor<8x8xf32>
}
