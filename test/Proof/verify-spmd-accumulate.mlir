// Which examples make up a batch of 'accumulate' depends on the ranks that have them: the reference takes the same ones.
// The largest loss of a batch shows it. Where the plan says which dimension is the batch, the reference goes by it.

// RUN: split-file %s %t && cd %t
// RUN: tp-opt model.mlir --tp-parallelize="plan=plan.yaml train=train.yaml" -o ranks.mlir
// RUN: tp-opt ranks.mlir --tp-verify-spmd="reference=model.mlir train=train.yaml" -o /dev/null 2>&1 | FileCheck %s
// RUN: tp-opt second.mlir --tp-parallelize="plan=second.yaml train=train.yaml" -o ranks.mlir
// RUN: tp-opt ranks.mlir --tp-verify-spmd="reference=second.mlir train=train.yaml" -o /dev/null 2>&1 | FileCheck %s

// CHECK: remark: 'main' is proven for 2 ranks

//--- model.mlir
func.func @main(%x: tensor<4x8xf32> {tp.name = "x"}) -> tensor<f32> {
  %w = nn.parameter "w" : tensor<6x8xf32>
  %y = nn.linear %x, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %e = nn.reduce sum %y dims [1] : tensor<4x6xf32> -> tensor<4xf32>
  %l = nn.reduce max %e dims [0] : tensor<4xf32> -> tensor<f32>
  return %l : tensor<f32>
}

//--- second.mlir
func.func @main(%s: tensor<6x6xf32> {tp.name = "s"}, %x: tensor<6x4x8xf32> {tp.name = "x"}) -> tensor<f32> {
  %w = nn.parameter "w" : tensor<6x8xf32>
  %y = nn.linear %x, %w : (tensor<6x4x8xf32>, tensor<6x8xf32>) -> tensor<6x4x6xf32>
  %m = nn.reduce sum %y dims [0] : tensor<6x4x6xf32> -> tensor<4x6xf32>
  %z = nn.linear %m, %s : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
  %e = nn.reduce sum %z dims [1] : tensor<4x6xf32> -> tensor<4xf32>
  %l = nn.reduce max %e dims [0] : tensor<4xf32> -> tensor<f32>
  return %l : tensor<f32>
}

//--- plan.yaml
mesh: {dp: 2}
data_parallel: {dp: fsdp}

//--- second.yaml
mesh: {dp: 2}
data_parallel: {dp: fsdp}
batch: {x: 1}

//--- train.yaml
{loss: output, optimizer: SGD, accumulate: 3}
