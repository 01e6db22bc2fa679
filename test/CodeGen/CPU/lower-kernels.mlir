// RUN: tp-opt %s --tp-lower-kernels --canonicalize | FileCheck %s

// The sum over rows walks along them: the reduction is the outer loop.

// CHECK-LABEL: @columns
// CHECK: scf.for %[[R:.+]] = %c0 to %c8
// CHECK: scf.for %[[C:.+]] = %c0 to %c16
// CHECK: memref.load %arg0[%[[R]], %[[C]]]
// CHECK: memref.load %arg1[%[[C]]]
func.func @columns(%x: memref<8x16xf32>, %y: memref<16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(c, r) -> (r, c)>, affine_map<(c, r) -> (c)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x16xf32>) outs(%y : memref<16xf32>) {
  ^bb0(%a: f32, %s: f32):
    %0 = arith.addf %a, %s : f32
    linalg.yield %0 : f32
  }
  return
}

// The sum over columns too: it is the inner loop.

// CHECK-LABEL: @rows
// CHECK: scf.for %[[R:.+]] = %c0 to %c8
// CHECK: scf.for %[[C:.+]] = %c0 to %c16
// CHECK: memref.load %arg0[%[[R]], %[[C]]]
// CHECK: memref.load %arg1[%[[R]]]
func.func @rows(%x: memref<8x16xf32>, %y: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x16xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%a: f32, %s: f32):
    %0 = arith.addf %a, %s : f32
    linalg.yield %0 : f32
  }
  return
}

// CHECK-LABEL: @functions
// CHECK-NOT: math.exp
// CHECK-NOT: math.tanh
// CHECK-NOT: math.rsqrt
// CHECK: math.fma
// CHECK: math.sin
func.func @functions(%x: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%x : memref<8xf32>) {
  ^bb0(%a: f32):
    %0 = math.exp %a : f32
    %1 = math.tanh %0 : f32
    %2 = math.rsqrt %1 : f32
    %3 = math.sin %2 : f32
    linalg.yield %3 : f32
  }
  return
}

// bf16 is converted by integer arithmetic.

// CHECK-LABEL: @bf16
// CHECK-NOT: arith.truncf
// CHECK-NOT: arith.extf
// CHECK: arith.bitcast
func.func @bf16(%x: memref<8xbf16>, %y: memref<8xi32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%y : memref<8xi32>) outs(%x : memref<8xbf16>) {
  ^bb0(%a: i32, %o: bf16):
    %0 = arith.extf %o : bf16 to f32
    %1 = math.absf %0 : f32
    %2 = arith.truncf %1 : f32 to bf16
    %3 = arith.sitofp %a : i32 to bf16
    %true = arith.cmpi sgt, %a, %a : i32
    %4 = arith.select %true, %2, %3 : bf16
    linalg.yield %4 : bf16
  }
  return
}

// A long sum along memory, in any order, is sixteen sums, added in pairs at the end: in an order that doesn't depend on what
// else is computed, so that LLVM may choose none.

// CHECK-LABEL: @lanes
// CHECK: %[[LANES:.+]] = memref.alloca() {alignment = 64 : i64} : memref<16xf32>
// CHECK: scf.for %[[R:.+]] = %c0 to %c8
// CHECK-COUNT-16: memref.store %{{.+}}, %[[LANES]]
// CHECK: scf.for %[[BLOCK:.+]] = %c0 to %c32 step %c16
// CHECK: scf.for %[[LANE:.+]] = %c0 to %c16
// CHECK: %[[C:.+]] = arith.addi %[[BLOCK]], %[[LANE]]
// CHECK: %[[X:.+]] = memref.load %arg0[%[[R]], %[[C]]]
// CHECK: %[[S:.+]] = memref.load %[[LANES]][%[[LANE]]]
// CHECK: %[[SUM:.+]] = arith.addf %[[X]], %[[S]] : f32
// CHECK: memref.store %[[SUM]], %[[LANES]][%[[LANE]]]
// CHECK: scf.for %[[REST:.+]] = %c0 to %c3
// CHECK-COUNT-15: arith.addf
// CHECK: %[[BEFORE:.+]] = memref.load %arg1[%[[R]]]
// CHECK: %[[ALL:.+]] = arith.addf %[[BEFORE]], %{{.+}} : f32
// CHECK: memref.store %[[ALL]], %arg1[%[[R]]]
func.func @lanes(%x: memref<8x35xf32>, %y: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x35xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%a: f32, %s: f32):
    %0 = arith.addf %a, %s fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// One that nobody allows to be reordered keeps its order, and so does one along another loop.

// CHECK-LABEL: @in_order
// CHECK-NOT: memref.alloca
// CHECK: arith.addf %{{.+}}, %{{.+}} : f32
func.func @in_order(%x: memref<8x35xf32>, %y: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x35xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%a: f32, %s: f32):
    %0 = arith.addf %a, %s : f32
    linalg.yield %0 : f32
  }
  return
}

// CHECK-LABEL: @along_columns
// CHECK-NOT: memref.alloca
// CHECK: arith.addf %{{.+}}, %{{.+}} : f32
func.func @along_columns(%x: memref<35x8xf32>, %y: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(c, r) -> (r, c)>, affine_map<(c, r) -> (c)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<35x8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%a: f32, %s: f32):
    %0 = arith.addf %a, %s fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}
