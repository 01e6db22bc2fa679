// RUN: tp-opt %s --tp-insert-profile-marks | FileCheck %s

// A right-hand side is a weight where it is a parameter that the program does not update.

// CHECK: tprt.manifest = {ops = [{{.*}}weight = true}}, {{.*}}weight = false}}]
// CHECK: tprt.mark 0
// CHECK-NEXT: tprt.gemm
// CHECK-NEXT: tprt.mark 1

module attributes {tprt.manifest = {parameters = [{name = "a"}, {name = "b", updated = true}]}} {
  func.func @main(%x: memref<8x8xf32> {tprt.role = "parameter"}, %y: memref<8x8xf32> {tprt.role = "parameter"}, %c: memref<8x8xf32>) {
    tprt.gemm %c, %x into %c sizes [8, 8, 8] batch [1, 1] a [8, 1, 0, 0] b [8, 1, 0, 0] c [8, 0, 0] : memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>
    tprt.gemm %c, %y into %c sizes [8, 8, 8] batch [1, 1] a [8, 1, 0, 0] b [8, 1, 0, 0] c [8, 0, 0] : memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>
    return
  }
}
