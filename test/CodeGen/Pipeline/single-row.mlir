// RUN: tp-opt %s --split-input-file --tp-lower-to-kernels | FileCheck %s

// The norm of one token is one kernel: a block with 16 bytes of the row for each thread at a time.

// CHECK-LABEL: func.func @main
// CHECK: gpu.launch_func @kernels::@kernel_0 blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)
// CHECK-NOT: gpu.launch_func
// CHECK-NOT: tprt.fill
// CHECK: gpu.func @kernel_0
// CHECK-COUNT-3: vector.load {{.*}} vector<8xbf16>
// CHECK: vector.store {{.*}} vector<8xbf16>
func.func @main(%x: tensor<1x1x4096xbf16> {tp.name = "x"}) -> (tensor<1x1x4096xbf16> {tp.name = "y"}) {
  %w = nn.parameter "w" : tensor<4096xbf16>
  %0 = nn.rms_norm %x weight %w over 1 eps 1.0e-05 : (tensor<1x1x4096xbf16>, tensor<4096xbf16>) -> tensor<1x1x4096xbf16>
  return %0 : tensor<1x1x4096xbf16>
}

// -----

// One block would take too long for a row of four million.

// CHECK-LABEL: func.func @main
// CHECK: gpu.launch_func @kernels::@[[MAX:kernel_[0-9]+]] blocks in (%c1,
// CHECK: gpu.launch_func @kernels::@kernel_{{[0-9]+}} blocks in (%c4096,
// CHECK: gpu.launch_func @kernels::@kernel_{{[0-9]+}} blocks in (%c1,
// CHECK: gpu.launch_func @kernels::@kernel_{{[0-9]+}} blocks in (%c4096,
func.func @main(%x: tensor<1x4194304xf32> {tp.name = "x"}) -> (tensor<1x4194304xf32> {tp.name = "y"}) {
  %0 = nn.softmax %x dim 1 : tensor<1x4194304xf32>
  return %0 : tensor<1x4194304xf32>
}
