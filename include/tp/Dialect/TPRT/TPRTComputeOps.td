//===- TPRTComputeOps.td - What the runtime computes -------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TPRT_TPRTCOMPUTEOPS_TD
#define TP_DIALECT_TPRT_TPRTCOMPUTEOPS_TD

include "tp/Dialect/TPRT/TPRTBase.td"

def TPRT_GemmOp : TPRT_Op<"gemm", [
    MemoryEffects<[MemWrite<TPRT_StatusResource>]>, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<TPRT_LibraryCallInterface>]> {
  let summary = "Multiply batches of matrices";
  let description = [{
    `C[i,j] = activation(A[i,j] · B[i,j] (+ C[i,j]) (+ bias) (+ addend[i,j])) (⊙ factor[i,j])` for
    `i < batch[0]`, `j < batch[1]`, where ⊙ multiplies element by element. A is m×k, B is k×n, C,
    the addend and the factor are m×n. Strides are in elements and count from each buffer's first
    element. `a` and `b` list the strides of row, column and the two batches. `c`, the addend and
    the factor list those of row and the two batches; their column stride is 1. The activations are
    `relu`, `gelu` (by erf), `gelu_tanh` and `silu`; f16 and bf16 are computed in f32 and rounded
    once, at the end.

    ```mlir
    tprt.gemm %a, %b into %c bias %v sizes [1024, 384, 64] batch [1, 1]
      a [64, 1, 0, 0] b [1, 64, 0, 0] c [384, 0, 0]
      : memref<8x128x64xf32>, memref<384x64xf32>, memref<8x128x384xf32>, memref<384xf32>
    // silu(A · B) ⊙ up: the gate of a Llama's MLP.
    tprt.gemm %a, %b into %c activation silu factor %up [96, 0, 0] sizes [16, 96, 64] batch [1, 1]
      a [64, 1, 0, 0] b [1, 64, 0, 0] c [96, 0, 0]
      : memref<16x64xf32>, memref<96x64xf32>, memref<16x96xf32> factor memref<16x96xf32>
    ```

    **Constraints:** (C1) one element type, floating point; (C2) one of a's row and column strides
    is 1, and the other is at least the size of the dimension with stride 1; the same holds for b;
    (C3) there is no addend with `accumulate`; the addend and the factor aren't in C's buffer, where
    different `memref.view`s of an arena count as different buffers.
  }];
  let arguments = (ins Arg<TPRT_StridedBuffer, "A", [MemRead]>:$a,
                       Arg<TPRT_StridedBuffer, "B", [MemRead]>:$b,
                       Arg<TPRT_StridedBuffer, "C", [MemRead, MemWrite]>:$c,
                       Arg<Optional<TPRT_StridedBuffer>, "added to each row", [MemRead]>:$bias,
                       Arg<Optional<TPRT_StridedBuffer>, "added", [MemRead]>:$addend,
                       Arg<Optional<TPRT_StridedBuffer>, "multiplied by, at the end",
                           [MemRead]>:$factor,
                       UnitAttr:$accumulate,
                       OptionalAttr<TPRT_Activation>:$activation,
                       DenseI64ArrayAttr:$sizes,
                       DenseI64ArrayAttr:$batch,
                       DenseI64ArrayAttr:$a_strides,
                       DenseI64ArrayAttr:$b_strides,
                       DenseI64ArrayAttr:$c_strides,
                       OptionalAttr<DenseI64ArrayAttr>:$addend_strides,
                       OptionalAttr<DenseI64ArrayAttr>:$factor_strides);
  let assemblyFormat = [{
    $a `,` $b `into` $c (`bias` $bias^)? (`accumulate` $accumulate^)?
    (`addend` $addend^ $addend_strides)? (`activation` $activation^)?
    (`factor` $factor^ $factor_strides)? `sizes` $sizes `batch` $batch
    `a` $a_strides `b` $b_strides `c` $c_strides attr-dict
    `:` type($a) `,` type($b) `,` type($c) (`,` type($bias)^)? (`addend` type($addend)^)?
    (`factor` type($factor)^)?
  }];
  let hasVerifier = 1;
}

