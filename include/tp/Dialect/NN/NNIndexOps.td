//===- NNIndexOps.td - Sorting, scans, writes at indices ---*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_NN_NNINDEXOPS_TD
#define TP_DIALECT_NN_NNINDEXOPS_TD

include "tp/Dialect/NN/NNBase.td"

def NN_SortOp : NN_RuleOp<"sort", "getSortRule()", [NN_InferType]> {
  let summary = "The first elements of a dimension in order, and their indices";
  let description = [{
    The `count` smallest elements along `dim` in ascending order, or the largest ones in descending
    order, and where they are in the input: PyTorch's `topk`, and its `sort` if `count` is the size
    of the dimension. NaN counts as the largest number. Equal elements keep the order that they have
    in the input, as in PyTorch's stable sort; `topk` in PyTorch leaves their order open. The
    dimension can't be split.

    ```mlir
    %values, %indices = nn.sort descending %0 dim 1 count 2
      : tensor<4x8xf32> -> (tensor<4x2xf32>, tensor<4x2xi64>)
    ```

    **Constraints:** (C1) `dim` is a dimension of the input; (C2) `count` is at most its size, and
    not negative; (C3) the results have the input's shape, but `count` elements along `dim`.
  }];
  let arguments = (ins NN_NumericTensor:$input, I64Attr:$dim, I64Attr:$count,
                       UnitProp:$descending);
  let results = (outs NN_NumericTensor:$values, TensorOf<[I64]>:$indices);
  let assemblyFormat = [{
    (`descending` $descending^)? $input `dim` $dim `count` $count attr-dict
    `:` type($input) `->` `(` type($values) `,` type($indices) `)`
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::tp::ShardingRule getSortRule();";
}

def NN_CumSumOp : NN_RuleOp<"cumsum", "ShardingRule::elementwise(*this).wholeResultDim(getDim())"
                                      ".linear({{0}})", [SameOperandsAndResultType]> {
  let summary = "Sums of the elements up to each position";
  let description = [{
    PyTorch's cumsum: `result[i, j, k] = Σ input[i, l, k]` over l ≤ j for `dim = 1`, or over l ≥ j
    with `reverse`, which is the gradient. The sums are added up in the order of the elements. The
    dimension can't be split.

    ```mlir
    %1 = nn.cumsum %0 dim 1 : tensor<2x8xf32>
    %2 = nn.cumsum reverse %0 dim 1 : tensor<2x8xf32>
    ```

    **Constraints:** (C1) `dim` is a dimension of the input.
  }];
  let arguments = (ins NN_NumericTensor:$input, I64Attr:$dim, UnitProp:$reverse);
  let results = (outs NN_NumericTensor:$result);
  let assemblyFormat = "(`reverse` $reverse^)? $input `dim` $dim attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def NN_ScatterKind : I32EnumAttr<"ScatterKind", "what a scatter does with an element", [
    I32EnumAttrCase<"Copy", 0, "copy">, I32EnumAttrCase<"Add", 1, "add">,
    I32EnumAttrCase<"Max", 2, "max">, I32EnumAttrCase<"Min", 3, "min">]> {
  let cppNamespace = "::mlir::nn";
  let genSpecializedAttr = 0;
}

def NN_ScatterOp : NN_RuleOp<"scatter", "getScatterRule()", [AllTypesMatch<["input", "result"]>]> {
  let summary = "Write elements or slices at computed positions of a dimension";
  let description = [{
    The input with the elements of `source` copied to, added to, or combined by maximum or minimum
    with the elements that `index` names along `dim`. There are two forms:

    - `index` has the shape of `source`, and names elements, as in PyTorch's scatter: for `dim = 1`,
      `source[i, j, k]` goes to `result[i, index[i, j, k], k]`. The source may be smaller than the
      input in the other dimensions.
    - `index` has one dimension, and names slices, as in PyTorch's index_copy and index_add:
      `source[i, j, k]` goes to `result[i, index[j], k]`.

    If several elements go to one position, they are combined in the order of the source, so that
    the last one counts if they are copied; PyTorch leaves the order open. The gradient of a copy is
    PyTorch's: each of these elements gets that of the position, also those that are overwritten. An
    index out of range is an error at run time. `dim` can't be split, in the input or in the source.

    ```mlir
    %1 = nn.scatter copy %0, %i, %s dim 1 : (tensor<2x8xf32>, tensor<2x3xi64>, tensor<2x3xf32>)
    %2 = nn.scatter add %0, %r, %s dim 0 : (tensor<8x4xf32>, tensor<3xi64>, tensor<3x4xf32>)
    ```

    **Constraints:** (C1) `dim` is a dimension of the input, and input and source have the same
    rank and element type; (C2) index has the source's shape, or one dimension of the size of the
    source's `dim`; (C3) in the first form, source ≤ input in every dimension but `dim`, in the
    second one these dimensions agree; (C4) only `copy` allows elements that aren't numbers.
  }];
  let arguments = (ins EnumProp<NN_ScatterKind>:$kind, NN_Tensor:$input, NN_IndexTensor:$index,
                       NN_Tensor:$source, I64Attr:$dim);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $kind $input `,` $index `,` $source `dim` $dim attr-dict
    `:` `(` type($input) `,` type($index) `,` type($source) `)`
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::tp::ShardingRule getScatterRule();
    /// Whether the index names slices; a vector's slices are its elements.
    bool namesSlices() {
      return getIndex().getType().getRank() == 1;
    }
  }];
}

#endif // TP_DIALECT_NN_NNINDEXOPS_TD
