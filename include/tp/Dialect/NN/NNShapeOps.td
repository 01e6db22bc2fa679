//===- NNShapeOps.td - Reshapes, slices, gathers -----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_NN_NNSHAPEOPS_TD
#define TP_DIALECT_NN_NNSHAPEOPS_TD

include "tp/Dialect/NN/NNBase.td"

def NN_ReshapeOp : NN_RuleOp<"reshape", "ShardingRule::reshape(*this).linear({{0}})",
                             [ReshapeOpInterface]> {
  let summary = "The same elements in another shape";
  let description = [{
    Row-major order is kept. If a reshape splits or merges dimensions, a sharding of the major
    factor carries through.

    ```mlir
    %1 = nn.reshape %0 : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
    ```

    **Constraints:** (C1) input and result have the same number of elements and the same element
    type.
  }];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def NN_TransposeOp : NN_RuleOp<"transpose", "getTransposeRule()", [TransposeOpInterface, NN_InferType]> {
  let summary = "Permute dimensions";
  let description = [{
    Dimension i of the result is dimension `permutation[i]` of the input.

    ```mlir
    %1 = nn.transpose %0 [0, 2, 1, 3] : tensor<2x8x4x16xf32> -> tensor<2x4x8x16xf32>
    ```

    **Constraints:** (C1) `permutation` is a permutation; (C2) the shapes agree.
  }];
  let arguments = (ins NN_Tensor:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input $permutation attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = "::mlir::tp::ShardingRule getTransposeRule();";
}

def NN_BroadcastOp : NN_RuleOp<"broadcast", "ShardingRule::elementwise(*this).linear({{0}})"> {
  let summary = "Repeat along dimensions";
  let description = [{
    PyTorch's expand: dimensions are aligned at the right; size 1 and missing dimensions repeat.

    ```mlir
    %1 = nn.broadcast %0 : tensor<2x1x8xf32> -> tensor<2x4x8xf32>
    ```

    **Constraints:** (C1) the input's shape broadcasts to the result's.
  }];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def NN_SliceOp : NN_RuleOp<"slice", "getSliceRule()", [SliceOpInterface], partitioned = 1> {
  let summary = "A range of one dimension";
  let description = [{
    Elements `start, start + step, …` along `dim`, as many as the result has. That dimension can't
    be split, unless it consists of segments, each split separately, and the slice consists of such
    segments.

    ```mlir
    %1 = nn.slice %0 dim 1 start 2 step 1 : tensor<2x8x16xf32> -> tensor<2x4x16xf32>
    ```

    **Constraints:** (C1) `dim` is a dimension; (C2) `start ≥ 0`, `step ≥ 1`, and the range lies
    inside; (C3) all other dimensions agree.
  }];
  let arguments = (ins NN_Tensor:$input, I64Attr:$dim, I64Attr:$start, I64Attr:$step);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input `dim` $dim `start` $start `step` $step attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    ::mlir::tp::ShardingRule getSliceRule();
    ::std::optional<::mlir::tp::DimRange> getRange();
  }];
}

def NN_SliceScatterOp : NN_RuleOp<"slice_scatter", "getSliceScatterRule()", [NN_InferType],
                                  partitioned = 1> {
  let summary = "Replace a range of one dimension";
  let description = [{
    PyTorch's slice_scatter: the input, with the elements `start, start + step, …` along `dim`
    replaced by the source, which has as many of them. It is what a write to a slice leaves. As for
    `nn.slice`, that dimension can't be split, unless the range consists of complete segments.

    ```mlir
    %2 = nn.slice_scatter %0, %1 dim 1 start 2 step 1
        : (tensor<2x8x16xf32>, tensor<2x4x16xf32>) -> tensor<2x8x16xf32>
    ```

    **Constraints:** (C1) `dim` is a dimension; (C2) `start ≥ 0`, `step ≥ 1`, and the range lies
    inside; (C3) input and source agree in all other dimensions and have one element type.
  }];
  let arguments = (ins NN_Tensor:$input, NN_Tensor:$source, I64Attr:$dim, I64Attr:$start,
                       I64Attr:$step);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $source `dim` $dim `start` $start `step` $step attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = "::mlir::tp::ShardingRule getSliceScatterRule();";
}

def NN_ConcatOp : NN_RuleOp<"concat", "getConcatRule()", [ConcatOpInterface, NN_InferType]> {
  let summary = "Concatenate along a dimension";
  let description = [{
    ```mlir
    %2 = nn.concat %0, %1 dim 1 : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
    ```

    If the operands are split along `dim`, the result consists of segments, one per operand, each
    split separately.

    **Constraints:** (C1) at least one operand; (C2) all other dimensions agree; (C3) the sizes
    along `dim` add up.
  }];
  let arguments = (ins Variadic<NN_Tensor>:$inputs, I64Attr:$dim);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$inputs `dim` $dim attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = "::mlir::tp::ShardingRule getConcatRule();";
}

def NN_GatherOp : NN_RuleOp<"gather", "getGatherRule()", [NN_InferType,
    DeclareOpInterfaceMethods<GradientOpInterface, ["buildUndifferentiated"]>],
                            partitioned = 1, differentiable = 0> {
  let summary = "Pick along a dimension by an index tensor";
  let description = [{
    PyTorch's gather: `result[i, j, k] = input[i, index[i, j, k], k]` for `dim = 1`. The index may
    be smaller than the input in the other dimensions. An index out of range is an error at run
    time. Splitting the input along `dim` makes this a masked lookup, as for `nn.embedding`, which
    gives Partial(sum).

    ```mlir
    %1 = nn.gather %0, %i dim 1 : (tensor<2x8xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
    ```

    **Constraints:** (C1) input and index have the same rank; (C2) the result has index's shape;
    (C3) index ≤ input in every dimension but `dim`.
  }];
  let arguments = (ins NN_Tensor:$input, NN_IndexTensor:$index, I64Attr:$dim);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input `,` $index `dim` $dim attr-dict `:` functional-type(operands, "
                       "results)";
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::tp::ShardingRule getGatherRule();";
}

def NN_IndexSelectOp : NN_RuleOp<"index_select", "getIndexSelectRule()", [NN_InferType]> {
  let summary = "Pick whole slices along a dimension";
  let description = [{
    PyTorch's index_select: `result[i, j, k] = input[i, index[j], k]` for `dim = 1`. An index out of
    range is an error at run time.

    ```mlir
    %1 = nn.index_select %0, %i dim 1 : (tensor<2x8x4xf32>, tensor<3xi64>) -> tensor<2x3x4xf32>
    ```

    **Constraints:** (C1) index has one dimension; (C2) the shapes agree.
  }];
  let arguments = (ins NN_Tensor:$input, NN_IndexTensor:$index, I64Attr:$dim);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input `,` $index `dim` $dim attr-dict `:` functional-type(operands, "
                       "results)";
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::tp::ShardingRule getIndexSelectRule();";
}

#endif // TP_DIALECT_NN_NNSHAPEOPS_TD