class TPRT_AttentionBase<string mnemonic, list<Trait> traits = []>
    : TPRT_DestinationOp<mnemonic, "false", "Equivalent",
                         [DeclareOpInterfaceMethods<TPRT_LibraryCallInterface>] # traits> {
  let hasVerifier = 1;
  code commonDeclaration = [{
    /// The map of operand `number`.
    ::mlir::AffineMap getMap(unsigned number) {
      return ::llvm::cast<::mlir::AffineMapAttr>(getMaps()[number]).getValue();
    }
    /// How often each loop runs.
    ::llvm::SmallVector<int64_t> getLoopSizes();
  }];
}

def TPRT_AttentionOp : TPRT_AttentionBase<"attention"> {
  let summary = "Batched attention";
  let description = [{
    `softmax(query · keyᵀ · scale + mask) · value`, accumulated in f32 for f16 and bf16 and rounded
    once. An i1 mask is -inf where false; `causal` hides columns right of the diagonal. A row whose
    scores are all -inf is 0.

    As in linalg, `maps` say which loop walks which dimension of query, key, value, mask (if there
    is one) and output. The loops are (batches…, row, column, depth, width). Query is indexed by
    rows and depth, key by columns and depth, value by columns and width, output by rows and width.
    If a batch loop is missing from key and value, all of its iterations share them, like the heads
    of a group. The maps also express transposes and reshapes around attention.

    ```mlir
    // Heads behind the sequence, as a linear layer leaves them: b, h, row, column, depth, width.
    #q = affine_map<(b, h, t, s, d, e) -> (b, t, h, d)>
    #k = affine_map<(b, h, t, s, d, e) -> (b, s, h, d)>
    #v = affine_map<(b, h, t, s, d, e) -> (b, s, h, e)>
    #o = affine_map<(b, h, t, s, d, e) -> (b, t, h, e)>
    %r = tprt.attention causal %q, %k, %v into %init scale 0.125 maps [#q, #k, #v, #o]
      : tensor<2x64x12x32xf32>, tensor<2x64x12x32xf32>, tensor<2x64x12x32xf32> into tensor<2x64x12x32xf32> -> tensor<2x64x12x32xf32>
    ```

    **Constraints:** (C1) one element type, floating point; the mask's is that or i1; (C2) one map
    per operand, all over the same loops: at most eight batches and the other four; query, key,
    value and output are indexed by their loops, each once, and by any batches, the mask by rows,
    columns, batches and zeros; (C3) all dimensions that one loop walks have the same size.
  }];
  let arguments = (ins Arg<TPRT_Buffer, "the queries", [MemRead]>:$query,
                       Arg<TPRT_Buffer, "the keys", [MemRead]>:$key,
                       Arg<TPRT_Buffer, "the values", [MemRead]>:$value,
                       Arg<Optional<TPRT_Buffer>, "added to the scores", [MemRead]>:$mask,
                       Arg<TPRT_Buffer, "where the result goes", [MemWrite]>:$output,
                       F64Attr:$scale,
                       UnitAttr:$causal,
                       AffineMapArrayAttr:$maps);
  let assemblyFormat = [{
    (`causal` $causal^)? $query `,` $key `,` $value (`mask` $mask^)? `into` $output `scale` $scale
    `maps` $maps attr-dict
    `:` type($query) `,` type($key) `,` type($value) (`mask` type($mask)^)? `into` type($output)
    (`->` type($results)^)?
  }];
  let extraClassDeclaration = commonDeclaration # [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputMutable(); }
  }];
}

