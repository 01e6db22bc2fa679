// The loss of a training file is added to the model before a plan is applied.
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-add-loss=train=%t/mse.yaml | FileCheck %s --check-prefix=MSE
// RUN: tp-opt %t/model.mlir --tp-add-loss=train=%t/classes.yaml --mlir-print-debuginfo | FileCheck %s --check-prefix=CLASSES
// RUN: tp-opt %t/scalar.mlir --tp-add-loss=train=%t/output.yaml | FileCheck %s --check-prefix=OUTPUT
// RUN: not tp-opt %t/model.mlir --tp-add-loss=train=%t/output.yaml 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not tp-opt %t/model.mlir --tp-add-loss 2>&1 | FileCheck %s --check-prefix=MISSING

// It is differentiated as if tp-grad had added it.
// RUN: tp-opt %t/model.mlir --tp-add-loss=train=%t/mse.yaml --tp-grad=train=%t/mse.yaml -o %t/both.mlir
// RUN: tp-opt %t/model.mlir --tp-grad=train=%t/mse.yaml -o %t/one.mlir
// RUN: diff %t/both.mlir %t/one.mlir

// MSE: func.func @main(%[[X:.*]]: tensor<4x8xf32>, %[[T:.*]]: tensor<4x8xf32> {tp.loss, tp.name = "target"}) -> (tensor<4x8xf32> {tp.name = "output"}, tensor<f32> {tp.loss})
// MSE: %[[Y:.*]] = nn.module "head"
// MSE: %[[D:.*]] = nn.sub %[[Y]], %[[T]]
// MSE: %[[LOSS:.*]] = nn.reduce mean
// MSE: return %[[Y]], %[[LOSS]]

// Errors about the loss are at its place in the training file.
// CLASSES: nn.cross_entropy mean {{.*}} smoothing 1.000000e-01 {{.*}} loc(#[[LOC:.*]])
// CLASSES: #[[LOC]] = loc("{{.*}}classes.yaml":2:1)

// OUTPUT: func.func @main() -> (tensor<f32> {tp.loss})
// SHAPE: error: the loss, result 0, should be a scalar, found 'tensor<4x8xf32>'
// MISSING: error: tp-add-loss needs the option train=FILE

//--- model.mlir
func.func @main(%x: tensor<4x8xf32>) -> (tensor<4x8xf32> {tp.name = "output"}) {
  %0 = nn.module "head" class "Linear" (%x as "input" at 0) {
  ^bb0(%a: tensor<4x8xf32>):
    %w = nn.parameter "head.weight" : tensor<8x8xf32>
    %y = nn.linear %a, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    nn.yield %y : tensor<4x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

//--- scalar.mlir
func.func @main() -> tensor<f32> {
  %w = nn.parameter "w" : tensor<f32>
  return %w : tensor<f32>
}

//--- mse.yaml
{loss: mse, optimizer: SGD}

//--- classes.yaml
optimizer: SGD
loss: {name: cross_entropy, label_smoothing: 0.1}

//--- output.yaml
{loss: output, optimizer: SGD}
