// RUN: tp-opt %s --tp-map-kernels-to-gpu --canonicalize --cse | FileCheck %s

// A looked-up row is read in vectors; rows of odd length are read element by element.

// CHECK-LABEL: gpu.func @rows
// CHECK: vector.load %{{.+}}[%{{.+}}, %{{.+}}] {alignment = 16 : i64} : memref<9x64xbf16>, vector<8xbf16>
// CHECK-NOT: memref.load %{{.*}} : memref<9x64xbf16>
// CHECK: vector.store
// CHECK-LABEL: gpu.func @odd
// CHECK-NOT: vector.load {{.*}} : memref<9x65xbf16>
// CHECK-COUNT-8: memref.load {{.*}} : memref<9x65xbf16>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%ids: memref<5xi64>, %a: memref<9x64xbf16>, %b: memref<9x65xbf16>, %y: memref<5x64xbf16>) {
  call @rows(%ids, %a, %y) : (memref<5xi64>, memref<9x64xbf16>, memref<5x64xbf16>) -> ()
  call @odd(%ids, %b, %y) : (memref<5xi64>, memref<9x65xbf16>, memref<5x64xbf16>) -> ()
  return
}
func.func private @rows(%ids: memref<5xi64>, %table: memref<9x64xbf16>, %y: memref<5x64xbf16>) {
  linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%ids : memref<5xi64>) outs(%y : memref<5x64xbf16>) {
  ^bb0(%id: i64, %o: bf16):
    %i = arith.index_cast %id : i64 to index
    %j = linalg.index 1 : index
    %0 = memref.load %table[%i, %j] : memref<9x64xbf16>
    linalg.yield %0 : bf16
  }
  return
}
func.func private @odd(%ids: memref<5xi64>, %table: memref<9x65xbf16>, %y: memref<5x64xbf16>) {
  linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%ids : memref<5xi64>) outs(%y : memref<5x64xbf16>) {
  ^bb0(%id: i64, %o: bf16):
    %i = arith.index_cast %id : i64 to index
    %j = linalg.index 1 : index
    %0 = memref.load %table[%i, %j] : memref<9x65xbf16>
    linalg.yield %0 : bf16
  }
  return
}
