// Experts in a stage of a pipeline are proven, as they are without stages: reshapes of a stage that undo each other stay, and
// only those around a transfer are left out. An error is about the programs, not about forms of the reference that can't be made.
// RUN: split-file %s %t && cd %t
// RUN: tp-opt model.mlir --tp-parallelize=plan=plan.yaml -o ranks.mlir
// RUN: tp-opt ranks.mlir --tp-verify-spmd=reference=model.mlir -o out.mlir 2>&1 | FileCheck %s --check-prefix=PROVEN --implicit-check-not=error:
// RUN: tp-opt model.mlir --tp-parallelize="plan=plan.yaml train=train.yaml" -o train.mlir
// RUN: tp-opt train.mlir --tp-verify-spmd="reference=model.mlir train=train.yaml" -o out.mlir 2>&1 | FileCheck %s --check-prefix=PROVEN --implicit-check-not=error:
// PROVEN: remark: 'main' is proven for 4 ranks

// The second expert has one row less.
// RUN: sed 's/dense<\[2, 4, 6, 8\]>/dense<[2, 3, 6, 8]>/' ranks.mlir > bounds.mlir
// RUN: not tp-opt bounds.mlir --tp-verify-spmd="reference=model.mlir max-operations=0" -o out.mlir 2>&1 | FileCheck %s --check-prefix=WRONG --implicit-check-not='number of parts'
// WRONG: error: not proven

//--- plan.yaml
mesh: {ep: 2, pp: 2}
pipeline: {pp: {split: [experts], microbatches: 2}}
expert_parallel: {ep: all_to_all}

//--- train.yaml
loss: mse
optimizer: {name: SGD, lr: 0.1}

//--- model.mlir
func.func @main(%x: tensor<4x8xf32> {tp.name = "x"}, %ids: tensor<4x2xi64> {tp.name = "ids"}) -> tensor<4x8xf32> {
  %h = nn.module "in" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<4x8xf32>):
    %v = nn.parameter "in.weight" : tensor<8x8xf32>
    %l = nn.linear %input, %v : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    nn.yield %l : tensor<4x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = nn.module "experts" class "Experts" (%h as "x" at 0, %ids as "ids" at 1) {
  ^bb0(%t: tensor<4x8xf32>, %i: tensor<4x2xi64>):
    %flat = nn.reshape %i : tensor<4x2xi64> -> tensor<8xi64>
    %sorted, %order = nn.sort %flat dim 0 count 8 : tensor<8xi64> -> (tensor<8xi64>, tensor<8xi64>)
    %k = nn.constant dense<2> : tensor<i64>
    %token = nn.floor_div %order, %k : (tensor<8xi64>, tensor<i64>) -> tensor<8xi64>
    %rows = nn.index_select %t, %token dim 0 : (tensor<4x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
    %ends = nn.constant dense<[2, 4, 6, 8]> : tensor<4xi32>
    %zero = nn.constant dense<0> : tensor<1xi32>
    %bounds = nn.concat %zero, %ends dim 0 : (tensor<1xi32>, tensor<4xi32>) -> tensor<5xi32>
    %w = nn.parameter "experts.w" : tensor<4x8x8xf32>
    %y = nn.grouped_matmul %rows, %w bounds %bounds : (tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<5xi32>) -> tensor<8x8xf32>
    %none = nn.constant dense<0> : tensor<8xi64>
    %places = nn.iota dim 0 start 0.000000e+00 step 1.000000e+00 : tensor<8xi64>
    %inverse = nn.scatter copy %none, %order, %places dim 0 : (tensor<8xi64>, tensor<8xi64>, tensor<8xi64>)
    %back = nn.index_select %y, %inverse dim 0 : (tensor<8x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
    %by = nn.reshape %back : tensor<8x8xf32> -> tensor<4x2x8xf32>
    %sum = nn.reduce sum %by dims [1] : tensor<4x2x8xf32> -> tensor<4x8xf32>
    nn.yield %sum : tensor<4x8xf32>
  } : (tensor<4x8xf32>, tensor<4x2xi64>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
