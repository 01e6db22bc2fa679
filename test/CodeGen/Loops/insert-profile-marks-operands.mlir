// RUN: tp-opt %s --split-input-file --tp-insert-profile-marks | FileCheck %s

// The parameters that all programs only multiply by: directly, in part, or not at all. The others are
// read by a kernel, on the left of a product too, or by a kernel of the other program.

// CHECK: right_operands = [0, 1, 5]

module attributes {tprt.manifest = {parameters = [{name = "a"}, {name = "part"}, {name = "kernel"}, {name = "left"}, {name = "other"}, {name = "unused"}]}} {
  func.func private @kernel(%x: memref<8x8xf32>) {
    return
  }
  func.func @main(%a: memref<8x8xf32> {tprt.role = "parameter"}, %part: memref<16x8xf32> {tprt.role = "parameter"},
                  %kernel: memref<8x8xf32> {tprt.role = "parameter"}, %left: memref<8x8xf32> {tprt.role = "parameter"},
                  %other: memref<8x8xf32> {tprt.role = "parameter"}, %unused: memref<8x8xf32> {tprt.role = "parameter"},
                  %c: memref<8x8xf32>) attributes {tp.ranks = array<i64: 0>} {
    %half = memref.subview %part[8, 0] [8, 8] [1, 1] : memref<16x8xf32> to memref<8x8xf32, strided<[8, 1], offset: 64>>
    tprt.gemm %c, %a into %c sizes [8, 8, 8] batch [1, 1] a [8, 1, 0, 0] b [8, 1, 0, 0] c [8, 0, 0] : memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>
    tprt.gemm %c, %half into %c sizes [8, 8, 8] batch [1, 1] a [8, 1, 0, 0] b [8, 1, 0, 0] c [8, 0, 0] : memref<8x8xf32>, memref<8x8xf32, strided<[8, 1], offset: 64>>, memref<8x8xf32>
    tprt.gemm %c, %kernel into %c sizes [8, 8, 8] batch [1, 1] a [8, 1, 0, 0] b [8, 1, 0, 0] c [8, 0, 0] : memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>
    func.call @kernel(%kernel) : (memref<8x8xf32>) -> ()
    tprt.gemm %left, %left into %c sizes [8, 8, 8] batch [1, 1] a [8, 1, 0, 0] b [8, 1, 0, 0] c [8, 0, 0] : memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>
    tprt.gemm %c, %other into %c sizes [8, 8, 8] batch [1, 1] a [8, 1, 0, 0] b [8, 1, 0, 0] c [8, 0, 0] : memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>
    return
  }
  func.func @last(%a: memref<8x8xf32> {tprt.role = "parameter"}, %part: memref<16x8xf32> {tprt.role = "parameter"},
                  %kernel: memref<8x8xf32> {tprt.role = "parameter"}, %left: memref<8x8xf32> {tprt.role = "parameter"},
                  %other: memref<8x8xf32> {tprt.role = "parameter"}, %unused: memref<8x8xf32> {tprt.role = "parameter"},
                  %c: memref<8x8xf32>) attributes {tp.ranks = array<i64: 1>} {
    func.call @kernel(%other) : (memref<8x8xf32>) -> ()
    return
  }
}

// -----

// In functions that a program repeats, as well.

// CHECK: right_operands = [0, 1]

module attributes {tprt.manifest = {parameters = [{name = "first"}, {name = "second"}, {name = "left"}]}} {
  func.func private @layer(%rank: index, %x: memref<8x8xf32>, %w: memref<8x8xf32>, %c: memref<8x8xf32>) attributes {tprt.repeated} {
    tprt.gemm %x, %w into %c sizes [8, 8, 8] batch [1, 1] a [8, 1, 0, 0] b [8, 1, 0, 0] c [8, 0, 0] : memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>
    return
  }
  func.func @main(%rank: index, %first: memref<8x8xf32> {tprt.role = "parameter"}, %second: memref<8x8xf32> {tprt.role = "parameter"},
                  %left: memref<8x8xf32> {tprt.role = "parameter"}, %c: memref<8x8xf32>) attributes {tp.ranks = array<i64: 0>} {
    tprt.call @layer rank %rank ins(%left, %first : memref<8x8xf32>, memref<8x8xf32>) outs(%c : memref<8x8xf32>) origins [] collectives []
    tprt.call @layer rank %rank ins(%left, %second : memref<8x8xf32>, memref<8x8xf32>) outs(%c : memref<8x8xf32>) origins [] collectives []
    return
  }
}
