//===- NNLossOps.td - Losses -------------------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_NN_NNLOSSOPS_TD
#define TP_DIALECT_NN_NNLOSSOPS_TD

include "tp/Dialect/NN/NNBase.td"

def NN_LossReduction : I32EnumAttr<"LossReduction", "how a loss is reduced", [
    I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Mean", 1, "mean">,
    I32EnumAttrCase<"Sum", 2, "sum">]> {
  let cppNamespace = "::mlir::nn";
  let genSpecializedAttr = 0;
}

class NN_ClassLossOp<string mnemonic, string what, dag extra = (ins), string extraFormat = "",
                     bit partitioned = 0>
    : NN_RuleOp<mnemonic, "getLossRule()",
                [NN_InferType, DeclareOpInterfaceMethods<GradientOpInterface, ["buildForward"]>],
                    partitioned = partitioned, differentiable = 0> {
  let summary = what;
  let arguments = !con((ins NN_FloatTensor:$input, NN_IndexTensor:$target,
                            Optional<NN_FloatTensor>:$weight,
                            EnumProp<NN_LossReduction>:$reduction, I64Attr:$ignore_index), extra);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat =
    "$reduction $input `,` $target (`weight` $weight^)? `ignore` $ignore_index " #
    extraFormat # " attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::tp::ShardingRule getLossRule();";
}

def NN_CrossEntropyOp : NN_ClassLossOp<"cross_entropy", "Cross-entropy with class indices",
    (ins F64Attr:$label_smoothing, UnitAttr:$loss_parallel),
    "`smoothing` $label_smoothing (`loss_parallel` $loss_parallel^)?", partitioned = 1> {
  let description = [{
    PyTorch's `cross_entropy` of logits (n, c, d…) or (c) and target (n, d…) or (); `mean` divides
    by the weights of the targets that aren't ignored. The class dimension stays whole; with
    reduction `none`, the others can be split.

    ```mlir
    %l = nn.cross_entropy mean %logits, %t ignore -100 smoothing 0.0 : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
    ```

    With `loss_parallel`, as under PyTorch's context of that name, the class dimension may be split:
    each rank computes the maximum and the sum over its own classes, and two all-reduces (one of the
    maxima, one of the sums and target logits together) give the loss to all ranks.

    **Constraints:** (C1) target is the input's shape without the class dimension; (C2) the result
    has the target's shape for `none` and is a scalar otherwise; (C3) weight has one entry per
    class; (C4) 0 ≤ smoothing ≤ 1; (C5) no smoothing with `loss_parallel`.
  }];
}

def NN_NLLLossOp : NN_ClassLossOp<"nll_loss", "Negative log-likelihood with class indices"> {
  let description = [{
    PyTorch's `nll_loss` of log-probabilities, like `nn.cross_entropy` without the log-softmax.

    ```mlir
    %l = nn.nll_loss mean %logp, %t ignore -100 : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
    ```

    **Constraints:** (C1) to (C3) of `nn.cross_entropy`.
  }];
}

def NN_ClassSumsOp : NN_RuleOp<"class_sums", "getSumsRule()",
    [NN_InferType, AllTypesMatch<["maximum", "sum", "picked"]>], partitioned = 1,
    differentiable = 0> {
  let summary = "What cross-entropy needs of logits, over split classes";
  let description = [{
    Takes logits x (n, c, d…) or (c) and targets t (n, d…) or (). For each target, gives the maximum
    m over the classes, the sum of exp(x - m), and x[t] - m. `nn.cross_entropy` with `loss_parallel`
    becomes this op in a training step. If it is split along the classes, one all-reduce gives m,
    and a second one gives the two other results. A target out of range is an error at run time.

    ```mlir
    %m, %s, %p = nn.class_sums %x, %t : tensor<8x16xf32>, tensor<8xi64> -> tensor<8x1xf32>
    ```

    **Constraints:** (C1) target is the input's shape without the class dimension; (C2) the results
    have the input's shape with a class dimension of size 1, and its element type; (C3) there is at
    least one class.
  }];
  let arguments = (ins NN_FloatTensor:$input, NN_IndexTensor:$target);
  let results = (outs NN_FloatTensor:$maximum, NN_FloatTensor:$sum, NN_FloatTensor:$picked);
  let assemblyFormat = "$input `,` $target attr-dict `:` type($input) `,` type($target) `->` "
                       "type($maximum)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::tp::ShardingRule getSumsRule();
    int64_t getClassDim() { return getInput().getType().getRank() == 1 ? 0 : 1; }
    /// Builds the same results with other ops, for operands that aren't split.
    ::llvm::SmallVector<::mlir::Value> decompose(::mlir::OpBuilder &builder);
  }];
}

#endif // TP_DIALECT_NN_NNLOSSOPS_TD
