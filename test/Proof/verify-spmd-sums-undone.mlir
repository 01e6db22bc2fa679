// A sum that takes away what it adds is the rest of it only where that is finite: inf - inf isn't 0. It isn't proven to be the
// sum without both, on either side.

// RUN: split-file %s %t && cd %t
// RUN: tp-opt sum.mlir --tp-parallelize -o sum_ranks.mlir
// RUN: tp-opt undone.mlir --tp-parallelize -o undone_ranks.mlir
// RUN: tp-opt sum_ranks.mlir --tp-verify-spmd=reference=sum.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAME
// RUN: tp-opt undone_ranks.mlir --tp-verify-spmd=reference=undone.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAME
// RUN: not tp-opt undone_ranks.mlir --tp-verify-spmd=reference=sum.mlir -o /dev/null 2>&1 | FileCheck %s
// RUN: not tp-opt sum_ranks.mlir --tp-verify-spmd=reference=undone.mlir -o /dev/null 2>&1 | FileCheck %s
// SAME: remark: 'main' is proven for 2 ranks
// CHECK-NOT: is proven
// CHECK: error: not proven:

//--- sum.mlir
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.add %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

//--- undone.mlir
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.add %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.sub %0, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.add %w, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
