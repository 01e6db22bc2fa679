// RUN: tp-opt %s --convert-linalg-to-gemm | FileCheck %s

// Each function is one contraction; A, B and C are its arguments.

// Batch and rows walk A and C as one: 1024 rows.
// CHECK-LABEL: @linear
// CHECK: tprt.gemm %arg0, %arg1 into %arg2 accumulate sizes [1024, 384, 64] batch [1, 1] a [64, 1, 0, 0] b [1, 64, 0, 0] c [384, 0, 0]
// CHECK-NOT: linalg.generic
func.func @linear(%a: memref<8x128x64xf32>, %b: memref<384x64xf32>, %c: memref<8x128x384xf32>) {
  linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>],
                  iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x128x64xf32>, memref<384x64xf32>) outs(%c : memref<8x128x384xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  }
  return
}

// The example at the top of LinalgToGemm.cpp; the zero goes away.
// CHECK-LABEL: @attention
// CHECK-NOT: linalg.fill
// CHECK: tprt.gemm %arg0, %arg1 into %arg2 sizes [128, 128, 32] batch [8, 12] a [384, 1, 49152, 32] b [1, 384, 49152, 32] c [128, 196608, 16384]
func.func @attention(%a: memref<8x128x12x32xf32>, %b: memref<8x128x12x32xf32>, %c: memref<8x12x128x128xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<8x12x128x128xf32>)
  linalg.generic {indexing_maps = [affine_map<(b, h, s, t, d) -> (b, s, h, d)>, affine_map<(b, h, s, t, d) -> (b, t, h, d)>, affine_map<(b, h, s, t, d) -> (b, h, s, t)>],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x128x12x32xf32>, memref<8x128x12x32xf32>) outs(%c : memref<8x12x128x128xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  }
  return
}

// Rows of C are 12 heads apart.
// CHECK-LABEL: @context
// CHECK: tprt.gemm %arg0, %arg1 into %arg2 accumulate sizes [128, 32, 128] batch [8, 12] a [128, 1, 196608, 16384] b [384, 1, 49152, 32] c [384, 49152, 32]
func.func @context(%a: memref<8x12x128x128xf32>, %b: memref<8x128x12x32xf32>, %c: memref<8x128x12x32xf32>) {
  linalg.generic {indexing_maps = [affine_map<(b, h, s, d, t) -> (b, h, s, t)>, affine_map<(b, h, s, d, t) -> (b, t, h, d)>, affine_map<(b, h, s, d, t) -> (b, s, h, d)>],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x12x128x128xf32>, memref<8x128x12x32xf32>) outs(%c : memref<8x128x12x32xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  }
  return
}

// C is written by columns: C^T = B^T A^T.
// CHECK-LABEL: @transposed
// CHECK: tprt.gemm %arg1, %arg0 into %arg2 accumulate sizes [16, 8, 4] batch [1, 1] a [1, 16, 0, 0] b [1, 4, 0, 0] c [8, 0, 0]
func.func @transposed(%a: memref<8x4xf32>, %b: memref<4x16xf32>, %c: memref<16x8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x4xf32>, memref<4x16xf32>) outs(%c : memref<16x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  }
  return
}

// A matrix by a vector is a GEMM of one column.
// CHECK-LABEL: @vector
// CHECK: tprt.gemm %arg{{[01]}}, %arg{{[01]}} into %arg2 accumulate sizes [{{8, 1|1, 8}}, 4]
func.func @vector(%a: memref<8x4xf32>, %b: memref<4xf32>, %c: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%a, %b : memref<8x4xf32>, memref<4xf32>) outs(%c : memref<8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  }
  return
}

// Three batches that don't merge: a loop over the outermost one.
// CHECK-LABEL: @loops
// CHECK: scf.for
// CHECK: memref.reinterpret_cast
// CHECK: tprt.gemm {{.*}} accumulate sizes [{{.*}}] batch [5, 2]
func.func @loops(%a: memref<2x3x5x8x4xf32>, %b: memref<5x2x3x16x4xf32>, %c: memref<3x5x2x8x16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(g, b, h, m, n, k) -> (g, b, h, m, k)>, affine_map<(g, b, h, m, n, k) -> (h, g, b, n, k)>, affine_map<(g, b, h, m, n, k) -> (b, h, g, m, n)>],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<2x3x5x8x4xf32>, memref<5x2x3x16x4xf32>) outs(%c : memref<3x5x2x8x16xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  }
  return
}

