//===- Passes.td - Passes for training ---------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TRAINING_PASSES_TD
#define TP_TRAINING_PASSES_TD

include "tp/Transforms/Options.td"

def AddLoss : Pass<"tp-add-loss", "::mlir::ModuleOp"> {
  let summary = "Append the loss of a training file to a model";
  let description = [{
    The loss becomes a further result of the module's entry point, with the attribute `tp.loss`. The
    target that it is compared with becomes the argument `target`, which also has this attribute.
    `tp-grad` then differentiates this result instead of adding the loss itself. Run this pass
    before `tp-apply-plan`: the plan is then checked together with the loss, and can refer to it
    (`loss_parallel`).

    ```mlir
    func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %0 = nn.module "" …
      return %0 : tensor<4x8xf32>
    }
    ```

    becomes, with `loss: mse`,

    ```mlir
    func.func @main(%x: tensor<4x8xf32>, %target: tensor<4x8xf32> {tp.loss, tp.name = "target"})
        -> (tensor<4x8xf32>, tensor<f32> {tp.loss}) {
      %0 = nn.module "" …
      %1 = nn.sub %0, %target : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %2 = nn.mul %1, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %3 = nn.reduce mean %2 dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
      return %0, %3 : tensor<4x8xf32>, tensor<f32>
    }
    ```

    If the model's result is the loss itself (`loss: output`), the pass only marks it. A loss that
    doesn't fit the model's results is an error.
  }];
  let options = [Train];
  let dependentDialects = ["::mlir::nn::NNDialect"];
}

def SplitBatch : Pass<"tp-split-batch", "::mlir::ModuleOp"> {
  let summary = "Compute a model's results for the microbatches of a pipeline";
  let description = [{
    Without a `tp.pipeline`, nothing changes. Otherwise the model's ops are copied for each of its
    `microbatches`. The batch of the program consists of these microbatches: the dimension of each
    argument that counts the examples grows by their number, and each microbatch takes its part.
    `tp-grad` does the same for a training step. The results of the microbatches are joined along
    dimension 0.

    With 2 microbatches,

    ```mlir
    func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %0 = nn.relu %x {tp.stage = 0 : i64} : tensor<4x8xf32>
      return %0 : tensor<4x8xf32>
    }
    ```

    becomes

    ```mlir
    func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
      %x0 = nn.reshape … of nn.slice … from 0 of %x
      %0 = nn.relu %x0 {tp.pass = 0 : i64, tp.stage = 0 : i64} : tensor<4x8xf32>
      %x1 = nn.reshape … of nn.slice … from 1 of %x
      %1 = nn.relu %x1 {tp.pass = 2 : i64, tp.stage = 0 : i64} : tensor<4x8xf32>
      %2 = nn.reshape … of nn.concat %0, %1 …
      return %2 : tensor<8x8xf32>
    }
    ```

    Fails if dimension 0 of a result doesn't count the examples, or if data parallelism can't give
    each rank as many examples of every microbatch.
  }];
  let dependentDialects = ["::mlir::tp::TPDialect", "::mlir::nn::NNDialect"];
}

def Grad : Pass<"tp-grad", "::mlir::ModuleOp"> {
  let summary = "Differentiate a model, and make its training step";
  let description = [{
    Reverse-mode differentiation of the module's entry point, at the model level: shapes are global,
    and the placements of gradients follow from the sharding rules of their ops. Each op defines its
    gradient beside its sharding rule (`GradientOpInterface`).

    Without `train`, the first result is the loss, a scalar. The gradients of all parameters that
    aren't frozen follow the function's own results. They are named `grad.` and the parameter's FQN.
    With `inputs`, the gradients of the float arguments follow as well:

    ```mlir
    func.func @main(%x: tensor<4x8xf32>) -> tensor<f32> {
      %w = nn.parameter "w" : tensor<6x8xf32>
      %0 = nn.linear %x, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
      %1 = nn.reduce sum %0 dims [0, 1] : tensor<4x6xf32> -> tensor<f32>
      return %1 : tensor<f32>
    }
    ```

    becomes

    ```mlir
    func.func @main(%x: tensor<4x8xf32>) -> (tensor<f32>, tensor<6x8xf32> {tp.name = "grad.w"}) {
      …
      %cst = nn.constant dense<1.000000e+00> : tensor<f32>
      %2 = nn.reshape %cst : tensor<f32> -> tensor<1x1xf32>
      %3 = nn.broadcast %2 : tensor<1x1xf32> -> tensor<4x6xf32>
      %4 = nn.outer_sum %3, %x : (tensor<4x6xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
      return %1, %4 : tensor<f32>, tensor<6x8xf32>
    }
    ```

    With `train`, a [training file](Training.md), the function becomes one training step: forward
    pass, loss, backward pass, and the optimizer, which assigns parameters and its own state
    (`nn.assign`). Its results are the loss, the step's learning rate and, with clipping, the norm
    of the gradients.

    The loss is the result that `tp-add-loss` has marked; without one, this pass adds the loss.
    Modules are inlined, so a plan must be applied before. The gradient of an `scf.if` is a branch
    on the same condition, which recomputes the branch that was taken. An `scf.for` with constant
    bounds and at most 64 iterations is unrolled. An op without a gradient is an error if the loss
    depends on a parameter through it.
  }];
  let options = [
    Train,
    Option<"inputs", "inputs", "bool", "false",
           "Whether to differentiate with respect to float arguments as well">,
  ];
  let dependentDialects = ["::mlir::nn::NNDialect"];
}

#endif // TP_TRAINING_PASSES_TD
