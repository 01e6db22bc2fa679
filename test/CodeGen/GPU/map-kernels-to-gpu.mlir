// RUN: tp-opt %s --tp-map-kernels-to-gpu --canonicalize --cse --split-input-file | FileCheck %s

// An elementwise op: loops that are contiguous become one, a thread has the elements of 128 bits, and the last block's last threads nothing to do.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

// CHECK-LABEL: func.func @main
// CHECK: gpu.launch_func{{ +}}@kernels::@add blocks in (%c2, %c1, %c1) threads in (%c256, %c1, %c1){{ +}}args(%arg0 : memref<30x40xf32>, %arg1 : memref<30x40xf32>)
// CHECK: gpu.launch_func{{ +}}@kernels::@add {{.*}}{{ +}}args(%arg1 : memref<30x40xf32>, %arg0 : memref<30x40xf32>)
// CHECK-NOT: func.func
// CHECK: gpu.func @add(%[[A:.+]]: memref<30x40xf32> {llvm.align = 64 : i64, llvm.noalias}, %[[B:.+]]: memref<30x40xf32> {llvm.noalias}) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 2, 1, 1>}
// CHECK: %[[THREAD:.+]] = arith.addi
// CHECK: %[[FROM:.+]] = memref.reinterpret_cast %[[A]] to offset: [0], sizes: [1200], strides: [1]
// CHECK: %[[TO:.+]] = memref.reinterpret_cast %[[B]] to offset: [0], sizes: [1200], strides: [1]
// CHECK: %[[SOME:.+]] = arith.cmpi ult, %[[THREAD]], %c300
// CHECK: scf.if %[[SOME]]
// CHECK: %[[FIRST:.+]] = arith.muli %[[THREAD]], %c4
// CHECK: vector.load %[[TO]][%[[FIRST]]] {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK: vector.load %[[FROM]][%[[FIRST]]] {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK-COUNT-4: arith.addf
// CHECK: vector.store {{.*}}, %[[TO]][%[[FIRST]]] {alignment = 16 : i64} : {{.*}}, vector<4xf32>
func.func @main(%a: memref<30x40xf32> {tprt.role = "input"}, %b: memref<30x40xf32> {tprt.role = "output"}) {
  call @add(%a, %b) : (memref<30x40xf32>, memref<30x40xf32>) -> ()
  call @add(%b, %a) : (memref<30x40xf32>, memref<30x40xf32>) -> ()
  return
}
func.func private @add(%a: memref<30x40xf32> {llvm.align = 64 : i64, llvm.noalias}, %b: memref<30x40xf32> {llvm.noalias}) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : memref<30x40xf32>) outs(%b : memref<30x40xf32>) {
  ^bb0(%x: f32, %o: f32):
    %0 = arith.addf %x, %o : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#swap = affine_map<(i, j) -> (j, i)>
#bias = affine_map<(i, j) -> (j)>

// A transposed operand is loaded along memory, 128 bits at a time, into a tile of shared memory, whose rows are an element longer; after a barrier
// the results are computed along theirs, from the tile and from what isn't transposed. What has an odd size is loaded element by element.

// CHECK-LABEL: gpu.func @mixed
// CHECK-SAME: workgroup(%[[TILE:.+]] : memref<16x17xbf16, #gpu.address_space<workgroup>> {llvm.align = 64 : i64})
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 1, 1, 1>
// CHECK: %[[SOME:.+]] = arith.cmpi ult, %thread_id_x, %c32
// CHECK: scf.if %[[SOME]]
// CHECK: vector.load {{.*}} {alignment = 16 : i64} : memref<256xbf16, strided<[1]>>, vector<8xbf16>
// CHECK-COUNT-8: memref.store %{{.+}}, %[[TILE]]
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK-COUNT-4: memref.load %[[TILE]]
// CHECK: vector.load %arg1{{.*}} vector<4xf32>
// CHECK: vector.store {{.*}} vector<4xf32>
// CHECK: gpu.func @odd
// CHECK: memref.load {{.*}} : memref<105xf32, strided<[1]>>
// CHECK: memref.store
func.func @main(%a: memref<16x16xbf16>, %b: memref<16xf32>, %c: memref<16x16xf32>, %d: memref<15x7xf32>) {
  call @mixed(%a, %b, %c) : (memref<16x16xbf16>, memref<16xf32>, memref<16x16xf32>) -> ()
  call @odd(%d) : (memref<15x7xf32>) -> ()
  return
}
func.func private @mixed(%a: memref<16x16xbf16>, %b: memref<16xf32>, %c: memref<16x16xf32>) {
  linalg.generic {indexing_maps = [#swap, #bias, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : memref<16x16xbf16>, memref<16xf32>) outs(%c : memref<16x16xf32>) {
  ^bb0(%x: bf16, %y: f32, %o: f32):
    %0 = arith.extf %x : bf16 to f32
    %1 = arith.addf %0, %y : f32
    linalg.yield %1 : f32
  }
  return
}
func.func private @odd(%d: memref<15x7xf32>) {
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%d : memref<15x7xf32>) {
  ^bb0(%o: f32):
    %0 = arith.negf %o : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#v = affine_map<(j) -> (j)>
#s = affine_map<(j) -> ()>
#0 = affine_map<() -> ()>

// Rows of 128: a team of half a warp each, eight in a block. The sum is in registers; what a thread writes it reads itself, without a barrier.

// CHECK-LABEL: gpu.func @softmax
// CHECK-SAME: workgroup(%[[SHARED:.+]] : memref<4096xi8, #gpu.address_space<workgroup>> {llvm.align = 64 : i64})
// CHECK-SAME: known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 2, 1, 1>
// CHECK: %[[TEAM:.+]] = arith.divui %thread_id_x, %c16
// CHECK: %[[THREAD:.+]] = arith.remui %thread_id_x, %c16
// CHECK: %[[ROW:.+]] = arith.addi %{{.+}}, %[[TEAM]]
// CHECK: %[[ACTIVE:.+]] = arith.cmpi ult, %[[ROW]], %c10
// CHECK: arith.minui %[[ROW]], %c9
// CHECK: %[[E:.+]] = memref.view
// CHECK: scf.if %[[ACTIVE]]
// CHECK: scf.for %[[I:.+]] = %c0 to %c2 step %c1
// CHECK: %[[ROUND:.+]] = arith.muli %[[I]], %c16
// CHECK: arith.addi %[[THREAD]], %[[ROUND]]
// CHECK: math.exp
// CHECK: vector.store {{.*}}, %[[E]]
// CHECK-NOT: gpu.barrier
// CHECK: scf.for %{{.+}} = %c0 to %c2 step %c1 iter_args
// CHECK: vector.load %[[E]]
// CHECK-COUNT-4: arith.addf
// CHECK: gpu.shuffle{{ +}}xor %{{.+}}, %c8_i32, %c32_i32
// CHECK: gpu.shuffle{{ +}}xor %{{.+}}, %c4_i32, %c32_i32
// CHECK: gpu.shuffle{{ +}}xor %{{.+}}, %c2_i32, %c32_i32
// CHECK: gpu.shuffle{{ +}}xor %{{.+}}, %c1_i32, %c32_i32
// CHECK-NOT: gpu.barrier
// CHECK: scf.if %[[ACTIVE]]
// CHECK: vector.load %[[E]]
// CHECK: arith.divf
func.func @main(%a: memref<10x128xf32>, %b: memref<10x128xf32>) {
  call @softmax(%a, %b) : (memref<10x128xf32>, memref<10x128xf32>) -> ()
  return
}
func.func private @softmax(%a: memref<10x128xf32>, %b: memref<10x128xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %sum = memref.alloca() : memref<f32>
  %e = memref.alloca() : memref<128xf32>
  scf.for %i = %c0 to %c10 step %c1 {
    %x = memref.subview %a[%i, 0] [1, 128] [1, 1] : memref<10x128xf32> to memref<128xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%x : memref<128xf32, strided<[1], offset: ?>>) outs(%e : memref<128xf32>) {
    ^bb0(%in: f32, %o: f32):
      %0 = math.exp %in : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#0, #0], iterator_types = []} ins(%zero : f32) outs(%sum : memref<f32>) {
    ^bb0(%in: f32, %o: f32):
      linalg.yield %in : f32
    }
    linalg.generic {indexing_maps = [#v, #s], iterator_types = ["reduction"]} ins(%e : memref<128xf32>) outs(%sum : memref<f32>) {
    ^bb0(%in: f32, %o: f32):
      %0 = arith.addf %o, %in fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    %y = memref.subview %b[%i, 0] [1, 128] [1, 1] : memref<10x128xf32> to memref<128xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [#v, #s, #v], iterator_types = ["parallel"]} ins(%e, %sum : memref<128xf32>, memref<f32>) outs(%y : memref<128xf32, strided<[1], offset: ?>>) {
    ^bb0(%in: f32, %t: f32, %o: f32):
      %0 = arith.divf %in, %t : f32
      linalg.yield %0 : f32
    }
  }
  return
}

// -----

#in = affine_map<(i, j) -> (j, i)>
#out = affine_map<(i, j) -> (i)>

// Sums over the rows of a matrix: consecutive threads have consecutive columns, and partial sums meet in shared memory.

// CHECK-LABEL: gpu.func @columns
// CHECK-SAME: workgroup(%[[SHARED:.+]] : memref<1024xf32, #gpu.address_space<workgroup>> {llvm.align = 64 : i64})
// CHECK-SAME: known_block_size = array<i32: 1024, 1, 1>, known_grid_size = array<i32: 2, 1, 1>
// CHECK: %[[THREAD:.+]] = arith.divui %thread_id_x, %c32
// CHECK: %[[LANE:.+]] = arith.remui %thread_id_x, %c32
// CHECK: %[[COLUMN:.+]] = arith.addi %{{.+}}, %[[LANE]]
// CHECK: %[[SUM:.+]] = scf.for %[[I:.+]] = %c0 to %c16 step %c1
// CHECK: %[[ROUND:.+]] = arith.muli %[[I]], %c32
// CHECK: %[[PART:.+]] = arith.addi %[[THREAD]], %[[ROUND]]
// CHECK: %[[ROW:.+]] = arith.muli %[[PART]], %c64
// CHECK: %[[AT:.+]] = arith.addi %[[COLUMN]], %[[ROW]]
// CHECK: memref.load %{{.+}}[%[[AT]]]
// CHECK: memref.store %[[SUM]], %[[SHARED]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[SHARED]][%[[LANE]]]
// CHECK: scf.for {{.*}} = %c1 to %c32 step %c1
func.func @main(%a: memref<512x64xf32>, %b: memref<64xf32>) {
  call @columns(%a, %b) : (memref<512x64xf32>, memref<64xf32>) -> ()
  return
}
func.func private @columns(%a: memref<512x64xf32>, %b: memref<64xf32>) {
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]} ins(%a : memref<512x64xf32>) outs(%b : memref<64xf32>) {
  ^bb0(%x: f32, %o: f32):
    %0 = arith.addf %o, %x fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#in = affine_map<(i, j) -> (i, j)>
#out = affine_map<(i, j) -> (i)>

// Long rows: a block each, warps first, then their sums. Without leave to reassociate each thread adds up the row in order.

// CHECK-LABEL: gpu.func @rows
// CHECK-SAME: known_block_size = array<i32: 1024, 1, 1>, known_grid_size = array<i32: 4, 1, 1>
// CHECK: scf.for %{{.+}} = %thread_id_x to %c8000 step %c1024
// CHECK-COUNT-5: gpu.shuffle
// CHECK: %[[FIRST:.+]] = arith.cmpi eq, %{{.+}}, %c0
// CHECK: scf.if %[[FIRST]]
// CHECK: memref.store
// CHECK: gpu.barrier
// CHECK: scf.for
// CHECK: arith.maximumf
// CHECK: gpu.func @ordered
// CHECK-NOT: gpu.shuffle
// CHECK: scf.for %{{.+}} = %c0 to %c32000 step %c1
func.func @main(%a: memref<4x32000xf32>, %b: memref<4xf32>) {
  call @rows(%a, %b) : (memref<4x32000xf32>, memref<4xf32>) -> ()
  call @ordered(%a, %b) : (memref<4x32000xf32>, memref<4xf32>) -> ()
  return
}
func.func private @rows(%a: memref<4x32000xf32>, %b: memref<4xf32>) {
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]} ins(%a : memref<4x32000xf32>) outs(%b : memref<4xf32>) {
  ^bb0(%x: f32, %o: f32):
    %0 = arith.maximumf %o, %x : f32
    linalg.yield %0 : f32
  }
  return
}
func.func private @ordered(%a: memref<4x32000xf32>, %b: memref<4xf32>) {
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]} ins(%a : memref<4x32000xf32>) outs(%b : memref<4xf32>) {
  ^bb0(%x: f32, %o: f32):
    %0 = arith.addf %o, %x : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Scattered sums: rows keep their order, columns are spread. Indices are checked by a kernel of their own; a number that the program knows is the
// runtime's to store.

// CHECK: module attributes {gpu.container_module}
// CHECK-LABEL: func.func @main
// CHECK: tprt.fill %{{.+}} into %{{.+}} : memref<i64>
// CHECK: %[[ELEMENT:.+]] = memref.subview %{{.+}}[2] [1] [1] : memref<4xi64> to memref<i64, strided<[], offset: 2>>
// CHECK: tprt.fill %{{.+}} into %[[ELEMENT]] : memref<i64, strided<[], offset: 2>>
// CHECK: gpu.launch_func{{ +}}@kernels::@scatter
// CHECK: %[[RECORD:.+]] = tprt.error_record : !llvm.ptr
// CHECK: %[[SITE:.+]] = tprt.site "emb: scatter"
// CHECK: gpu.launch_func{{ +}}@kernels::@check_0 {{.*}}{{ +}}args(%{{.+}} : !llvm.ptr, %[[RECORD]] : !llvm.ptr, %[[SITE]] : i32, %c20_i64 : i64)
// CHECK: gpu.func @scatter
// CHECK: %[[THREAD:.+]] = arith.addi
// CHECK: scf.for %{{.+}} = %c0 to %c8 step %c1
// CHECK: scf.for %{{.+}} = %[[THREAD]] to %c48 step %c64
// CHECK: gpu.func @check_0
// CHECK: %[[BAD:.+]] = arith.cmpi uge
// CHECK: scf.if %[[BAD]]
// CHECK: llvm.cmpxchg
func.func @main(%ids: memref<8xi64>, %g: memref<8x48xf32>, %table: memref<20x48xf32>, %rank: memref<i64>, %list: memref<4xi64>, %v: i64) {
  %c2 = arith.constant 2 : index
  memref.store %v, %rank[] : memref<i64>
  memref.store %v, %list[%c2] : memref<4xi64>
  call @scatter(%ids, %g, %table) : (memref<8xi64>, memref<8x48xf32>, memref<20x48xf32>) -> ()
  tprt.check_index %ids below 20 what "emb: scatter" : memref<8xi64>
  return
}
func.func private @scatter(%ids: memref<8xi64>, %g: memref<8x48xf32>, %table: memref<20x48xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c48 = arith.constant 48 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %id = memref.load %ids[%i] : memref<8xi64>
    %row = arith.index_cast %id : i64 to index
    scf.for %j = %c0 to %c48 step %c1 {
      %old = memref.load %table[%row, %j] : memref<20x48xf32>
      %more = memref.load %g[%i, %j] : memref<8x48xf32>
      %new = arith.addf %old, %more : f32
      memref.store %new, %table[%row, %j] : memref<20x48xf32>
    }
  }
  return
}
