// A column-parallel layer, a row-parallel one and their all-reduce, on two ranks,
// equal NumPy. Compiled for a CPU of 2013 too, and for several at a time.

// REQUIRES: tp-compile, tp-run
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: %python %S/Inputs/mlp.py
// RUN: tp-compile %s -o mlp.tpx
// RUN: tp-run mlp.tpx --weights w.safetensors --input x=x.npy --expect y=y.npy --rtol 1e-5 --atol 1e-6
// RUN: tp-compile %s --target-cpu=x86-64-v3 -O1 -o old.tpx
// RUN: tp-run old.tpx --weights w.safetensors --input x=x.npy --expect y=y.npy --rtol 1e-5 --atol 1e-6
// RUN: tp-compile %s --target-cpu=x86-64,x86-64-v3,x86-64-v4 -o many.tpx
// RUN: tp-run many.tpx --weights w.safetensors --input x=x.npy --expect y=y.npy --rtol 1e-5 --atol 1e-6
// RUN: tp-compile %s --target-cpu=x86-64-v3,x86-64-v4 --emit=manifest -o - | FileCheck %s --check-prefix=VARIANTS
// RUN: not tp-compile %s --target-cpu=x86-64-v3,x86-64-v4 --emit=llvm -o - 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: tp-compile %s --emit=manifest -o - | FileCheck %s --check-prefix=MANIFEST
// RUN: tp-compile %s --emit=llvm -o - | FileCheck %s --check-prefix=LLVM
// RUN: tp-compile %s --emit=mlir -o - | FileCheck %s --check-prefix=MLIR

// MANIFEST: "programs":[{"arena_bytes":{{[0-9]+}},"collectives":[{"axes":["tp"],"bytes_by_rank":[96,96],
// MANIFEST-SAME: "fqn":"net2",{{.*}}"kind":"all_reduce"
// MANIFEST-SAME: "entries":["tpx_main"]
// MANIFEST-SAME: "name":"mlp"
// MANIFEST-SAME: "parameters":[0,1,2,3]
// MANIFEST-SAME: "schema":5
// MANIFEST-SAME: "world_size":2
// VARIANTS: "entries":["tpx_main","tpx_main_1"]
// VARIANTS-SAME: "target":{"cpu":"x86-64-v3",{{.*}}"variants":[{"cpu":"x86-64-v4","features":[{{.*}}"+avx512bw"
// ONE: error: LLVM IR and objects are for one CPU, not 2
// LLVM: define i32 @tpx_main
// MLIR: llvm.func @tpx_main
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<8x4xf32> {tp.name = "x"}) -> (tensor<8x3xf32> {tp.name = "y"}) {
  %w1 = nn.parameter "net1.weight" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>, tp.global_type = tensor<16x4xf32>} : tensor<8x4xf32>
  %b1 = nn.parameter "net1.bias" {tp.sharding = #tp.sharding<@mesh, [{tp}]>, tp.global_type = tensor<16xf32>} : tensor<8xf32>
  %0 = nn.linear %x, %w1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %1 = nn.add %0, %b1 : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  %2 = nn.relu %1 : tensor<8x8xf32>
  %w2 = nn.parameter "net2.weight" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>, tp.global_type = tensor<3x16xf32>} : tensor<3x8xf32>
  %b2 = nn.parameter "net2.bias" : tensor<3xf32>
  %3 = nn.linear %2, %w2 : (tensor<8x8xf32>, tensor<3x8xf32>) -> tensor<8x3xf32>
  %4 = tp.all_reduce sum %3 over @mesh {tp} {fqn = "net2", reason = "plan.yaml:3:9: RowwiseParallel"} : tensor<8x3xf32>
  %5 = nn.add %4, %b2 : (tensor<8x3xf32>, tensor<3xf32>) -> tensor<8x3xf32>
  return %5 : tensor<8x3xf32>
}
