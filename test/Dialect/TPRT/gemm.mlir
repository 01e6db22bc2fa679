// RUN: tp-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @gemm
// CHECK: tprt.gemm %{{.*}} into %{{.*}} bias %{{.*}} accumulate activation gelu sizes
// CHECK: tprt.gemm %{{.*}} into %{{.*}} bias %{{.*}} addend %{{.*}} [32, 0, 0] activation gelu_tanh factor %{{.*}} [16, 0, 0] sizes
// CHECK: tprt.gemm %{{.*}} into %{{.*}} factor %{{.*}} [16, 0, 0] sizes
func.func @gemm(%a: memref<8x4xf32>, %b: memref<16x4xf32>, %c: memref<8x16xf32>, %v: memref<16xf32>, %x: memref<8x32xf32>, %y: memref<8x16xf32>) {
  tprt.gemm %a, %b into %c bias %v accumulate activation gelu sizes [8, 16, 4] batch [1, 1]
    a [4, 1, 0, 0] b [1, 4, 0, 0] c [16, 0, 0]
    : memref<8x4xf32>, memref<16x4xf32>, memref<8x16xf32>, memref<16xf32>
  tprt.gemm %a, %b into %c bias %v addend %x [32, 0, 0] activation gelu_tanh factor %y [16, 0, 0] sizes [8, 16, 4] batch [1, 1]
    a [4, 1, 0, 0] b [1, 4, 0, 0] c [16, 0, 0]
    : memref<8x4xf32>, memref<16x4xf32>, memref<8x16xf32>, memref<16xf32> addend memref<8x32xf32> factor memref<8x16xf32>
  tprt.gemm %a, %b into %c factor %y [16, 0, 0] sizes [8, 16, 4] batch [1, 1]
    a [4, 1, 0, 0] b [1, 4, 0, 0] c [16, 0, 0]
    : memref<8x4xf32>, memref<16x4xf32>, memref<8x16xf32> factor memref<8x16xf32>
  return
}