def TPRT_AttentionGradientOp : TPRT_AttentionBase<"attention_gradient"> {
  let summary = "The gradients of batched attention";
  let description = [{
    Computes the gradients of `tprt.attention`'s query, key and value from that of its output;
    `nn.attention_gradient` has the formulas. The probabilities are recomputed, one block of rows at
    a time. f16 and bf16 are computed in f32 and rounded once.

    Loops, maps and mask are those of `tprt.attention`, in the order of the operands. `gradient` is
    indexed by rows and width. The three results are indexed by rows and depth, by columns and
    depth, and by columns and width, each also by all batches.

    ```mlir
    #q = affine_map<(b, h, t, s, d, e) -> (b, t, h, d)>
    #k = affine_map<(b, h, t, s, d, e) -> (b, s, h, d)>
    #v = affine_map<(b, h, t, s, d, e) -> (b, s, h, e)>
    #o = affine_map<(b, h, t, s, d, e) -> (b, t, h, e)>
    %r:3 = tprt.attention_gradient causal %q, %k, %v gradient %g into %dq, %dk, %dv scale 0.125
        maps [#q, #k, #v, #o, #q, #k, #v]
      : tensor<2x64x12x32xf32>, tensor<2x64x12x32xf32>, tensor<2x64x12x32xf32> gradient tensor<2x64x12x32xf32>
        into tensor<2x64x12x32xf32>, tensor<2x64x12x32xf32>, tensor<2x64x12x32xf32>
      -> tensor<2x64x12x32xf32>, tensor<2x64x12x32xf32>, tensor<2x64x12x32xf32>
    ```

    **Constraints:** (C1) to (C3) of `tprt.attention`; (C4) a batch loop walks all three outputs.
  }];
  let arguments = (ins Arg<TPRT_Buffer, "the queries", [MemRead]>:$query,
                       Arg<TPRT_Buffer, "the keys", [MemRead]>:$key,
                       Arg<TPRT_Buffer, "the values", [MemRead]>:$value,
                       Arg<TPRT_Buffer, "the gradient of attention's output", [MemRead]>:$gradient,
                       Arg<Optional<TPRT_Buffer>, "added to the scores", [MemRead]>:$mask,
                       Arg<TPRT_Buffer, "where the queries' gradient goes",
                           [MemWrite]>:$query_gradient,
                       Arg<TPRT_Buffer, "where the keys' gradient goes", [MemWrite]>:$key_gradient,
                       Arg<TPRT_Buffer, "where the values' gradient goes",
                           [MemWrite]>:$value_gradient,
                       F64Attr:$scale,
                       UnitAttr:$causal,
                       AffineMapArrayAttr:$maps);
  let assemblyFormat = [{
    (`causal` $causal^)? $query `,` $key `,` $value `gradient` $gradient (`mask` $mask^)?
    `into` $query_gradient `,` $key_gradient `,` $value_gradient `scale` $scale `maps` $maps
    attr-dict
    `:` type($query) `,` type($key) `,` type($value) `gradient` type($gradient) (`mask`
    type($mask)^)?
    `into` type($query_gradient) `,` type($key_gradient) `,` type($value_gradient) (`->`
    type($results)^)?
  }];
  let extraClassDeclaration = commonDeclaration # [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return ::mlir::MutableOperandRange(getOperation(), getNumOperands() - 3, 3);
    }
  }];
}

