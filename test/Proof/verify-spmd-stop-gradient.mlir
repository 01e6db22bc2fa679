// A stopped gradient is part of what a training step means: programs of the model without it are another step. In a program
// that isn't differentiated it is the identity, and costs nothing: the Partial sum passes it.

// RUN: split-file %s %t && cd %t
// RUN: tp-opt model.mlir --tp-parallelize="plan=plan.yaml train=train.yaml" -o ranks.mlir
// RUN: tp-opt ranks.mlir --tp-verify-spmd="reference=model.mlir train=train.yaml" -o /dev/null 2>&1 | FileCheck %s
// RUN: not tp-opt ranks.mlir --tp-verify-spmd="reference=other.mlir train=train.yaml" -o /dev/null 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: tp-opt model.mlir --tp-parallelize="plan=plan.yaml" -o ranks.mlir
// RUN: FileCheck %s --check-prefix=RANKS < ranks.mlir
// RUN: tp-opt ranks.mlir --tp-verify-spmd="reference=model.mlir" -o /dev/null 2>&1 | FileCheck %s
// RUN: tp-opt ranks.mlir --tp-verify-spmd="reference=other.mlir" -o /dev/null 2>&1 | FileCheck %s

// CHECK: remark: 'main' is proven for 2 ranks
// OTHER: error: not proven

// RANKS-NOT: nn.stop_gradient
// RANKS: tp.all_reduce
// RANKS-NOT: tp.all_reduce
// RANKS: return

//--- model.mlir
func.func @main(%x: tensor<4x8xf32> {tp.name = "x"}) -> tensor<f32> {
  %w = nn.parameter "w" : tensor<6x8xf32>
  %y = nn.linear %x, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %t = nn.tanh %y : tensor<4x6xf32>
  %s = nn.stop_gradient %t : tensor<4x6xf32>
  %m = nn.mul %y, %s : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %l = nn.reduce sum %m dims [0, 1] : tensor<4x6xf32> -> tensor<f32>
  return %l : tensor<f32>
}

//--- other.mlir
func.func @main(%x: tensor<4x8xf32> {tp.name = "x"}) -> tensor<f32> {
  %w = nn.parameter "w" : tensor<6x8xf32>
  %y = nn.linear %x, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %t = nn.tanh %y : tensor<4x6xf32>
  %m = nn.mul %y, %t : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %l = nn.reduce sum %m dims [0, 1] : tensor<4x6xf32> -> tensor<f32>
  return %l : tensor<f32>
}

//--- plan.yaml
mesh: {tp: 2}
plan: {w: Shard(0)}

//--- train.yaml
loss: output
optimizer: SGD
