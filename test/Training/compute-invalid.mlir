// RUN: split-file %s %t && cd %t
// RUN: not tp-opt loop.mlir --tp-grad=train=train.yaml 2>&1 | FileCheck loop.mlir

//--- loop.mlir
// CHECK: loop.mlir:[[#@LINE+5]]:8: error: 'scf.for' can't be computed in another type; leave 'compute' out of the training file
func.func @main(%n: index) -> tensor<f32> {
  %w = nn.parameter "w" : tensor<f32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%a = %w) -> tensor<f32> {
    %b = nn.sin %a : tensor<f32>
    scf.yield %b : tensor<f32>
  }
  return %l : tensor<f32>
}

//--- train.yaml
loss: output
optimizer: SGD
compute: bf16
