//===- NNStructureOps.td - Modules, parameters, constants --*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_NN_NNSTRUCTUREOPS_TD
#define TP_DIALECT_NN_NNSTRUCTUREOPS_TD

include "tp/Dialect/NN/NNBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def NN_ModuleOp : NN_Op<"module", [SingleBlockImplicitTerminator<"YieldOp">,
                                   RecursiveMemoryEffects, ModuleOpInterface]> {
  let summary = "A call of a module of the model";
  let description = [{
    One call of the `nn.Module` with this FQN and class: its tensor inputs come in as block
    arguments, its tensor outputs leave through `nn.yield`. `arg_names` are the names of the inputs
    in the class's `forward`, `arg_positions` their positions there (non-tensor arguments leave
    gaps); with the attribute `nn.traced`, both come from a trace, which doesn't keep those of
    `forward`. The root module has FQN `""`. Modules nest as in the model. Ops may use values from
    enclosing modules, such as their parameters.

    ```mlir
    %r = nn.module "mlp.net1" class "Linear" (%x as "input" at 0) {
    ^bb0(%input: tensor<8x10xf32>):
      %w = nn.parameter "mlp.net1.weight" : tensor<16x10xf32>
      %y = nn.linear %input, %w : (tensor<8x10xf32>, tensor<16x10xf32>) -> tensor<8x16xf32>
      nn.yield %y : tensor<8x16xf32>
    } : (tensor<8x10xf32>) -> tensor<8x16xf32>
    ```

    **Constraints:** (C1) block arguments have the operands' types; (C2) `nn.yield`'s operands have
    the results' types; (C3) as many names and positions as operands.
  }];
  let arguments = (ins StrAttr:$fqn, StrAttr:$class_name,
                       Variadic<NN_Tensor>:$inputs, StrArrayAttr:$arg_names,
                       DenseI64ArrayAttr:$arg_positions);
  let results = (outs Variadic<NN_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [
    OpBuilder<(ins "::llvm::StringRef":$fqn, "::llvm::StringRef":$className,
                   "::mlir::ValueRange":$inputs, "::llvm::ArrayRef<::llvm::StringRef>":$argNames,
                   "::llvm::ArrayRef<int64_t>":$argPositions, "::mlir::TypeRange":$resultTypes)>
  ];
  let extraClassDeclaration = [{
    ::mlir::Block *getBodyBlock() { return &getBody().front(); }
  }];
}

def NN_YieldOp : NN_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"ModuleOp">]> {
  let summary = "Return from a module";
  let description = [{
    Terminates `nn.module`; the operands are the module's outputs.

    ```mlir
    nn.yield %0 : tensor<2x16xf32>
    ```
  }];
  let arguments = (ins Variadic<NN_Tensor>:$operands);
  let builders = [OpBuilder<(ins), [{ }]>];
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}

def NN_ParameterOp : NN_RuleOp<"parameter", "ShardingRule::elementwise(*this)",
                               [ParameterOpInterface], differentiable = 0> {
  let summary = "A parameter or buffer of the model";
  let description = [{
    The tensor that the weights file holds under `fqn`. A parameter that several modules share (tied
    weights) has one FQN. Several ops may name the same FQN. After partitioning, the type is that of
    this rank's block, `tp.sharding` is the placement, and `tp.global_type` is the global type. With
    `frozen`, training doesn't change the tensor, because it is a buffer, or a parameter without
    `requires_grad`.

    ```mlir
    %w = nn.parameter "layers.0.wq.weight" : tensor<16x16xf32>
    %m = nn.parameter "mask" frozen : tensor<16x16xf32>
    ```
  }];
  let arguments = (ins StrAttr:$fqn, UnitProp:$frozen);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$fqn (`frozen` $frozen^)? attr-dict `:` type($result)";
}

def NN_ConstantOp : NN_RuleOp<"constant", "getSplatRule()",
    [ConstantLike, AllTypesMatch<["value", "result"]>], partitioned = 1, differentiable = 0> {
  let summary = "A small constant tensor";
  let description = [{
    A splat can be split along any dimension; any other constant is whole on every rank.

    ```mlir
    %0 = nn.constant dense<1.0> : tensor<2x4xf32>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
  let extraClassDeclaration = "::mlir::tp::ShardingRule getSplatRule();";
  let builders = [OpBuilder<(ins "::mlir::ElementsAttr":$value), [{
    build($_builder, $_state, value.getType(), value);
  }]>];
}

def NN_IotaOp : NN_RuleOp<"iota", "getIotaRule()", partitioned = 1, differentiable = 0> {
  let summary = "Numbers that grow along one dimension";
  let description = [{
    Element i along `dim` is `start + i * step`, in the result's element type (PyTorch's arange,
    broadcast over the other dimensions). Integers can be split along `dim` as well.

    ```mlir
    %0 = nn.iota dim 0 start 0.0 step 1.0 : tensor<64xi64>
    ```

    **Constraints:** (C1) `dim` is a dimension of the result.
  }];
  let arguments = (ins I64Attr:$dim, F64Attr:$start, F64Attr:$step);
  let results = (outs NN_NumericTensor:$result);
  let assemblyFormat = "`dim` $dim `start` $start `step` $step attr-dict `:` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::tp::ShardingRule getIotaRule();";
}

def NN_AssignOp : NN_Op<"assign", [MemoryEffects<[MemWrite]>, AssignOpInterface]> {
  let summary = "The next value of a parameter";
  let description = [{
    Sets the value that the parameter `fqn` has from the next run of the program on. During a run,
    `nn.parameter` always gives the value from the beginning of the run, even after an `nn.assign`.
    A training program assigns the model's parameters and the optimizer's state. The value has the
    parameter's placement. `init` is the value before the first run, for a parameter that no weights
    file holds.

    ```mlir
    %w = nn.parameter "w" : tensor<16x16xf32>
    %1 = nn.sub %w, %step : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    nn.assign "w", %1 : tensor<16x16xf32>
    nn.assign "optimizer.momentum.w", %2 init 0.0 : tensor<16x16xf32>
    ```

    If nothing reads the old value, the partitioned op has the parameter's `tp.sharding` and
    `tp.global_type`.

    **Constraints:** (C1) before partitioning, an `nn.parameter` of this FQN precedes it; (C2) all
    of them have the value's type; (C3) a function assigns a parameter once.
  }];
  let arguments = (ins StrAttr:$fqn, NN_Tensor:$value, OptionalAttr<F64Attr>:$init);
  let assemblyFormat = "$fqn `,` $value (`init` $init^)? attr-dict `:` type($value)";
}

#endif // TP_DIALECT_NN_NNSTRUCTUREOPS_TD
