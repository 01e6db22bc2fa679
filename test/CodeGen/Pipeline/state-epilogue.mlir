// RUN: tp-opt %s --split-input-file --tp-lower-to-llvm --mlir-print-ir-after=convert-linalg-to-gemm -o /dev/null 2>&1 | FileCheck %s

// A program that keeps a state has the epilogues that others have. In a training step, which has a loss as well, the
// values have the bits that separate ops give.

// CHECK: tprt.gemm {{.*}} activation gelu
func.func @main(%x: tensor<4x8xf32> {tp.name = "x"}) -> (tensor<4x8xf32> {tp.name = "y"}) {
  %w = nn.parameter "w" : tensor<8x8xf32>
  %s = nn.parameter "s" frozen : tensor<4x8xf32>
  %0 = nn.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = nn.gelu %0 : tensor<4x8xf32>
  %2 = nn.add %x, %s : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  nn.assign "s", %2 init 0.0 : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// CHECK: tprt.gemm
// CHECK-NOT: activation
func.func @main(%x: tensor<4x8xf32> {tp.name = "x"}) -> (tensor<4x8xf32> {tp.name = "loss"}) {
  %w = nn.parameter "w" : tensor<8x8xf32>
  %s = nn.parameter "s" frozen : tensor<4x8xf32>
  %0 = nn.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = nn.gelu %0 : tensor<4x8xf32>
  %2 = nn.add %x, %s : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  nn.assign "s", %2 init 0.0 : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
