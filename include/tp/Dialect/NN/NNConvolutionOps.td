//===- NNConvolutionOps.td - convolutions and pooling ------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ops have windows on n spatial dimensions. stride, padding and dilation have one entry for each
// of them: element k of window p is element p * stride + k * dilation - padding of the input. The
// result's type says how many windows there are.
//
// Spatial dimensions can be split: elements and positions of windows are one halo factor, and ranks
// exchange the elements that their windows have beyond their blocks (`tp.halo`).

#ifndef TP_DIALECT_NN_NNCONVOLUTIONOPS_TD
#define TP_DIALECT_NN_NNCONVOLUTIONOPS_TD

include "tp/Dialect/NN/NNBase.td"
include "tp/Dialect/NN/NNNormalizationOps.td"

defvar NN_windowAttrs = (ins DenseI64ArrayAttr:$stride, DenseI64ArrayAttr:$padding,
                             DenseI64ArrayAttr:$dilation);

def NN_ConvolutionOp : NN_RuleOp<"convolution", "getConvolutionRule()",
                             [SameOperandsAndResultElementType], partitioned = 1> {
  let summary = "Convolution over any number of dimensions";
  let description = [{
    PyTorch's `conv1d`, `conv2d`, `conv3d` without the bias, over n ≥ 1 spatial dimensions:

        result[b, m, p…] = Σ input[b, c, p * stride + k * dilation - padding …] * weight[m, c, k…]

    summed over `c` and `k…`, where `input` is 0 outside of its bounds. The result's type says how
    many windows p there are, so the padding at the end may differ from `padding`, the one at the
    beginning. If the channels form groups, the groups are a dimension of their own before the
    channels, in all three tensors.

    Splitting the batch, the output channels or the groups needs no communication. Splitting the
    input channels gives Partial(sum). If a spatial dimension is split, input and result are split
    alike, each into its own blocks, of any size. A rank receives the elements of its windows that
    other ranks hold, and then computes the windows of its block; where windows lie side by side and
    blocks are multiples of them, nothing is moved. The dimensions of a window stay whole.

    ```mlir
    %1 = nn.convolution %x, %w stride [2, 2] padding [1, 1] dilation [1, 1]
       : (tensor<2x3x32x32xf32>, tensor<16x3x3x3xf32>) -> tensor<2x16x16x16xf32>
    %2 = nn.convolution %y, %v stride [1] padding [0] dilation [1]    // eight groups, depthwise
       : (tensor<2x8x1x32xf32>, tensor<8x1x1x3xf32>) -> tensor<2x8x1x30xf32>
    ```

    **Constraints:** (C1) stride, padding and dilation have n entries, which have 32 bits; stride
    and dilation are positive, padding isn't negative; (C2) input is (b, c, s…), weight (m, c, k…)
    and the result (b, m, p…), or all have g before their channels; (C3) the padded input, up to
    the end of the last window, has at most 2⁴⁰ elements; (C4) one element type.
  }];
  let arguments = !con((ins NN_FloatTensor:$input, NN_FloatTensor:$weight), NN_windowAttrs);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $weight `stride` $stride `padding` $padding `dilation` $dilation
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::tp::ShardingRule getConvolutionRule();
    bool hasGroups() { return getInput().getType().getRank() > ::std::ssize(getStride()) + 2; }
    /// Whether each group has one input and one output channel.
    bool isDepthwise();
    /// Builds the product of the weight and the windows of the input, as nn ops.
    ::mlir::Value decompose(::mlir::ImplicitLocOpBuilder &builder);
  }];
}

def NN_WindowsOp : NN_RuleOp<"windows", "getWindowsRule()",
                             [SameOperandsAndResultElementType], partitioned = 1> {
  let summary = "The windows of the last dimensions";
  let description = [{
    The input is (l…, s…), the result (l…, k…, p…): element k of window p. `outside` is what
    windows contain where they lie outside of the input. For images this is PyTorch's `unfold`,
    also called im2col. l… can be split, and s… together with p…, as in `nn.convolution`.

    ```mlir
    %1 = nn.windows %0 stride [2, 2] padding [1, 1] dilation [1, 1] outside 0.0
       : tensor<2x3x32x32xf32> -> tensor<2x3x3x3x16x16xf32>
    ```

    **Constraints:** (C1) stride, padding and dilation as in `nn.convolution`; (C2) the types have
    the form above; (C3) the padded input, up to the end of the last window, has at most 2⁴⁰
    elements; (C4) one element type.
  }];
  let arguments = !con((ins NN_FloatTensor:$input), NN_windowAttrs, (ins F64Attr:$outside));
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $input `stride` $stride `padding` $padding `dilation` $dilation `outside` $outside
    attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::tp::ShardingRule getWindowsRule();";
}

def NN_FoldOp : NN_RuleOp<"fold", "getFoldRule()",
                             [SameOperandsAndResultElementType], partitioned = 1> {
  let summary = "The sum of windows at their positions";
  let description = [{
    The transpose of `nn.windows` as a linear map, and so the gradient of it: the input is (l…,
    k…, p…), the result (l…, s…). An element of the result is the sum of all elements of windows
    that lie there; what lies outside is dropped. For images this is PyTorch's `fold`, also called
    col2im. Small floats are added up in f32.

    l… can be split, and s… together with p…: a rank receives the windows that reach into its block
    of the result. If the blocks don't begin at multiples of the stride, each rank folds from such a
    multiple on, and cuts its block out.

    ```mlir
    %1 = nn.fold %0 stride [2, 2] padding [1, 1] dilation [1, 1]
       : tensor<2x3x3x3x16x16xf32> -> tensor<2x3x32x32xf32>
    ```

    **Constraints:** as those of `nn.windows` from the result to the input.
  }];
  let arguments = !con((ins NN_FloatTensor:$input), NN_windowAttrs);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $input `stride` $stride `padding` $padding `dilation` $dilation
    attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::tp::ShardingRule getFoldRule();";
}

def NN_PoolOp : NN_RuleOp<"pool", "getPoolRule()",
                             [SameOperandsAndResultElementType], partitioned = 1> {
  let summary = "The maximum or the sum of each window";
  let description = [{
    The input is (l…, s…), the result (l…, p…): the maximum or the sum of the `size` elements of
    each window that lie in the input. The gradient of a maximum goes to the first element that
    equals it, as in PyTorch. Small floats are added up in f32. l… can be split, and s… together
    with p…, as in `nn.convolution`.

    ```mlir
    %1 = nn.pool max %0 size [3, 3] stride [2, 2] padding [1, 1] dilation [1, 1]
       : tensor<2x3x32x32xf32> -> tensor<2x3x16x16xf32>
    ```

    **Constraints:** (C1) stride, padding and dilation as in `nn.convolution`, size as stride;
    (C2) the types have the form above; (C3) the padded input, up to the end of the last window,
    has at most 2⁴⁰ elements; (C4) one element type; (C5) the kind is `max` or `sum`.
  }];
  let arguments = !con((ins EnumProp<NN_ReduceKind>:$kind, NN_FloatTensor:$input,
                            DenseI64ArrayAttr:$size), NN_windowAttrs);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $kind $input `size` $size `stride` $stride `padding` $padding `dilation` $dilation
    attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::tp::ShardingRule getPoolRule();";
}

#endif // TP_DIALECT_NN_NNCONVOLUTIONOPS_TD
