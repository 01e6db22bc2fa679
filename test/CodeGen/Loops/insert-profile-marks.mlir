// RUN: tp-opt %s --tp-insert-profile-marks --verify-roundtrip | FileCheck %s

// A kernel reads x once, whatever its loops do, reads and writes y, and has two
// operations for each of 32 elements. The second call stems from other ops: it is
// another entry. A loop around products counts them all, and describes one. Views and allocations
// take no time; collectives are listed by themselves.

// CHECK: tprt.manifest = {ops = [
// CHECK-SAME: {bytes = 384 : i64, flops = 64 : i64, fqn = "net.0", kind = "kernel", op = "add+relu"},
// CHECK-SAME: {bytes = 384 : i64, flops = 64 : i64, fqn = "net.1", kind = "kernel", op = "relu"},
// CHECK-SAME: {bytes = 3072 : i64, dtype = "f32", flops = 4096 : i64, fqn = "", kind = "gemm", op = "", product = {a = array<i64: 8, 1, 0, 0>, b = array<i64: 8, 1, 0, 0>, batch = array<i64: 1, 1>, c = array<i64: 8, 0, 0>, sizes = array<i64: 8, 8, 8>, weight = false}}], right_operands = []}
// CHECK-LABEL: @main
// CHECK: tprt.mark 0
// CHECK-NEXT: call @kernel_0
// CHECK: tprt.mark 1
// CHECK-NEXT: call @kernel_0
// CHECK-NOT: tprt.mark
// CHECK: tprt.collective
// CHECK: tprt.mark 2
// CHECK-NEXT: scf.for
// CHECK: tprt.mark 0
// CHECK-NEXT: call @kernel_0
// CHECK-NOT: tprt.mark
#id = affine_map<(d0) -> (d0)>
#add = loc(fused<{fqn = "net", op = "add", position = 1 : i64}>["m.py":1:1])
#relu = loc(fused<{fqn = "net.0", op = "relu", position = 2 : i64}>["m.py":2:1])
#other = loc(fused<{fqn = "net.1", op = "relu", position = 3 : i64}>["m.py":3:1])
func.func private @kernel_0(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %a = memref.subview %x[%i, 0] [1, 8] [1, 1] : memref<4x8xf32> to memref<8xf32, strided<[1], offset: ?>>
    %b = memref.subview %y[%i, 0] [1, 8] [1, 1] : memref<4x8xf32> to memref<8xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%a : memref<8xf32, strided<[1], offset: ?>>) outs(%b : memref<8xf32, strided<[1], offset: ?>>) {
    ^bb0(%p: f32, %q: f32):
      %zero = arith.constant 0.0 : f32
      %s = arith.addf %p, %q : f32
      %m = arith.maximumf %s, %zero : f32
      linalg.yield %m : f32
    }
  }
  return
}
func.func @main(%x: memref<4x8xf32>, %y: memref<4x8xf32>, %z: memref<4x8x8xf32>) {
  call @kernel_0(%x, %y) : (memref<4x8xf32>, memref<4x8xf32>) -> () loc(fused[#relu, #add])
  call @kernel_0(%x, %y) : (memref<4x8xf32>, memref<4x8xf32>) -> () loc(#other)
  tprt.collective 0 into %y : memref<4x8xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %c = memref.subview %z[%i, 0, 0] [1, 8, 8] [1, 1, 1] : memref<4x8x8xf32> to memref<8x8xf32, strided<[8, 1], offset: ?>>
    tprt.gemm %c, %c into %c sizes [8, 8, 8] batch [1, 1] a [8, 1, 0, 0] b [8, 1, 0, 0] c [8, 0, 0]
      : memref<8x8xf32, strided<[8, 1], offset: ?>>, memref<8x8xf32, strided<[8, 1], offset: ?>>, memref<8x8xf32, strided<[8, 1], offset: ?>>
  }
  call @kernel_0(%x, %y) : (memref<4x8xf32>, memref<4x8xf32>) -> () loc(fused[#add, #relu])
  return
}
