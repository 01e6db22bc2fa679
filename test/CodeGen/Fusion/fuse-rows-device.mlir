// RUN: tp-opt %s --tp-fuse-rows="max-row-bytes=64 min-rows=1024" --split-input-file | FileCheck %s
// RUN: tp-opt %s --tp-fuse-rows --split-input-file | FileCheck %s --check-prefix=ALL
// RUN: tp-opt %s --tp-fuse-rows="min-rows=1024 small-op=480 max-single-row=31" --split-input-file | FileCheck %s --check-prefix=SMALL

#id = affine_map<(i, j) -> (i, j)>

// 64 bytes are the rows of one buffer; that of the other keeps its size.

// CHECK-LABEL: @budget
// CHECK-DAG: memref.alloc() : memref<16xf32>
// CHECK-DAG: %[[WHOLE:.+]] = memref.alloc() : memref<8x16xf32>
// CHECK: scf.for
// CHECK: memref.subview %[[WHOLE]]
// ALL-LABEL: @budget
// ALL-COUNT-2: memref.alloc() : memref<16xf32>
func.func @budget(%x: memref<8x16xf32>, %y: memref<8x16xf32>) {
  %a = memref.alloc() : memref<8x16xf32>
  %b = memref.alloc() : memref<8x16xf32>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x16xf32>) outs(%a : memref<8x16xf32>) {
  ^bb0(%v: f32, %o: f32):
    %0 = math.exp %v : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : memref<8x16xf32>) outs(%b : memref<8x16xf32>) {
  ^bb0(%v: f32, %o: f32):
    %0 = math.log %v : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %b : memref<8x16xf32>, memref<8x16xf32>) outs(%y : memref<8x16xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %0 = arith.addf %v, %w : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// One op has 60 rows; together they would have 4. Small ops share a nest nevertheless.

#id = affine_map<(b, t, d) -> (b, t, d)>
#in = affine_map<(b, d, t) -> (b, t, d)>
#out = affine_map<(b, d, t) -> (b, d)>

// CHECK-LABEL: @rows
// CHECK-NOT: scf.for
// ALL-LABEL: @rows
// ALL: scf.for
// SMALL-LABEL: @rows
// SMALL: scf.for
func.func @rows(%x: memref<4x15x8xf32>, %y: memref<4x15x8xf32>, %sums: memref<4x8xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : memref<4x15x8xf32>) outs(%y : memref<4x15x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %0 = arith.negf %v : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%y : memref<4x15x8xf32>) outs(%sums : memref<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %0 = arith.addf %v, %o : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Parts of a result and what reads the same factors, in a nest of a single row, unless it is too long.

#id = affine_map<(b, i) -> (b, i)>
#row = affine_map<(b, i) -> (i)>

// CHECK-LABEL: @single
// CHECK: scf.for
// CHECK-COUNT-2: linalg.generic
// SMALL-LABEL: @single
// SMALL-NOT: scf.for
func.func @single(%x: memref<1x32xf32>, %w: memref<32xf32>, %y: memref<1x64xf32>, %z: memref<1x32xf32>) {
  %low = memref.subview %y[0, 0] [1, 32] [1, 1] : memref<1x64xf32> to memref<1x32xf32, strided<[64, 1]>>
  %high = memref.subview %y[0, 32] [1, 32] [1, 1] : memref<1x64xf32> to memref<1x32xf32, strided<[64, 1], offset: 32>>
  linalg.generic {indexing_maps = [#id, #row, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %w : memref<1x32xf32>, memref<32xf32>)
      outs(%low, %high : memref<1x32xf32, strided<[64, 1]>>, memref<1x32xf32, strided<[64, 1], offset: 32>>) {
  ^bb0(%v: f32, %f: f32, %o: f32, %p: f32):
    %0 = arith.mulf %v, %f : f32
    linalg.yield %0, %v : f32, f32
  }
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %w : memref<1x32xf32>, memref<32xf32>) outs(%z : memref<1x32xf32>) {
  ^bb0(%v: f32, %f: f32, %o: f32):
    %0 = arith.addf %v, %f : f32
    linalg.yield %0 : f32
  }
  return
}
