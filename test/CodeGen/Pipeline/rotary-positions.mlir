// RUN: tp-opt %s --tp-lower-to-kernels | FileCheck %s

// Rotary positions are one kernel, transposition included: a thread has 16 bytes of either half of a vector.
// Threads of a block have all heads of a token, which share its cosines and sines.

// CHECK-LABEL: func.func @main
// CHECK-COUNT-1: gpu.launch_func
// CHECK-NOT: gpu.launch_func
// CHECK: arith.remui %{{.*}}, %c64 : index
// CHECK: arith.remui %{{.*}}, %c4 : index
// CHECK-COUNT-6: vector.load {{.*}} vector<8xbf16>
// CHECK-COUNT-2: vector.store {{.*}} vector<8xbf16>
// CHECK-NOT: memref.load
func.func @main(%x: tensor<1x64x4x128xbf16> {tp.name = "x"}, %cos: tensor<64x128xbf16> {tp.name = "cos"}, %sin: tensor<64x128xbf16> {tp.name = "sin"})
    -> (tensor<1x4x64x128xbf16> {tp.name = "y"}) {
  %0 = nn.transpose %x [0, 2, 1, 3] : tensor<1x64x4x128xbf16> -> tensor<1x4x64x128xbf16>
  %low = nn.slice %0 dim 3 start 0 step 1 : tensor<1x4x64x128xbf16> -> tensor<1x4x64x64xbf16>
  %high = nn.slice %0 dim 3 start 64 step 1 : tensor<1x4x64x128xbf16> -> tensor<1x4x64x64xbf16>
  %minus = nn.neg %high : tensor<1x4x64x64xbf16>
  %turned = nn.concat %minus, %low dim 3 : (tensor<1x4x64x64xbf16>, tensor<1x4x64x64xbf16>) -> tensor<1x4x64x128xbf16>
  %a = nn.mul %0, %cos : (tensor<1x4x64x128xbf16>, tensor<64x128xbf16>) -> tensor<1x4x64x128xbf16>
  %b = nn.mul %turned, %sin : (tensor<1x4x64x128xbf16>, tensor<64x128xbf16>) -> tensor<1x4x64x128xbf16>
  %y = nn.add %a, %b : (tensor<1x4x64x128xbf16>, tensor<1x4x64x128xbf16>) -> tensor<1x4x64x128xbf16>
  return %y : tensor<1x4x64x128xbf16>
}
