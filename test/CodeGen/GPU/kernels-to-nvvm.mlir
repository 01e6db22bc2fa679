// RUN: tp-opt %s --tp-map-kernels-to-gpu --convert-scf-to-cf --convert-kernels-to-nvvm --reconcile-unrealized-casts | FileCheck %s

// Bare pointers, indices of 32 bits, accesses of 128 bits, CUDA's functions, shuffles.

// CHECK-LABEL: gpu.module @kernels
// CHECK: llvm.func @exp(%[[A:.+]]: !llvm.ptr {llvm.noalias}, %[[B:.+]]: !llvm.ptr {llvm.noalias}) attributes {{{.*}}nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>}
// CHECK: nvvm.read.ptx.sreg.tid.x {{.*}}: i32
// CHECK: llvm.load %{{.+}} {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
// CHECK-COUNT-4: llvm.call @__nv_expf
// CHECK: llvm.store %{{.+}}, %{{.+}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr
// CHECK: llvm.func @sum
// CHECK-COUNT-5: nvvm.shfl.sync bfly

#id = affine_map<(i) -> (i)>
#in = affine_map<(i, j) -> (i, j)>
#out = affine_map<(i, j) -> (i)>

func.func @main(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64x256xf32>) {
  call @exp(%a, %b) : (memref<64xf32>, memref<64xf32>) -> ()
  call @sum(%c, %b) : (memref<64x256xf32>, memref<64xf32>) -> ()
  return
}
func.func private @exp(%a: memref<64xf32> {llvm.noalias}, %b: memref<64xf32> {llvm.noalias}) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%a : memref<64xf32>) outs(%b : memref<64xf32>) {
  ^bb0(%x: f32, %o: f32):
    %0 = math.exp %x : f32
    linalg.yield %0 : f32
  }
  return
}
func.func private @sum(%c: memref<64x256xf32>, %b: memref<64xf32>) {
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]} ins(%c : memref<64x256xf32>) outs(%b : memref<64xf32>) {
  ^bb0(%x: f32, %o: f32):
    %0 = arith.addf %o, %x fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}
