// RUN: tp-opt %s --tp-lower-to-kernels | FileCheck %s

// The runtime gets addresses on the device: those of copies of constants.

// CHECK-LABEL: func.func @main
// CHECK-NOT: memref.get_global
// CHECK: gpu.launch_func @kernels::@[[COPY:.+]] blocks
// CHECK-NOT: memref.get_global
// CHECK: tprt.attention
// CHECK: gpu.module @kernels
// CHECK: memref.global
// CHECK: gpu.func @[[COPY]](
// CHECK: memref.get_global
func.func @main(%q: tensor<1x2x3x8xf32> {tp.name = "q"}, %k: tensor<1x2x3x8xf32> {tp.name = "k"}) -> (tensor<1x2x3x8xf32> {tp.name = "y"}) {
  %mask = nn.constant dense<[[[[true, false, true], [true, true, false], [true, true, true]]]]> : tensor<1x1x3x3xi1>
  %y = nn.attention %q, %k, %k mask %mask scale 0.5
    : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x1x3x3xi1>) -> tensor<1x2x3x8xf32>
  return %y : tensor<1x2x3x8xf32>
}
