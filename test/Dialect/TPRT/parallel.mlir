// RUN: tp-opt %s --verify-roundtrip --canonicalize --cse | FileCheck %s

// Kernels have unknown effects: two equal calls stay.

// CHECK-LABEL: @main
// CHECK: tprt.parallel @kernel(%arg0, %c3) count 8 nanoseconds 100 : memref<8xf32>, index
// CHECK-NEXT: tprt.parallel @kernel(%arg0, %c3) count 8 nanoseconds 100 : memref<8xf32>, index
// CHECK-NEXT: tprt.parallel @nothing() count 0 nanoseconds 0
func.func private @kernel(memref<8xf32>, index, index, index)
func.func private @nothing(index, index)
func.func @main(%x: memref<8xf32>) {
  %c3 = arith.constant 3 : index
  tprt.parallel @kernel(%x, %c3) count 8 nanoseconds 100 : memref<8xf32>, index
  tprt.parallel @kernel(%x, %c3) count 8 nanoseconds 100 : memref<8xf32>, index
  tprt.parallel @nothing() count 0 nanoseconds 0
  return
}
