// RUN: tp-opt %s --split-input-file --tp-lower-to-llvm --mlir-print-ir-after=convert-linalg-to-gemm -o /dev/null 2>&1 | FileCheck %s
// RUN: tp-opt %s --split-input-file --tp-lower-to-kernels --mlir-print-ir-after=convert-linalg-to-gemm -o /dev/null 2>&1 | FileCheck %s

// A batch of one sequence, whose products have no dimension for the batch, has the epilogues that larger batches have.

// CHECK: tprt.gemm %{{.*}} into %arg5 bias %arg4 addend %arg2 [256, 0, 0] sizes [64, 256, 128]
// CHECK-NOT: linalg.generic
func.func @main(%x: tensor<1x64x128xf32> {tp.name = "x"}, %r: tensor<1x64x256xf32> {tp.name = "r"}) -> (tensor<1x64x256xf32> {tp.name = "y"}) {
  %w = nn.parameter "w" : tensor<256x128xf32>
  %b = nn.parameter "b" : tensor<256xf32>
  %0 = nn.linear %x, %w : (tensor<1x64x128xf32>, tensor<256x128xf32>) -> tensor<1x64x256xf32>
  %1 = nn.add %0, %b : (tensor<1x64x256xf32>, tensor<256xf32>) -> tensor<1x64x256xf32>
  %2 = nn.add %1, %r : (tensor<1x64x256xf32>, tensor<1x64x256xf32>) -> tensor<1x64x256xf32>
  return %2 : tensor<1x64x256xf32>
}

// -----

// CHECK: tprt.gemm %{{.*}} into %arg4 addend %arg2 [256, 0, 0] sizes [64, 256, 128]
// CHECK-NOT: linalg.generic
func.func @main(%x: tensor<1x64x128xbf16> {tp.name = "x"}, %r: tensor<1x64x256xbf16> {tp.name = "r"}) -> (tensor<1x64x256xbf16> {tp.name = "y"}) {
  %w = nn.parameter "w" : tensor<256x128xbf16>
  %0 = nn.linear %x, %w : (tensor<1x64x128xbf16>, tensor<256x128xbf16>) -> tensor<1x64x256xbf16>
  %1 = nn.add %r, %0 : (tensor<1x64x256xbf16>, tensor<1x64x256xbf16>) -> tensor<1x64x256xbf16>
  return %1 : tensor<1x64x256xbf16>
}

// -----

// What is added to a product of one row is a row of the same kind as a bias.
// CHECK: tprt.gemm %{{.*}} into %arg4 bias %arg2 sizes [1, 256, 128]
// CHECK-NOT: linalg.generic
func.func @main(%x: tensor<1x1x128xbf16> {tp.name = "x"}, %r: tensor<1x1x256xbf16> {tp.name = "r"}) -> (tensor<1x1x256xbf16> {tp.name = "y"}) {
  %w = nn.parameter "w" : tensor<256x128xbf16>
  %0 = nn.linear %x, %w : (tensor<1x1x128xbf16>, tensor<256x128xbf16>) -> tensor<1x1x256xbf16>
  %1 = nn.add %r, %0 : (tensor<1x1x256xbf16>, tensor<1x1x256xbf16>) -> tensor<1x1x256xbf16>
  return %1 : tensor<1x1x256xbf16>
}
