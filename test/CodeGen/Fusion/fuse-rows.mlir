// RUN: tp-opt %s --tp-fuse-rows --split-input-file | FileCheck %s

// The row maximum, the exponentials and their sum share the loop over rows; the
// buffers of one number per row become one number.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: @softmax
// CHECK-SAME: %[[X:.+]]: memref<8x16xf32>, %[[Y:.+]]: memref<8x16xf32>
// CHECK-DAG: %[[MAX:.+]] = memref.alloc() : memref<f32>
// CHECK: scf.for %[[I:.+]] = %c0{{.*}} to %c8{{.*}} step %c1
// CHECK-NEXT: linalg.generic {{.*}} outs(%[[MAX]] : memref<f32>)
// CHECK: %[[XROW:.+]] = memref.subview %[[X]][%[[I]], 0] [1, 16] [1, 1]
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction"]} ins(%[[XROW]] : {{.*}}) outs(%[[MAX]] : memref<f32>)
// CHECK: %[[YROW:.+]] = memref.subview %[[Y]][%[[I]], 0] [1, 16] [1, 1]
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel"]} ins({{.*}}, %[[MAX]] : {{.*}}) outs(%[[YROW]]
// CHECK-NOT: scf.for
func.func @softmax(%x: memref<8x16xf32>, %y: memref<8x16xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %max = memref.alloc() : memref<8xf32>
  linalg.fill ins(%low : f32) outs(%max : memref<8xf32>)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x16xf32>) outs(%max : memref<8xf32>) {
  ^bb0(%a: f32, %m: f32):
    %0 = arith.maximumf %a, %m : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max : memref<8x16xf32>, memref<8xf32>) outs(%y : memref<8x16xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %0 = arith.subf %a, %m : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// The second op reads rows that the first has written in other iterations.

#id = affine_map<(i, j) -> (i, j)>
#transposed = affine_map<(i, j) -> (j, i)>

// CHECK-LABEL: @transpose
// CHECK-NOT: scf.for
// CHECK-COUNT-2: linalg.generic
func.func @transpose(%x: memref<8x8xf32>, %y: memref<8x8xf32>, %z: memref<8x8xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#transposed, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y : memref<8x8xf32>) outs(%z : memref<8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Two views of one buffer: nothing is known about their rows. An op with side
// effects in between keeps its place.

#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: @views
// CHECK-NOT: scf.for
// CHECK: tprt.collective
// CHECK-NOT: scf.for
// CHECK: return
func.func @views(%x: memref<8x8xf32>, %y: memref<8x16xf32>) {
  %v = memref.subview %y[0, 0] [8, 8] [1, 1] : memref<8x16xf32> to memref<8x8xf32, strided<[16, 1]>>
  %w = memref.subview %y[0, 4] [8, 8] [1, 1] : memref<8x16xf32> to memref<8x8xf32, strided<[16, 1], offset: 4>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x8xf32>) outs(%v : memref<8x8xf32, strided<[16, 1]>>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x8xf32>) outs(%w : memref<8x8xf32, strided<[16, 1], offset: 4>>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  tprt.collective 0 into %x : memref<8x8xf32>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x8xf32>) outs(%w : memref<8x8xf32, strided<[16, 1], offset: 4>>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

// Indices keep counting the loops of before.

#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: @indices
// CHECK: scf.for %[[I:.+]] =
// CHECK: linalg.generic
// CHECK: %[[J:.+]] = linalg.index 0
// CHECK: arith.addi %[[I]], %[[J]]
func.func @indices(%x: memref<8x16xindex>, %y: memref<8x16xindex>) {
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%x : memref<8x16xindex>) {
  ^bb0(%o: index):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %0 = arith.addi %i, %j : index
    linalg.yield %0 : index
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x16xindex>) outs(%y : memref<8x16xindex>) {
  ^bb0(%a: index, %o: index):
    linalg.yield %a : index
  }
  return
}

// -----

// A copy of a buffer to itself, and loops without iterations, go away.

// CHECK-LABEL: @nothing
// CHECK-NEXT: return
func.func @nothing(%x: memref<8xf32>, %y: memref<0x8xf32>, %z: memref<0x8xf32>) {
  memref.copy %x, %x : memref<8xf32> to memref<8xf32>
  memref.copy %y, %z : memref<0x8xf32> to memref<0x8xf32>
  return
}

// -----

// A sum over rows walks along memory, not down the columns, which it would share with what sets it up.

#columns = affine_map<(c, r) -> (r, c)>
#sum = affine_map<(c, r) -> (c)>

// CHECK-LABEL: @columns
// CHECK-NOT: scf.for
// CHECK-COUNT-2: linalg.generic
func.func @columns(%x: memref<8x16xf32>, %y: memref<16xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<16xf32>)
  linalg.generic {indexing_maps = [#columns, #sum], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x16xf32>) outs(%y : memref<16xf32>) {
  ^bb0(%a: f32, %s: f32):
    %0 = arith.addf %a, %s : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Two numbers of each row are no reason to go down the columns.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: @deviations
// CHECK: scf.for
// CHECK: linalg.generic
// CHECK: linalg.generic {{.*}}["reduction"]
func.func @deviations(%x: memref<8x16xf32>, %mean: memref<8xf32>, %y: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<8xf32>)
  linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %mean : memref<8x16xf32>, memref<8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%a: f32, %m: f32, %s: f32):
    %0 = arith.subf %a, %m : f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %1, %s : f32
    linalg.yield %2 : f32
  }
  return
}

// -----

// An op without iterations goes, also where it has results.

// CHECK-LABEL: @empty
// CHECK-SAME: %[[X:.+]]: tensor<0xf32>
// CHECK: %[[E:.+]] = tensor.empty
// CHECK-NEXT: nn.reduce sum %[[E]]
func.func @empty(%x: tensor<0xf32>) -> tensor<f32> {
  %e = tensor.empty() : tensor<0xf32>
  %0 = linalg.exp ins(%x : tensor<0xf32>) outs(%e : tensor<0xf32>) -> tensor<0xf32>
  %1 = nn.reduce sum %0 dims [0] : tensor<0xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// The second op looks up rows that other iterations of the first one write; the
// third op's table isn't written here.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: @look_up
// CHECK-NOT: scf.for
// CHECK: linalg.generic
// CHECK: scf.for
// CHECK-COUNT-2: linalg.generic
func.func @look_up(%x: memref<8x8xf32>, %ids: memref<8xi32>, %table: memref<8x8xf32>, %y: memref<8x8xf32>, %z: memref<8x8xf32>, %w: memref<8x8xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#row, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%ids, %x : memref<8xi32>, memref<8x8xf32>) outs(%z : memref<8x8xf32>) {
  ^bb0(%id: i32, %a: f32, %o: f32):
    %i = arith.index_cast %id : i32 to index
    %j = linalg.index 1 : index
    %0 = memref.load %y[%i, %j] : memref<8x8xf32>
    %1 = arith.addf %0, %a : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#row, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%ids, %z : memref<8xi32>, memref<8x8xf32>) outs(%w : memref<8x8xf32>) {
  ^bb0(%id: i32, %a: f32, %o: f32):
    %i = arith.index_cast %id : i32 to index
    %j = linalg.index 1 : index
    %0 = memref.load %table[%i, %j] : memref<8x8xf32>
    %1 = arith.addf %0, %a : f32
    linalg.yield %1 : f32
  }
  return
}
