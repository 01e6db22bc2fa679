//===- NNContractionOps.td - Linear, matmul, attention -----*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_NN_NNCONTRACTIONOPS_TD
#define TP_DIALECT_NN_NNCONTRACTIONOPS_TD

include "tp/Dialect/NN/NNBase.td"

def NN_LinearOp : NN_RuleOp<"linear",
    "ShardingRule::einsum(*this, \"(b.. k, n k) -> (b.. n)\").linear({{0}, {1}})",
    [NN_InferType]> {
  let summary = "x · weightᵀ";
  let description = [{
    PyTorch's `linear` without the bias (importers add it with `nn.add`, so a sum over ranks never
    counts it twice). Splitting `k` is row-parallel and gives Partial(sum); splitting `n` is
    column-parallel.

    ```mlir
    %1 = nn.linear %x, %w : (tensor<2x8x16xf32>, tensor<32x16xf32>) -> tensor<2x8x32xf32>
    ```

    **Constraints:** (C1) x is (b…, k), weight (n, k), the result (b…, n); (C2) one element type.
  }];
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$weight);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input `,` $weight attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def NN_MatmulOp : NN_RuleOp<"matmul",
    "ShardingRule::einsum(*this, \"(b.. m k, b.. k n) -> (b.. m n)\").linear({{0}, {1}})",
    [NN_InferType]> {
  let summary = "Matrix product, batch dimensions broadcast";
  let description = [{
    Both operands have at least two dimensions; leading dimensions broadcast as in NumPy.

    ```mlir
    %2 = nn.matmul %0, %1 : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
    ```

    **Constraints:** (C1) (b…, m, k) · (b…, k, n) = (b…, m, n); (C2) one element type.
  }];
  let arguments = (ins NN_NumericTensor:$lhs, NN_NumericTensor:$rhs);
  let results = (outs NN_NumericTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

/// TPEnums.td defines the enumeration.
def NN_ContextMethodAttr
    : Attr<CPred<"::llvm::isa<::mlir::tp::ContextMethodAttr>($_self)">, "a context method"> {
  let storageType = "::mlir::tp::ContextMethodAttr";
  let returnType = "::mlir::tp::ContextMethod";
  let convertFromStorage = "$_self.getValue()";
}

def NN_AttentionOp : NN_RuleOp<"attention", "getAttentionRule()",
    [NN_InferType, DeclareOpInterfaceMethods<AttentionOpInterface>], partitioned = 1> {
  let summary = "Scaled dot-product attention";
  let description = [{
    `softmax(query · keyᵀ * scale + mask) · value` over the last two dimensions, PyTorch's
    `scaled_dot_product_attention` with dropout 0. A boolean mask keeps the scores where it is true;
    `causal` keeps j ≤ i. A row whose scores are all -inf is 0 and gives gradients of 0, as in
    PyTorch; `nn.softmax` is NaN for such a row. With four dimensions and fewer key/value heads than
    query heads, query head i uses key head i / (heads / key heads) (grouped-query attention). Batch
    and heads can be split; the head dimension stays whole.

    Without `context`, the sequence stays whole, too. With it, the op has a rule for split sequences:

    | `context` | over the mesh dimensions that split the sequence |
    |---|---|
    | `all_gather` | rows of the query are split; key and value are whole |
    | `all_to_all` | heads are split instead of the sequence (Ulysses) |
    | `cheapest` | rows or heads are split |
    | `ring` | rows of query, key and value are split: blocks of key and value pass from rank to rank, and the partial results are merged by their log-sum-exp (Ring Attention) |

    ```mlir
    %r = nn.attention %q, %k, %v mask %m scale 0.125
       : (tensor<2x12x64x32xf32>, tensor<2x12x64x32xf32>, tensor<2x12x64x32xf32>, tensor<2x1x64x64xi1>) -> tensor<2x12x64x32xf32>
    %s = nn.attention causal %q, %k, %v scale 0.125 : (…)
    %t = nn.attention causal %q, %k, %v scale 0.125 context ring : (…)
    ```

    **Constraints:** (C1) query (b…, h, t, d), key (b…, hk, s, d), value (b…, hk, s, e), result (b…,
    h, t, e), hk divides h; (C2) mask broadcasts to (b…, h, t, s) and is i1 or of query's type; (C3)
    causal excludes a mask; (C4) `context ring` needs t = s.
  }];
  let arguments = (ins NN_FloatTensor:$query, NN_FloatTensor:$key, NN_FloatTensor:$value,
                       Optional<NN_Tensor>:$mask, F64Attr:$scale, UnitProp:$causal,
                       OptionalAttr<NN_ContextMethodAttr>:$context_method);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    (`causal` $causal^)? $query `,` $key `,` $value (`mask` $mask^)? `scale` $scale
    (`context` custom<ContextMethod>($context_method)^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::tp::ShardingRule getAttentionRule();";
}

def NN_AttentionBlockOp : NN_RuleOp<"attention_block", "getAttentionRule()",
    [NN_InferType, AttrSizedOperandSegments], differentiable = 0> {
  let summary = "Attention to a block of the keys and values";
  let description = [{
    `nn.attention`, and the logarithm of the sum of the exponentials of each row's scores, from which
    the results for several blocks of keys and values are merged (Milakov and Gimelshein, Online
    normalizer calculation for softmax): with the results r₁, r₂ and the log-sum-exps l₁, l₂,

        l = log(exp(l₁) + exp(l₂))
        r = r₁ * exp(l₁ - l) + r₂ * exp(l₂ - l)

    With an `offset`, row i sees the columns j ≤ i + offset, which may be none or all: the first row's
    position minus the first column's in a causal attention. A row that sees nothing has the result
    0 and the log-sum-exp -inf. The per-rank form of `nn.attention` with `context ring` consists of
    these ops.

    ```mlir
    %r, %l = nn.attention_block %q, %k, %v offset %o scale 0.125
       : (tensor<2x4x16x32xf32>, tensor<2x4x16x32xf32>, tensor<2x4x16x32xf32>, tensor<i64>)
      -> (tensor<2x4x16x32xf32>, tensor<2x4x16x1xf32>)
    ```

    **Constraints:** (C1) query, key, value and mask as in `nn.attention`; (C2) the result is (b…, h,
    t, e), the log-sum-exp (b…, h, t, 1), in f32 for f16 and bf16; (C3) an offset excludes a mask.
  }];
  let arguments = (ins NN_FloatTensor:$query, NN_FloatTensor:$key, NN_FloatTensor:$value,
                       Optional<NN_Tensor>:$mask, Optional<0DTensorOf<[I64]>>:$offset,
                       F64Attr:$scale);
  let results = (outs NN_FloatTensor:$result, NN_FloatTensor:$lse);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^)? (`offset` $offset^)? `scale` $scale attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::tp::ShardingRule getAttentionRule();
    bool getCausal() { return getOffset() != nullptr; }
    /// Builds the formulas as nn ops, which hold the scores of all rows. Returns the results.
    ::llvm::SmallVector<::mlir::Value> decompose(::mlir::ImplicitLocOpBuilder &builder);
  }];
}

