//===- NNGroupedOps.td - Products of groups of rows --------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_NN_NNGROUPEDOPS_TD
#define TP_DIALECT_NN_NNGROUPEDOPS_TD

include "tp/Dialect/NN/NNBase.td"

def NN_GroupedMatmulOp : NN_RuleOp<"grouped_matmul",
    "ShardingRule::einsum(*this, getBounds().getType().getRank() == 1"
    " ? \"(m k, e k n, b) -> (m n)\" : \"([p m] k, [p e] k n, p b) -> ([p m] n)\")"
    ".whole(\"m\").whole(\"b\").linear({{0}, {1}})",
    [NN_InferType], partitioned = 1> {
  let summary = "Multiply consecutive groups of rows by a matrix of their own";
  let description = [{
    The experts of a mixture of experts, PyTorch's `grouped_mm` of a matrix and a stack of them:
    group e consists of the rows `bounds[e]` to `bounds[e + 1] - 1` of `input`, which are multiplied
    by `weight[e]`. Groups may be empty. Rows in no group are 0. If the bounds don't ascend, the
    products of a row that is in several groups are added. A bound that isn't in [0, m] is an error
    at run time.

    With two-dimensional bounds, the rows and the groups are divided into p parts of equal size.
    `bounds[i]` are the bounds of the groups of part i, counted from the first row of the part. The
    parts can be split.

    Splitting `n` is column-parallel. Splitting `k` is row-parallel and splitting the groups of a
    part is expert-parallel; both give Partial(sum). The rows of a part stay whole.

    ```mlir
    %1 = nn.grouped_matmul %x, %w bounds %b
      : (tensor<16x8xf32>, tensor<4x8x6xf32>, tensor<5xi32>) -> tensor<16x6xf32>
    ```

    **Constraints:** (C1) input is (m, k), weight (e, k, n), bounds (e + 1) or, if p divides m and
    e, (p, e / p + 1), the result (m, n); (C2) one element type.
  }];
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$weight, NN_IndexTensor:$bounds);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $weight `bounds` $bounds attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def NN_GroupedOuterSumOp : NN_RuleOp<"grouped_outer_sum",
    "ShardingRule::einsum(*this, getBounds().getType().getRank() == 1"
    " ? \"(m k, m n, b) -> (e k n)\" : \"([p m] k, [p m] n, p b) -> ([p e] k n)\")"
    ".whole(\"m\").whole(\"b\").linear({{0}, {1}})",
    [NN_InferType], partitioned = 1> {
  let summary = "For each group of rows, the sum of the outer products";
  let description = [{
    `result[e, k, n] = Σ_m lhs[m, k] * rhs[m, n]` over the rows of group e, which are given as in
    `nn.grouped_matmul`: the gradient of its weight. An empty group gives zeros. The rows stay whole.

    ```mlir
    %1 = nn.grouped_outer_sum %x, %g bounds %b
      : (tensor<16x8xf32>, tensor<16x6xf32>, tensor<5xi32>) -> tensor<4x8x6xf32>
    ```

    **Constraints:** (C1) lhs is (m, k), rhs (m, n), bounds (e + 1) or, if p divides m and e,
    (p, e / p + 1), the result (e, k, n); (C2) one element type.
  }];
  let arguments = (ins NN_FloatTensor:$lhs, NN_FloatTensor:$rhs, NN_IndexTensor:$bounds);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `bounds` $bounds attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // TP_DIALECT_NN_NNGROUPEDOPS_TD
