// RUN: tp-opt %s --tp-fuse-siblings --split-input-file | FileCheck %s

#id = affine_map<(i) -> (i)>

// Halves of a result, from the same two operands.
// CHECK-LABEL: @halves
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1 : memref<4xf32>, memref<4xf32>) outs(%{{.*}}, %{{.*}} :
// CHECK-NEXT: ^bb0(%[[X:.+]]: f32, %[[Y:.+]]: f32, %{{.*}}: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[A:.+]] = arith.subf %[[X]], %[[Y]]
// CHECK-NEXT: %[[B:.+]] = arith.addf %[[Y]], %[[X]]
// CHECK-NEXT: linalg.yield %[[A]], %[[B]]
// CHECK-NOT: linalg.generic
func.func @halves(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<8xf32>) {
  %low = memref.subview %z[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %y : memref<4xf32>, memref<4xf32>) outs(%low : memref<4xf32, strided<[1]>>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  }
  %high = memref.subview %z[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%y, %x : memref<4xf32>, memref<4xf32>) outs(%high : memref<4xf32, strided<[1], offset: 4>>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#id = affine_map<(i) -> (i)>

// The parts overlap.
// CHECK-LABEL: @overlap
// CHECK-COUNT-2: linalg.generic
func.func @overlap(%x: memref<4xf32>, %z: memref<8xf32>) {
  %low = memref.subview %z[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  %high = memref.subview %z[3] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 3>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<4xf32>) outs(%low : memref<4xf32, strided<[1]>>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<4xf32>) outs(%high : memref<4xf32, strided<[1], offset: 3>>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

#id = affine_map<(i) -> (i)>
#one = affine_map<(i) -> (0)>

// One op reads what the other one writes; a number that all elements share is
// no reason.
// CHECK-LABEL: @apart
// CHECK-COUNT-3: linalg.generic
func.func @apart(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>, %w: memref<4xf32>, %n: memref<1xf32>) {
  linalg.generic {indexing_maps = [#id, #one, #id], iterator_types = ["parallel"]} ins(%x, %n : memref<4xf32>, memref<1xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %y : memref<4xf32>, memref<4xf32>) outs(%z : memref<4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#one, #id], iterator_types = ["parallel"]} ins(%n : memref<1xf32>) outs(%w : memref<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

#id = affine_map<(i) -> (i)>

// An op that looks up elements of a table isn't joined with one that writes the
// table, before it or behind it.
// CHECK-LABEL: @look_up
// CHECK-COUNT-3: linalg.generic
func.func @look_up(%x: memref<4xf32>, %ids: memref<4xi32>, %y: memref<4xf32>, %z: memref<4xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%ids, %x : memref<4xi32>, memref<4xf32>) outs(%z : memref<4xf32>) {
  ^bb0(%id: i32, %a: f32, %o: f32):
    %i = arith.index_cast %id : i32 to index
    %0 = memref.load %y[%i] : memref<4xf32>
    %1 = arith.addf %0, %a : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  return
}
