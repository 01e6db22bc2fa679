// The attributes of parameters are checked in each program of uneven blocks.
//
// RUN: tp-opt %s --tp-parallelize -o %t.mlir
// RUN: tp-opt %t.mlir --tp-verify-spmd=reference=%s -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROVEN
// PROVEN: remark: 'main' is proven for 2 ranks

// DEFINE: %{parameter} = {tp.global_type = tensor<4x4xf32>, tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<4x2xf32>
// DEFINE: %{verify} = not tp-opt %t.bad.mlir --tp-verify-spmd="reference=%s accept-tested" -o /dev/null 2>&1 | FileCheck %s

// RUN: sed -e '/func.func @main_0/,$ s/%1 = nn.linear/%again = nn.parameter "ghost" %{parameter}\n%1 = nn.linear/' %t.mlir > %t.bad.mlir
// RUN: %{verify} --check-prefix=GHOST
// GHOST: error: not proven, for ranks 1: parameter 'ghost' isn't in the reference

// RUN: sed -e '/func.func @main_0/,$ s/%1 = nn.linear/%again = nn.parameter "w" %{parameter}\n%1 = nn.linear/' %t.mlir > %t.bad.mlir
// RUN: %{verify} --check-prefix=TWICE
// TWICE: error: not proven, for ranks 1: parameter 'w' has two placements, but a rank holds one block of it

tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<5x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<5x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  %w = nn.parameter "w" : tensor<4x4xf32>
  %0 = nn.linear %x, %w : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  return %0 : tensor<5x4xf32>
}