def TPRT_AttentionBlockOp
    : TPRT_AttentionBase<"attention_block", [AttrSizedOperandSegments]> {
  let summary = "Batched attention to a block of the keys, with its log-sum-exp";
  let description = [{
    `tprt.attention`, and the logarithm of the sum of the exponentials of each row's scores, which is
    f32 for f16 and bf16. With an `offset`, an i64, row i sees the columns up to i + offset;
    `nn.attention_block` has the formulas. The maps are those of `tprt.attention`, of the offset, which
    no loop indexes, and of `lse`, which is indexed by rows and all batches.

    ```mlir
    #q = affine_map<(b, h, t, s, d, e) -> (b, t, h, d)>
    #k = affine_map<(b, h, t, s, d, e) -> (b, s, h, d)>
    #v = affine_map<(b, h, t, s, d, e) -> (b, s, h, e)>
    #o = affine_map<(b, h, t, s, d, e) -> (b, t, h, e)>
    #n = affine_map<(b, h, t, s, d, e) -> ()>
    #l = affine_map<(b, h, t, s, d, e) -> (b, h, t)>
    %r:2 = tprt.attention_block %q, %k, %v offset %n into %init, %sums scale 0.125
        maps [#q, #k, #v, #n, #o, #l]
      : tensor<2x64x12x32xf32>, tensor<2x64x12x32xf32>, tensor<2x64x12x32xf32> offset tensor<i64>
        into tensor<2x64x12x32xf32>, tensor<2x12x64xf32>
      -> tensor<2x64x12x32xf32>, tensor<2x12x64xf32>
    ```

    **Constraints:** (C1) to (C3) of `tprt.attention`; lse is f32, or f64 for f64.
  }];
  let arguments = (ins Arg<TPRT_Buffer, "the queries", [MemRead]>:$query,
                       Arg<TPRT_Buffer, "the keys", [MemRead]>:$key,
                       Arg<TPRT_Buffer, "the values", [MemRead]>:$value,
                       Arg<Optional<TPRT_Buffer>, "added to the scores", [MemRead]>:$mask,
                       Arg<Optional<TPRT_Buffer>, "the rows' position", [MemRead]>:$offset,
                       Arg<TPRT_Buffer, "where the result goes", [MemWrite]>:$output,
                       Arg<TPRT_Buffer, "where the log-sum-exps go", [MemWrite]>:$lse,
                       F64Attr:$scale,
                       AffineMapArrayAttr:$maps);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^)? (`offset` $offset^)? `into` $output `,` $lse
    `scale` $scale `maps` $maps attr-dict
    `:` type($query) `,` type($key) `,` type($value) (`mask` type($mask)^)?
    (`offset` type($offset)^)? `into` type($output) `,` type($lse) (`->` type($results)^)?
  }];
  let extraClassDeclaration = commonDeclaration # [{
    bool getCausal() { return getOffset() != nullptr; }
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return ::mlir::MutableOperandRange(getOperation(), getNumOperands() - 2, 2);
    }
  }];
}

def TPRT_AttentionBlockGradientOp
    : TPRT_AttentionBase<"attention_block_gradient", [AttrSizedOperandSegments]> {
  let summary = "The part of batched attention's gradients that a block of the keys has";
  let description = [{
    `tprt.attention_gradient` for a block of the keys and values, from the log-sum-exp of all of each
    row's scores, and from `delta`, the sum of its probabilities times their gradients;
    `nn.attention_block_gradient` has the formulas. `lse` and `delta` are indexed by rows and all
    batches, the offset by no loop, all other operands as in `tprt.attention_gradient`.

    ```mlir
    %r:3 = tprt.attention_block_gradient %q, %k, %v gradient %g lse %l delta %d offset %n
        into %dq, %dk, %dv scale 0.125 maps [#q, #k, #v, #o, #l, #l, #n, #q, #k, #v]
      : tensor<2x64x12x32xf32>, tensor<2x64x12x32xf32>, tensor<2x64x12x32xf32>
        gradient tensor<2x64x12x32xf32> lse tensor<2x12x64xf32> delta tensor<2x12x64xf32>
        offset tensor<i64>
        into tensor<2x64x12x32xf32>, tensor<2x64x12x32xf32>, tensor<2x64x12x32xf32>
      -> tensor<2x64x12x32xf32>, tensor<2x64x12x32xf32>, tensor<2x64x12x32xf32>
    ```

    **Constraints:** (C1) to (C4) of `tprt.attention_gradient`; lse and delta are f32, or f64 for f64.
  }];
  let arguments = (ins Arg<TPRT_Buffer, "the queries", [MemRead]>:$query,
                       Arg<TPRT_Buffer, "the keys", [MemRead]>:$key,
                       Arg<TPRT_Buffer, "the values", [MemRead]>:$value,
                       Arg<TPRT_Buffer, "the gradient of attention's output", [MemRead]>:$gradient,
                       Arg<TPRT_Buffer, "the rows' log-sum-exps", [MemRead]>:$lse,
                       Arg<TPRT_Buffer, "the rows' sums", [MemRead]>:$delta,
                       Arg<Optional<TPRT_Buffer>, "added to the scores", [MemRead]>:$mask,
                       Arg<Optional<TPRT_Buffer>, "the rows' position", [MemRead]>:$offset,
                       Arg<TPRT_Buffer, "where the queries' gradient goes",
                           [MemWrite]>:$query_gradient,
                       Arg<TPRT_Buffer, "where the keys' gradient goes", [MemWrite]>:$key_gradient,
                       Arg<TPRT_Buffer, "where the values' gradient goes",
                           [MemWrite]>:$value_gradient,
                       F64Attr:$scale,
                       AffineMapArrayAttr:$maps);
  let assemblyFormat = [{
    $query `,` $key `,` $value `gradient` $gradient `lse` $lse `delta` $delta (`mask` $mask^)?
    (`offset` $offset^)? `into` $query_gradient `,` $key_gradient `,` $value_gradient `scale` $scale
    `maps` $maps attr-dict
    `:` type($query) `,` type($key) `,` type($value) `gradient` type($gradient) `lse` type($lse)
    `delta` type($delta) (`mask` type($mask)^)? (`offset` type($offset)^)?
    `into` type($query_gradient) `,` type($key_gradient) `,` type($value_gradient) (`->`
    type($results)^)?
  }];
  let extraClassDeclaration = commonDeclaration # [{
    bool getCausal() { return getOffset() != nullptr; }
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return ::mlir::MutableOperandRange(getOperation(), getNumOperands() - 3, 3);
    }
  }];
}

