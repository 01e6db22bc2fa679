// The pipeline's option `gradients` differentiates a program that has a plan, with respect to its parameters and its float arguments.
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-parallelize="plan=%t/plan.yaml gradients" | FileCheck %s
// RUN: tp-opt %t/model.mlir --tp-parallelize="plan=%t/plan.yaml" | FileCheck %s --check-prefix=FORWARD
// RUN: not tp-opt %t/vector.mlir --tp-parallelize="plan=%t/plan.yaml gradients" 2>&1 | FileCheck %s --check-prefix=VECTOR

// A gradient is placed like its parameter: each rank has those of its own rows. That of the input is summed over the ranks.
// CHECK: func.func @main(%arg0: tensor<4x8xf32> {{{.*}}}) -> (tensor<f32> {{{.*}}}, tensor<3x8xf32> {tp.global_type = tensor<6x8xf32>, tp.name = "grad.w1.weight"
// CHECK-SAME: tensor<4x8xf32> {tp.global_type = tensor<4x8xf32>, tp.name = "grad.x"
// CHECK: tp.all_reduce sum

// FORWARD: func.func @main
// FORWARD-NOT: grad.

// VECTOR: error: {{.*}}scalar

//--- plan.yaml
mesh: {tp: 2}
plan:
  w1: ColwiseParallel

//--- model.mlir
func.func @main(%x: tensor<4x8xf32> {tp.name = "x"}) -> tensor<f32> {
  %y = nn.module "w1" class "Linear" (%x as "input" at 0) {
  ^bb0(%a: tensor<4x8xf32>):
    %w = nn.parameter "w1.weight" : tensor<6x8xf32>
    %l = nn.linear %a, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
    nn.yield %l : tensor<4x6xf32>
  } : (tensor<4x8xf32>) -> tensor<4x6xf32>
  %s = nn.sigmoid %y : tensor<4x6xf32>
  %loss = nn.reduce sum %s dims [0, 1] : tensor<4x6xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

//--- vector.mlir
func.func @main(%x: tensor<4x8xf32> {tp.name = "x"}) -> tensor<4x6xf32> {
  %y = nn.module "w1" class "Linear" (%x as "input" at 0) {
  ^bb0(%a: tensor<4x8xf32>):
    %w = nn.parameter "w1.weight" : tensor<6x8xf32>
    %l = nn.linear %a, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
    nn.yield %l : tensor<4x6xf32>
  } : (tensor<4x8xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