// CHECK-LABEL: @bias
// CHECK-NOT: linalg.generic
// CHECK: tprt.gemm %arg0, %arg1 into %arg2 bias %arg3 sizes [8, 16, 4]
func.func @bias(%a: memref<8x4xf32>, %b: memref<16x4xf32>, %c: memref<8x16xf32>, %v: memref<16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%v : memref<16xf32>) outs(%c : memref<8x16xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x4xf32>, memref<16x4xf32>) outs(%c : memref<8x16xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  }
  return
}

// A bias per row is no argument of GEMM: it is added to.
// CHECK-LABEL: @column_bias
// CHECK: linalg.generic
// CHECK: tprt.gemm %arg0, %arg1 into %arg2 accumulate sizes [8, 16, 4]
func.func @column_bias(%a: memref<8x4xf32>, %b: memref<16x4xf32>, %c: memref<8x16xf32>, %v: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%v : memref<8xf32>) outs(%c : memref<8x16xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x4xf32>, memref<16x4xf32>) outs(%c : memref<8x16xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  }
  return
}

// CHECK-LABEL: @integers
// CHECK-NOT: tprt.gemm
// CHECK: linalg.generic
func.func @integers(%a: memref<8x4xi64>, %b: memref<4x16xi64>, %c: memref<8x16xi64>) {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x4xi64>, memref<4x16xi64>) outs(%c : memref<8x16xi64>) {
  ^bb0(%x: i64, %y: i64, %z: i64):
    %p = arith.muli %x, %y : i64
    %s = arith.addi %z, %p : i64
    linalg.yield %s : i64
  }
  return
}

// Neither rows nor columns of A are contiguous: loops.
// CHECK-LABEL: @strided
// CHECK-NOT: tprt.gemm
// CHECK: linalg.generic
func.func @strided(%a: memref<8x4x2xf32>, %b: memref<4x16xf32>, %c: memref<8x16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k, 0)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x4x2xf32>, memref<4x16xf32>) outs(%c : memref<8x16xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  }
  return
}

// Sums of elementwise products use no element twice: loops, as for any sum.
// CHECK-LABEL: @row_products
// CHECK-NOT: tprt.gemm
// CHECK: linalg.generic
func.func @row_products(%a: memref<8x4xf32>, %b: memref<8x4xf32>, %c: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%a, %b : memref<8x4xf32>, memref<8x4xf32>) outs(%c : memref<8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  }
  return
}

// A contraction of bf16 that stays a loop accumulates in f32, and rounds once.
// CHECK-LABEL: @strided_bf16
// CHECK-NOT: tprt.gemm
// CHECK: %[[WIDE:.+]] = memref.alloc() : memref<8x16xf32>
// CHECK: linalg.generic {{.*}}ins(%arg2 : memref<8x16xbf16>) outs(%[[WIDE]] : memref<8x16xf32>)
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%arg0, %arg1 : memref<8x4x2xbf16>, memref<4x16xbf16>) outs(%[[WIDE]] : memref<8x16xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic {{.*}}ins(%[[WIDE]] : memref<8x16xf32>) outs(%arg2 : memref<8x16xbf16>)
func.func @strided_bf16(%a: memref<8x4x2xbf16>, %b: memref<4x16xbf16>, %c: memref<8x16xbf16>) {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k, 0)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x4x2xbf16>, memref<4x16xbf16>) outs(%c : memref<8x16xbf16>) {
  ^bb0(%x: bf16, %y: bf16, %z: bf16):
    %p = arith.mulf %x, %y : bf16
    %s = arith.addf %z, %p : bf16
    linalg.yield %s : bf16
  }
  return
}

// The result's initial values are read by a look-up, so they are written first.
// CHECK-LABEL: @looked_up
// CHECK: linalg.fill
// CHECK: linalg.generic
// CHECK: tprt.gemm %arg0, %arg1 into %arg2 accumulate
func.func @looked_up(%a: memref<4x8xf32>, %b: memref<8x4xf32>, %c: memref<4x4xf32>, %ids: memref<4xi32>, %d: memref<4xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<4x4xf32>)
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%ids : memref<4xi32>) outs(%d : memref<4xf32>) {
  ^bb0(%id: i32, %o: f32):
    %i = arith.index_cast %id : i32 to index
    %0 = memref.load %c[%i, %i] : memref<4x4xf32>
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<4x8xf32>, memref<8x4xf32>) outs(%c : memref<4x4xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  }
  return
}