def TPRT_ConvolutionOp : TPRT_DestinationOp<"convolution", "false", "Equivalent",
                                            [AttrSizedOperandSegments,
                                             DeclareOpInterfaceMethods<TPRT_LibraryCallInterface>]> {
  let summary = "Convolve, and add and apply what follows";
  let description = [{
    `output = activation(convolution(input, weight) (* scale) (+ bias) (+ addend))`, as PyTorch's
    `conv1d` to `conv3d` and `nn.convolution` define it: the input is (b, groups · c, s…), the
    weight (groups · m, c, k…), the output (b, groups · m, p…). Scale and bias have an element for
    each output channel, the addend is like the output. f16 and bf16 are computed in f32 and rounded
    once, at the end. `nn.convolution` and the ops after it become this op.

    ```mlir
    %r = tprt.convolution %x, %w scale %s bias %b addend %y activation relu into %init
        groups 1 stride [1, 1] padding [1, 1] dilation [1, 1]
      : tensor<2x8x16x16xf32>, tensor<4x8x3x3xf32> scale tensor<4xf32> bias tensor<4xf32>
        addend tensor<2x4x16x16xf32> into tensor<2x4x16x16xf32> -> tensor<2x4x16x16xf32>
    ```

    **Constraints:** (C1) one element type, floating point; (C2) one to three spatial dimensions,
    each with a stride, a padding and a dilation; stride and dilation are positive, padding isn't
    negative; (C3) the shapes have the form above.
  }];
  let arguments = (ins Arg<TPRT_Buffer, "input", [MemRead]>:$input,
                       Arg<TPRT_Buffer, "weight", [MemRead]>:$weight,
                       Arg<Optional<TPRT_Buffer>, "a factor of each channel", [MemRead]>:$scale,
                       Arg<Optional<TPRT_Buffer>, "added to each channel", [MemRead]>:$bias,
                       Arg<Optional<TPRT_Buffer>, "added", [MemRead]>:$addend,
                       Arg<TPRT_Buffer, "where the result goes", [MemWrite]>:$output,
                       OptionalAttr<TPRT_Activation>:$activation,
                       I64Attr:$groups,
                       DenseI64ArrayAttr:$stride,
                       DenseI64ArrayAttr:$padding,
                       DenseI64ArrayAttr:$dilation);
  let assemblyFormat = [{
    $input `,` $weight (`scale` $scale^)? (`bias` $bias^)? (`addend` $addend^)?
    (`activation` $activation^)? `into` $output `groups` $groups `stride` $stride
    `padding` $padding `dilation` $dilation attr-dict
    `:` type($input) `,` type($weight) (`scale` type($scale)^)? (`bias` type($bias)^)?
    (`addend` type($addend)^)? `into` type($output) (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputMutable(); }
  }];
}

