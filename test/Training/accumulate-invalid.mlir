// RUN: split-file %s %t && cd %t
// RUN: not tp-opt model.mlir --tp-parallelize="plan=plan.yaml train=train.yaml" 2>&1 | FileCheck train.yaml

//--- model.mlir
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x6xf32> {
  %w = nn.parameter "w" : tensor<6x8xf32>
  %y = nn.linear %x, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

//--- plan.yaml
mesh: {dp: 3}
data_parallel: {dp: ddp}

//--- train.yaml
loss: mse
optimizer: SGD
# CHECK: train.yaml:[[#@LINE+2]]:13: error: 'accumulate' takes as many examples of each rank for every batch: 4 examples can't be split over 3 ranks
# CHECK: model.mlir:1:1: note: the model is here
accumulate: 2