def NN_EmbeddingOp : NN_RuleOp<"embedding",
                               "ShardingRule::einsum(*this, \"(i.., v d) -> (i.. d)\")",
                               [NN_InferType], partitioned = 1> {
  let summary = "Look rows of a table up";
  let description = [{
    Row `indices[i…]` of `weight`. Splitting the rows of the table (`v`) makes this a masked lookup:
    each rank gives the rows that it holds and zeros for all others, which is Partial(sum). An index
    out of range is an error at run time. Row `padding` gets no gradient. As in PyTorch,
    `scale_grad_by_freq` divides the gradient of each row by the number of indices in the whole
    mini-batch that name it; it doesn't change the result.

    ```mlir
    %1 = nn.embedding %ids, %table : (tensor<2x8xi64>, tensor<100x16xf32>) -> tensor<2x8x16xf32>
    ```

    **Constraints:** (C1) weight is (v, d), the result (i…, d); (C2) the result has weight's element
    type.
  }];
  let arguments = (ins NN_IndexTensor:$indices, NN_Tensor:$weight, OptionalAttr<I64Attr>:$padding,
                       UnitProp:$scale_grad_by_freq);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $indices `,` $weight (`padding` $padding^)? (`scale_grad_by_freq` $scale_grad_by_freq^)?
    attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // TP_DIALECT_NN_NNCONTRACTIONOPS_TD