def TPRT_GroupedGemmOp : TPRT_DestinationOp<"grouped_gemm", "false", "Equivalent",
                                            [DeclareOpInterfaceMethods<TPRT_LibraryCallInterface>]> {
  let summary = "Multiply groups of rows";
  let description = [{
    As in linalg, `maps` say which loop walks which dimension of a, b and output. The loops are
    (group, row, column, depth). `bounds` say which rows belong to a group, as for
    `nn.grouped_matmul`. There are two forms:

    - The output is indexed by rows and columns: for each row of group g,
      `output[row, column] = Σ a[row, depth] · b[g, depth, column]` over depth. Rows in no group are 0.
    - The output is indexed by groups, depth and columns:
      `output[g, depth, column] = Σ a[row, depth] · b[row, column]` over the rows of group g.

    f16 and bf16 are computed in f32 and rounded once. `nn.grouped_matmul` and `nn.grouped_outer_sum`
    become this op.

    ```mlir
    #a = affine_map<(g, m, n, k) -> (m, k)>
    #b = affine_map<(g, m, n, k) -> (g, n, k)>
    #c = affine_map<(g, m, n, k) -> (m, n)>
    %r = tprt.grouped_gemm %x, %w bounds %b into %init maps [#a, #b, #c]
      : tensor<16x8xf32>, tensor<4x6x8xf32> bounds tensor<5xi32> into tensor<16x6xf32> -> tensor<16x6xf32>
    ```

    **Constraints:** (C1) a, b and output have one element type, floating point; (C2) the maps are
    permutations of the loops of one of the two forms, and the output's map keeps their order; (C3)
    all dimensions that one loop walks have the same size, and there is one bound more than groups;
    (C4) groups aren't the last dimension of b.
  }];
  let arguments = (ins Arg<TPRT_Buffer, "the rows", [MemRead]>:$a,
                       Arg<TPRT_Buffer, "the matrices, or more rows", [MemRead]>:$b,
                       Arg<TPRT_IndexBuffer, "where the groups begin and end", [MemRead]>:$bounds,
                       Arg<TPRT_Buffer, "where the result goes", [MemWrite]>:$output,
                       AffineMapArrayAttr:$maps);
  let assemblyFormat = [{
    $a `,` $b `bounds` $bounds `into` $output `maps` $maps attr-dict
    `:` type($a) `,` type($b) `bounds` type($bounds) `into` type($output) (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    enum Loop { Group, Row, Column, Depth };
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputMutable(); }
    /// The operands with maps, in their order.
    ::llvm::SmallVector<::mlir::OpOperand *, 3> getMapped() {
      return {&getAMutable(), &getBMutable(), &getOutputMutable()};
    }
    /// The map of the `number`-th of them.
    ::mlir::AffineMap getMap(unsigned number) {
      return ::llvm::cast<::mlir::AffineMapAttr>(getMaps()[number]).getValue();
    }
    /// How often each loop runs.
    ::llvm::SmallVector<int64_t> getLoopSizes();
    /// Whether the output is indexed by groups.
    bool sumsRows() { return getMap(2).isFunctionOfDim(Group); }
  }];
}

def TPRT_SortOp : TPRT_DestinationOp<"sort", "false"> {
  let summary = "Sort along a dimension";
  let description = [{
    The first elements along `dim` in ascending or descending order, as many as `values` has, and
    their positions; see `nn.sort`.

    ```mlir
    %v, %i = tprt.sort descending %0 into %values, %indices dim 1
      : tensor<4x8xf32> into tensor<4x2xf32>, tensor<4x2xi64> -> tensor<4x2xf32>, tensor<4x2xi64>
    ```

    **Constraints:** (C1) the shapes and types are those of `nn.sort`.
  }];
  let arguments = (ins Arg<TPRT_Buffer, "what is sorted", [MemRead]>:$input,
                       Arg<TPRT_Buffer, "where the elements go", [MemWrite]>:$values,
                       Arg<TPRT_Buffer, "where their positions go", [MemWrite]>:$indices,
                       I64Attr:$dim,
                       UnitAttr:$descending);
  let assemblyFormat = [{
    (`descending` $descending^)? $input `into` $values `,` $indices `dim` $dim attr-dict
    `:` type($input) `into` type($values) `,` type($indices) (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return ::mlir::MutableOperandRange(getOperation(), 1, 2);
    }
  }];
}

#endif // TP_DIALECT_TPRT_TPRTCOMPUTEOPS_TD
