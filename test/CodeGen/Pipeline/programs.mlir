// RUN: tp-opt %s --tp-outline-kernels --tp-plan-arena --convert-tprt-to-calls | FileCheck %s

// The ranks run two programs: equal loops are one kernel, the manifest has the larger arena, and both
// return a status.

// CHECK: tprt.manifest = {arena_bytes = 4096 : i64}

#id = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func @long
// CHECK-SAME: %[[CTX:.+]]: !llvm.ptr {tprt.role = "context"}, %[[X:.+]]: memref<16xf32>, %[[Y:.+]]: memref<16xf32>, %{{.+}}: memref<4096xi8> {tprt.role = "arena"}) -> i32
// CHECK: call @kernel_0(%[[X]], %[[Y]])
// CHECK: call @tprt_collective(%[[CTX]]
func.func @long(%x: memref<16xf32>, %y: memref<16xf32>) attributes {tp.ranks = array<i64: 0>} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<16xf32>) outs(%y : memref<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  }
  %large = memref.alloc() : memref<1024xf32>
  tprt.collective 0 %y : memref<16xf32> into %large : memref<1024xf32>
  return
}

// CHECK-LABEL: func.func @short
// CHECK-SAME: %[[CTX:.+]]: !llvm.ptr {tprt.role = "context"}, %[[X:.+]]: memref<16xf32>, %[[Y:.+]]: memref<0xf32>, %{{.+}}: memref<4096xi8> {tprt.role = "arena"}) -> i32
// CHECK: call @kernel_0(%[[X]]
// CHECK: call @tprt_collective(%[[CTX]]
func.func @short(%x: memref<16xf32>, %y: memref<0xf32>) attributes {tp.ranks = array<i64: 1>} {
  %small = memref.alloc() : memref<16xf32>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<16xf32>) outs(%small : memref<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  }
  tprt.collective 0 %y : memref<0xf32> into %small : memref<16xf32>
  return
}

// CHECK: func.func private @kernel_0
// CHECK-NOT: @kernel_1
