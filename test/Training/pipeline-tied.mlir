// Both stages use the weight. Each adds up its gradients of the three microbatches before it sends them: one value per direction, in the
// programs of sender and receiver.
// RUN: split-file %s %t && cd %t
// RUN: tp-opt model.mlir --tp-parallelize="plan=plan.yaml train=train.yaml" -o ranks.mlir
// RUN: FileCheck %s < ranks.mlir
// CHECK-COUNT-4: tp.transfer {{.*}}4x4xf32>
// CHECK-NOT: tp.transfer {{.*}}4x4xf32>
// RUN: tp-opt ranks.mlir --tp-verify-spmd="reference=model.mlir train=train.yaml" -o out.mlir 2>&1 | FileCheck %s --check-prefix=PROVEN
// PROVEN-COUNT-2: remark: 'main' is proven for 2 ranks

//--- plan.yaml
mesh: {pp: 2}
pipeline: {pp: {split: [b], microbatches: 3}}

//--- train.yaml
loss: mse
optimizer: {name: AdamW, lr: 0.1}

//--- model.mlir
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %h = nn.module "a" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<2x4xf32>):
    %w = nn.parameter "w" : tensor<4x4xf32>
    %y = nn.linear %input, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    nn.yield %y : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %g = nn.relu %h : tensor<2x4xf32>
  %o = nn.module "b" class "Linear" (%g as "input" at 0) {
  ^bb0(%input: tensor<2x4xf32>):
    %w = nn.parameter "w" : tensor<4x4xf32>
    %y = nn.linear %input, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    nn.yield %y : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %o : tensor<2x4xf32>
}
