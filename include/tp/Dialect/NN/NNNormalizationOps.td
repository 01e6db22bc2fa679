//===- NNNormalizationOps.td - Norms, softmax, reductions --*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_NN_NNNORMALIZATIONOPS_TD
#define TP_DIALECT_NN_NNNORMALIZATIONOPS_TD

include "tp/Dialect/NN/NNBase.td"

def NN_LayerNormOp : NN_RuleOp<"layer_norm", "getNormRule()",
                               [AttrSizedOperandSegments, NN_InferType], partitioned = 1> {
  let summary = "Layer normalization over the trailing dimensions";
  let description = [{
    `(x - mean) / sqrt(var + eps) * weight + bias` over the last `normalized` dimensions, with the
    biased variance. Every dimension can be split. Splitting a normalized one takes two all-reduces:
    one of the sums, and one of the squared differences from the mean.

    ```mlir
    %1 = nn.layer_norm %x weight %w bias %b over 1 eps 1.0e-5 : (tensor<2x8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
    ```

    **Constraints:** (C1) weight and bias have the shape of the normalized dimensions; (C2) the
    result has the input's type.
  }];
  let arguments = (ins NN_FloatTensor:$input, Optional<NN_FloatTensor>:$weight,
                       Optional<NN_FloatTensor>:$bias, I64Attr:$normalized, F64Attr:$eps);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $input (`weight` $weight^)? (`bias` $bias^)? `over` $normalized `eps` $eps attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::tp::ShardingRule getNormRule();";
}

def NN_RMSNormOp : NN_RuleOp<"rms_norm", "getNormRule()", [NN_InferType], partitioned = 1> {
  let summary = "Root-mean-square normalization over the trailing dimensions";
  let description = [{
    `x / sqrt(mean(x²) + eps) * weight` over the last `normalized` dimensions. Every dimension can
    be split. Splitting a normalized one takes an all-reduce of the sums of squares.

    ```mlir
    %1 = nn.rms_norm %x weight %w over 1 eps 1.0e-5 : (tensor<2x8x16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
    ```

    **Constraints:** as for `nn.layer_norm`.
  }];
  let arguments = (ins NN_FloatTensor:$input, Optional<NN_FloatTensor>:$weight,
                       I64Attr:$normalized, F64Attr:$eps);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $input (`weight` $weight^)? `over` $normalized `eps` $eps attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::tp::ShardingRule getNormRule();";
}

class NN_SoftmaxLikeOp<string mnemonic, string what>
    : NN_RuleOp<mnemonic, "ShardingRule::elementwise(*this).collectiveResultDim(getDim(), 2)",
                [SameOperandsAndResultType], partitioned = 1> {
  let summary = what;
  let description = what # ". Computed with the maximum subtracted. Splits along every dimension; "
    "along `dim` it takes two all-reduces, of the maxima and of the sums.\n\n"
    "```mlir\n%1 = nn." # mnemonic # " %0 dim 1 : tensor<2x4xf32>\n```\n\n**Constraints:** "
    "(C1) `dim` is a dimension of the input.\n";
  let arguments = (ins NN_FloatTensor:$input, I64Attr:$dim);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input `dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def NN_SoftmaxOp : NN_SoftmaxLikeOp<"softmax", "exp(x) / sum(exp(x)) along one dimension">;
def NN_LogSoftmaxOp : NN_SoftmaxLikeOp<"log_softmax", "x - log(sum(exp(x))) along one dimension">;

def NN_ReduceKind : I32EnumAttr<"ReduceKind", "a reduction", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Mean", 1, "mean">,
    I32EnumAttrCase<"Max", 2, "max">, I32EnumAttrCase<"Min", 3, "min">,
    I32EnumAttrCase<"Product", 4, "product">]> {
  let cppNamespace = "::mlir::nn";
  let genSpecializedAttr = 0;
}

def NN_ReduceOp : NN_RuleOp<"reduce", "getReduceRule()", [NN_InferType], partitioned = 1> {
  let summary = "Reduce over dimensions";
  let description = [{
    Sum, mean, maximum, minimum or product over `dims`. These dimensions disappear, or keep size 1
    with `keepdim`. Splitting a reduced dimension gives a Partial of the same kind (for mean, a
    Partial sum that is divided by the global count).

    ```mlir
    %1 = nn.reduce mean %0 dims [2] keepdim : tensor<2x4x8xf32> -> tensor<2x4x1xf32>
    ```

    **Constraints:** (C1) `dims` are distinct dimensions of the input, ascending; (C2) the shapes
    agree.
  }];
  let arguments = (ins EnumProp<NN_ReduceKind>:$kind, NN_NumericTensor:$input,
                       DenseI64ArrayAttr:$dims, UnitProp:$keepdim);
  let results = (outs NN_NumericTensor:$result);
  let assemblyFormat = [{
    $kind $input `dims` $dims (`keepdim` $keepdim^)? attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::tp::ShardingRule getReduceRule();";
}

def NN_ArgMaxOp : NN_RuleOp<"argmax", "getArgMaxRule()", [NN_InferType], differentiable = 0> {
  let summary = "Index of the largest element along a dimension";
  let description = [{
    If several elements are equal, the first one counts. NaN counts as the largest, as in PyTorch.
    The dimension can't be split.

    ```mlir
    %1 = nn.argmax %0 dim 1 : tensor<2x4xf32> -> tensor<2xi64>
    ```

    **Constraints:** (C1) `dim` is a dimension of the input; (C2) the shapes agree.
  }];
  let arguments = (ins NN_NumericTensor:$input, I64Attr:$dim, UnitProp:$keepdim);
  let results = (outs TensorOf<[I64]>:$result);
  let assemblyFormat = [{
    $input `dim` $dim (`keepdim` $keepdim^)? attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::tp::ShardingRule getArgMaxRule();";
}

#endif // TP_DIALECT_NN_NNNORMALIZATIONOPS_TD
