// RUN: tp-opt %s --convert-linalg-to-gemm --canonicalize --split-input-file | FileCheck %s
// RUN: tp-opt %s --convert-linalg-to-gemm=cuda-epilogues --canonicalize --split-input-file | FileCheck %s --check-prefix=LT

// Elementwise ops on a product become the epilogue of the GEMM call.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// cuBLASLt's gelu is the other one.
// CHECK-LABEL: @gelu
// CHECK-NOT: memref.alloc
// CHECK: tprt.gemm %arg0, %arg1 into %arg2 activation gelu sizes [9, 16, 4] batch [1, 1] a [4, 1, 0, 0] b [1, 4, 0, 0] c [16, 0, 0]
// CHECK-NOT: linalg.generic
// LT-LABEL: @gelu
// LT: tprt.gemm %arg0, %arg1 into %alloc sizes
// LT: linalg.generic
func.func @gelu(%a: memref<9x4xf32>, %b: memref<16x4xf32>, %y: memref<9x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %root = arith.constant 0.707106769 : f32
  %c = memref.alloc() : memref<9x16xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<9x16xf32>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<9x4xf32>, memref<16x4xf32>) outs(%c : memref<9x16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.mulf %p, %q : f32
    %t = arith.addf %r, %s : f32
    linalg.yield %t : f32
  }
  // Written otherwise than nn.gelu is.
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c : memref<9x16xf32>) outs(%y : memref<9x16xf32>) {
  ^bb0(%x: f32, %out: f32):
    %u = arith.mulf %root, %x : f32
    %e = math.erf %u : f32
    %f = arith.addf %e, %one : f32
    %h = arith.mulf %half, %x : f32
    %g = arith.mulf %f, %h : f32
    linalg.yield %g : f32
  }
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// A bias from before, a residual, relu: all of it in either library. The rows
// of the residual are 32 apart.
// CHECK-LABEL: @bias_residual_relu
// CHECK: tprt.gemm %arg0, %arg1 into %arg2 bias %arg3 addend %{{.*}} [32, 0, 0] activation relu sizes [8, 16, 4]
// CHECK-NOT: linalg.generic
// LT-LABEL: @bias_residual_relu
// LT: tprt.gemm %arg0, %arg1 into %arg2 bias %arg3 addend %{{.*}} [32, 0, 0] activation relu
func.func @bias_residual_relu(%a: memref<8x4xf32>, %b: memref<16x4xf32>, %y: memref<8x16xf32>, %v: memref<16xf32>, %w: memref<8x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<8x16xf32>
  %x = memref.subview %w[0, 0] [8, 16] [1, 1] : memref<8x32xf32> to memref<8x16xf32, strided<[32, 1]>>
  linalg.generic {indexing_maps = [affine_map<(m, n) -> (n)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%v : memref<16xf32>) outs(%c : memref<8x16xf32>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x4xf32>, memref<16x4xf32>) outs(%c : memref<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.mulf %p, %q : f32
    %t = arith.addf %r, %s : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %c : memref<8x16xf32, strided<[32, 1]>>, memref<8x16xf32>) outs(%y : memref<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    %r = arith.maximumf %s, %zero : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// silu(gate) * up: the gate's product moves behind up's. In bf16, it rounds once.
// CHECK-LABEL: @gated
// CHECK: %[[UP:.*]] = memref.alloc
// CHECK: tprt.gemm %arg0, %arg2 into %[[UP]] sizes
// CHECK: tprt.gemm %arg0, %arg1 into %arg3 activation silu factor %[[UP]] [16, 0, 0] sizes
// CHECK-NOT: linalg.generic
// LT-LABEL: @gated
// LT-COUNT-2: tprt.gemm {{.*}} sizes
// LT: linalg.generic
func.func @gated(%a: memref<8x4xbf16>, %b: memref<16x4xbf16>, %b2: memref<16x4xbf16>, %y: memref<8x16xbf16>) {
  %zero = arith.constant 0.0 : bf16
  %one = arith.constant 1.0 : f32
  %c = memref.alloc() : memref<8x16xbf16>
  %up = memref.alloc() : memref<8x16xbf16>
  linalg.fill ins(%zero : bf16) outs(%c : memref<8x16xbf16>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x4xbf16>, memref<16x4xbf16>) outs(%c : memref<8x16xbf16>) {
  ^bb0(%p: bf16, %q: bf16, %r: bf16):
    %s = arith.mulf %p, %q : bf16
    %t = arith.addf %r, %s : bf16
    linalg.yield %t : bf16
  }
  linalg.fill ins(%zero : bf16) outs(%up : memref<8x16xbf16>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b2 : memref<8x4xbf16>, memref<16x4xbf16>) outs(%up : memref<8x16xbf16>) {
  ^bb0(%p: bf16, %q: bf16, %r: bf16):
    %s = arith.mulf %p, %q : bf16
    %t = arith.addf %r, %s : bf16
    linalg.yield %t : bf16
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c, %up : memref<8x16xbf16>, memref<8x16xbf16>) outs(%y : memref<8x16xbf16>) {
  ^bb0(%p: bf16, %q: bf16, %out: bf16):
    %x = arith.extf %p : bf16 to f32
    %n = arith.negf %x : f32
    %e = math.exp %n : f32
    %d = arith.addf %e, %one : f32
    %s = arith.divf %one, %d : f32
    %g = arith.mulf %x, %s : f32
    %h = arith.truncf %g : f32 to bf16
    %i = arith.extf %h : bf16 to f32
    %j = arith.extf %q : bf16 to f32
    %k = arith.mulf %i, %j : f32
    %l = arith.truncf %k : f32 to bf16
    linalg.yield %l : bf16
  }
  return
}

// -----

// The op transposes as well: other strides of C, not of the residual, which it
// reads as it does the product.
// CHECK-LABEL: @transposed
// CHECK: tprt.gemm %arg0, %arg1 into %arg2 addend %arg3 [16, 0, 64] sizes [4, 16, 4] batch [1, 3] a [12, 1, 0, 4] b [1, 4, 0, 0] c [48, 0, 16]
// CHECK-NOT: linalg.generic
func.func @transposed(%a: memref<4x3x4xf32>, %b: memref<16x4xf32>, %y: memref<4x3x16xf32>, %x: memref<3x4x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<3x4x16xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<3x4x16xf32>)
  linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (m, b, k)>, affine_map<(b, m, n, k) -> (n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>],
                  iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<4x3x4xf32>, memref<16x4xf32>) outs(%c : memref<3x4x16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.mulf %p, %q : f32
    %t = arith.addf %r, %s : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [affine_map<(m, b, n) -> (b, m, n)>, affine_map<(m, b, n) -> (b, m, n)>, affine_map<(m, b, n) -> (m, b, n)>],
                  iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%c, %x : memref<3x4x16xf32>, memref<3x4x16xf32>) outs(%y : memref<4x3x16xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Here the product has twelve rows, which aren't one loop where they go.
// CHECK-LABEL: @rows_apart
// CHECK: tprt.gemm %arg0, %arg1 into %alloc{{.*}} sizes [12, 16, 4]
// CHECK: linalg.generic
func.func @rows_apart(%a: memref<3x4x4xf32>, %b: memref<16x4xf32>, %y: memref<4x3x16xf32>, %x: memref<3x4x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<3x4x16xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<3x4x16xf32>)
  linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>],
                  iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<3x4x4xf32>, memref<16x4xf32>) outs(%c : memref<3x4x16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.mulf %p, %q : f32
    %t = arith.addf %r, %s : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [affine_map<(m, b, n) -> (b, m, n)>, affine_map<(m, b, n) -> (b, m, n)>, affine_map<(m, b, n) -> (m, b, n)>],
                  iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%c, %x : memref<3x4x16xf32>, memref<3x4x16xf32>) outs(%y : memref<4x3x16xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  }
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// x + h * w, after a view: C is one dimension longer, the residual's rows are
// added as one. Two products that are added: the later one adds.
// CHECK-LABEL: @sum_of_products
// CHECK: tprt.gemm %arg0, %arg1 into %[[FIRST:.*]] sizes
// CHECK: tprt.gemm %arg0, %arg2 into %arg3 addend %{{.*}} [16, 0, 0] sizes [8, 16, 4]
// CHECK-NOT: linalg.generic
func.func @sum_of_products(%a: memref<8x4xf32>, %b: memref<16x4xf32>, %b2: memref<16x4xf32>, %y: memref<2x4x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<8x16xf32>
  %d = memref.alloc() : memref<8x16xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<8x16xf32>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x4xf32>, memref<16x4xf32>) outs(%c : memref<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.mulf %p, %q : f32
    %t = arith.addf %r, %s : f32
    linalg.yield %t : f32
  }
  linalg.fill ins(%zero : f32) outs(%d : memref<8x16xf32>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b2 : memref<8x4xf32>, memref<16x4xf32>) outs(%d : memref<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.mulf %p, %q : f32
    %t = arith.addf %r, %s : f32
    linalg.yield %t : f32
  }
  %c3 = memref.expand_shape %c [[0, 1], [2]] output_shape [2, 4, 16] : memref<8x16xf32> into memref<2x4x16xf32>
  %d3 = memref.expand_shape %d [[0, 1], [2]] output_shape [2, 4, 16] : memref<8x16xf32> into memref<2x4x16xf32>
  linalg.generic {indexing_maps = [affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (b, m, n)>],
                  iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%c3, %d3 : memref<2x4x16xf32>, memref<2x4x16xf32>) outs(%y : memref<2x4x16xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  }
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// A backward pass reads the product as well.
// CHECK-LABEL: @read_twice
// CHECK: tprt.gemm %arg0, %arg1 into %alloc{{.*}} sizes [8, 16, 4]
// CHECK: linalg.generic
func.func @read_twice(%a: memref<8x4xf32>, %b: memref<16x4xf32>, %y: memref<8x16xf32>, %z: memref<8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<8x16xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<8x16xf32>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x4xf32>, memref<16x4xf32>) outs(%c : memref<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.mulf %p, %q : f32
    %t = arith.addf %r, %s : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c : memref<8x16xf32>) outs(%y : memref<8x16xf32>) {
  ^bb0(%p: f32, %out: f32):
    %r = arith.maximumf %p, %zero : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c : memref<8x16xf32>) outs(%z : memref<8x16xf32>) {
  ^bb0(%p: f32, %out: f32):
    %r = arith.maximumf %p, %zero : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// B has changed when the op runs.
// CHECK-LABEL: @operand_changes
// CHECK: tprt.gemm %arg0, %arg1 into %alloc{{.*}} sizes [8, 16, 4]
// CHECK: linalg.generic
func.func @operand_changes(%a: memref<8x4xf32>, %b: memref<16x4xf32>, %y: memref<8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<8x16xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<8x16xf32>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x4xf32>, memref<16x4xf32>) outs(%c : memref<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.mulf %p, %q : f32
    %t = arith.addf %r, %s : f32
    linalg.yield %t : f32
  }
  linalg.fill ins(%zero : f32) outs(%b : memref<16x4xf32>)
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c : memref<8x16xf32>) outs(%y : memref<8x16xf32>) {
  ^bb0(%p: f32, %out: f32):
    %r = arith.maximumf %p, %zero : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// No product moves behind a collective, which it may overlap.
// CHECK-LABEL: @collective
// CHECK: tprt.gemm %arg0, %arg1 into %alloc{{.*}} sizes [8, 16, 4]
// CHECK: linalg.generic
func.func @collective(%a: memref<8x4xf32>, %b: memref<16x4xf32>, %y: memref<8x16xf32>, %z: memref<8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<8x16xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<8x16xf32>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x4xf32>, memref<16x4xf32>) outs(%c : memref<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.mulf %p, %q : f32
    %t = arith.addf %r, %s : f32
    linalg.yield %t : f32
  }
  tprt.collective 0 into %z : memref<8x16xf32>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c : memref<8x16xf32>) outs(%y : memref<8x16xf32>) {
  ^bb0(%p: f32, %out: f32):
    %r = arith.maximumf %p, %zero : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// tanh alone is no activation that products end with.
// CHECK-LABEL: @other_formula
// CHECK: tprt.gemm %arg0, %arg1 into %alloc{{.*}} sizes [8, 16, 4]
// CHECK: linalg.generic
func.func @other_formula(%a: memref<8x4xf32>, %b: memref<16x4xf32>, %y: memref<8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<8x16xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<8x16xf32>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x4xf32>, memref<16x4xf32>) outs(%c : memref<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.mulf %p, %q : f32
    %t = arith.addf %r, %s : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c : memref<8x16xf32>) outs(%y : memref<8x16xf32>) {
  ^bb0(%p: f32, %out: f32):
    %r = math.tanh %p : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// An addend with one number per row isn't a bias.
// CHECK-LABEL: @rows_differ
// CHECK: tprt.gemm %arg0, %arg1 into %alloc{{.*}} sizes [8, 16, 4]
// CHECK: linalg.generic
func.func @rows_differ(%a: memref<8x4xf32>, %b: memref<16x4xf32>, %y: memref<8x16xf32>, %x: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<8x16xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<8x16xf32>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x4xf32>, memref<16x4xf32>) outs(%c : memref<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.mulf %p, %q : f32
    %t = arith.addf %r, %s : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#id, affine_map<(m, n) -> (m)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c, %x : memref<8x16xf32>, memref<8xf32>) outs(%y : memref<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %r = arith.addf %p, %q : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// The result is written by columns.
// CHECK-LABEL: @columns_apart
// CHECK: tprt.gemm %arg0, %arg1 into %alloc{{.*}} sizes [8, 16, 4]
// CHECK: linalg.generic
func.func @columns_apart(%a: memref<8x4xf32>, %b: memref<16x4xf32>, %y: memref<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<8x16xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<8x16xf32>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x4xf32>, memref<16x4xf32>) outs(%c : memref<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.mulf %p, %q : f32
    %t = arith.addf %r, %s : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#id, affine_map<(m, n) -> (n, m)>], iterator_types = ["parallel", "parallel"]}
      ins(%c : memref<8x16xf32>) outs(%y : memref<16x8xf32>) {
  ^bb0(%p: f32, %out: f32):
    %r = arith.maximumf %p, %zero : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// The residual's buffer is the result's.
// CHECK-LABEL: @in_place
// CHECK: tprt.gemm %arg0, %arg1 into %alloc{{.*}} sizes [8, 16, 4]
// CHECK: linalg.generic
func.func @in_place(%a: memref<8x4xf32>, %b: memref<16x4xf32>, %y: memref<8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<8x16xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<8x16xf32>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x4xf32>, memref<16x4xf32>) outs(%c : memref<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.mulf %p, %q : f32
    %t = arith.addf %r, %s : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c, %y : memref<8x16xf32>, memref<8x16xf32>) outs(%y : memref<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %r = arith.addf %p, %q : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// A row that is added is a bias, here to the one row that there is.
// CHECK-LABEL: @late_bias
// CHECK: tprt.gemm %arg0, %arg1 into %arg2 bias %arg3 activation relu sizes [1, 16, 4] batch [1, 1] a [4, 1, 0, 0] b [1, 4, 0, 0] c [16, 0, 0]
// LT-LABEL: @late_bias
// LT: tprt.gemm %arg0, %arg1 into %arg2 bias %arg3 activation relu
func.func @late_bias(%a: memref<1x4xf32>, %b: memref<16x4xf32>, %y: memref<1x16xf32>, %v: memref<16xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<1x16xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<1x16xf32>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<1x4xf32>, memref<16x4xf32>) outs(%c : memref<1x16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.mulf %p, %q : f32
    %t = arith.addf %r, %s : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#id, affine_map<(m, n) -> (n)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c, %v : memref<1x16xf32>, memref<16xf32>) outs(%y : memref<1x16xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    %r = arith.maximumf %s, %zero : f32
    linalg.yield %r : f32
  }
  return
}

// -----

// Batches share the rows that are added: cuBLASLt's C has none to share.
// CHECK-LABEL: @shared_addend
// CHECK: tprt.gemm %arg0, %arg1 into %arg2 addend %arg3 [16, 0, 0] sizes [4, 16, 4] batch [1, 3]
// LT-LABEL: @shared_addend
// LT: tprt.gemm %arg0, %arg1 into %alloc
// LT: linalg.generic
func.func @shared_addend(%a: memref<4x3x4xf32>, %b: memref<16x4xf32>, %y: memref<3x4x16xf32>, %x: memref<4x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<3x4x16xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<3x4x16xf32>)
  linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (m, b, k)>, affine_map<(b, m, n, k) -> (n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>],
                  iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<4x3x4xf32>, memref<16x4xf32>) outs(%c : memref<3x4x16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.mulf %p, %q : f32
    %t = arith.addf %r, %s : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (m, n)>, affine_map<(b, m, n) -> (b, m, n)>],
                  iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%c, %x : memref<3x4x16xf32>, memref<4x16xf32>) outs(%y : memref<3x4x16xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  }
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// Up to eight rows are an own kernel's, which has all epilogues, if it can read vectors of B; @gated
// above has four elements to sum, half a vector.
// LT-LABEL: @few_rows
// LT: tprt.gemm %arg0, %arg1 into %arg2 activation silu factor %arg3 [16, 0, 0] sizes [8, 16, 8]
// LT-NOT: linalg.generic
func.func @few_rows(%a: memref<8x8xbf16>, %b: memref<16x8xbf16>, %y: memref<8x16xbf16>, %up: memref<8x16xbf16>) {
  %zero = arith.constant 0.0 : bf16
  %one = arith.constant 1.0 : f32
  %c = memref.alloc() : memref<8x16xbf16>
  linalg.fill ins(%zero : bf16) outs(%c : memref<8x16xbf16>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x8xbf16>, memref<16x8xbf16>) outs(%c : memref<8x16xbf16>) {
  ^bb0(%p: bf16, %q: bf16, %r: bf16):
    %s = arith.mulf %p, %q : bf16
    %t = arith.addf %r, %s : bf16
    linalg.yield %t : bf16
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c, %up : memref<8x16xbf16>, memref<8x16xbf16>) outs(%y : memref<8x16xbf16>) {
  ^bb0(%p: bf16, %q: bf16, %out: bf16):
    %x = arith.extf %p : bf16 to f32
    %n = arith.negf %x : f32
    %e = math.exp %n : f32
    %d = arith.addf %e, %one : f32
    %s = arith.divf %one, %d : f32
    %g = arith.mulf %x, %s : f32
    %h = arith.truncf %g : f32 to bf16
    %i = arith.extf %h : bf16 to f32
    %j = arith.extf %q : bf16 to f32
    %k = arith.mulf %i, %j : f32
    %l = arith.truncf %k : f32 to bf16
    linalg.yield %l : bf16
  }
  return
}

// LT-LABEL: @more_rows
// LT: tprt.gemm %arg0, %arg1 into %alloc sizes [9, 16, 8]
// LT: linalg.generic
func.func @more_rows(%a: memref<9x8xbf16>, %b: memref<16x8xbf16>, %y: memref<9x16xbf16>, %up: memref<9x16xbf16>) {
  %zero = arith.constant 0.0 : bf16
  %one = arith.constant 1.0 : f32
  %c = memref.alloc() : memref<9x16xbf16>
  linalg.fill ins(%zero : bf16) outs(%c : memref<9x16xbf16>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<9x8xbf16>, memref<16x8xbf16>) outs(%c : memref<9x16xbf16>) {
  ^bb0(%p: bf16, %q: bf16, %r: bf16):
    %s = arith.mulf %p, %q : bf16
    %t = arith.addf %r, %s : bf16
    linalg.yield %t : bf16
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c, %up : memref<9x16xbf16>, memref<9x16xbf16>) outs(%y : memref<9x16xbf16>) {
  ^bb0(%p: bf16, %q: bf16, %out: bf16):
    %x = arith.extf %p : bf16 to f32
    %n = arith.negf %x : f32
    %e = math.exp %n : f32
    %d = arith.addf %e, %one : f32
    %s = arith.divf %one, %d : f32
    %g = arith.mulf %x, %s : f32
    %h = arith.truncf %g : f32 to bf16
    %i = arith.extf %h : bf16 to f32
    %j = arith.extf %q : bf16 to f32
    %k = arith.mulf %i, %j : f32
    %l = arith.truncf %k : f32 to bf16
    linalg.yield %l : bf16
  }
  return
}
