//===- NNExpertOps.td - Tokens on their way to experts -----*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_NN_NNEXPERTOPS_TD
#define TP_DIALECT_NN_NNEXPERTOPS_TD

include "tp/Dialect/NN/NNBase.td"

// In the rules, `p` counts the blocks of the tokens, which are also those of the slots: the rank that
// has a block of the tokens computes the slots of the same number.

def NN_DispatchOp : NN_RuleOp<"dispatch", "getDispatchRule()", [], partitioned = 1> {
  let summary = "Copy tokens to the slots of experts";
  let description = [{
    GShard's dispatch (Lepikhin et al., "GShard: Scaling Giant Models with Conditional Computation
    and Automatic Sharding", 2020). `result[p, c]` is row `slots[p, c]` of `tokens`. If the slot is
    empty (-1), it is 0. The experts are divided into parts, and each part has its own slots.

    With `groups = [g, h]`, the tokens consist of g × n × h blocks of equal size, and so does
    dimension 0 of the slots, where n counts the parts. The blocks with the same first and the same
    last number are a group, which has slots in every part. A slot holds the number of a token in
    its group. Groups don't exchange tokens: they are what data parallelism (g) and context
    parallelism (h) split.

    If the parts are split, the tokens are split in the same way. Each rank then sends a token once
    to every rank of its group that has a slot for it, by a `tp.all_to_all` that may leave out rows
    of zeros (`tp.sparse_rows`).

    ```mlir
    %1 = nn.dispatch %x to %slots
      : (tensor<16x8xf32>, tensor<4x32xi64>) -> tensor<4x32x8xf32>
    ```

    **Constraints:** (C1) tokens are (t, d), slots (p, c), the result (p, c, d); (C2) p divides t;
    (C3) tokens and result have one element type; (C4) `groups` are two positive numbers whose
    product divides p.
  }];
  let arguments = (ins NN_FloatTensor:$tokens, NN_IndexTensor:$slots,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{1, 1}">:$groups);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $tokens `to` $slots attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::tp::ShardingRule getDispatchRule();";
}

def NN_CombineOp : NN_RuleOp<"combine", "getCombineRule()", [], partitioned = 1> {
  let summary = "Add the slots of experts to their tokens";
  let description = [{
    The transpose of `nn.dispatch`: `result[t]` is the sum of the rows `rows[p, c]` with
    `slots[p, c] = t`, of t's group. Rows of empty slots, -1, are ignored. If the parts are split, each rank adds
    the rows that it has for a token, and sends the sum to the token's rank.

    ```mlir
    %1 = nn.combine %y from %slots
      : (tensor<4x32x8xf32>, tensor<4x32xi64>) -> tensor<16x8xf32>
    ```

    **Constraints:** (C1) rows are (p, c, d), slots (p, c), the result (t, d); (C2) p divides t;
    (C3) rows and result have one element type; (C4) `groups` are those of `nn.dispatch`.
  }];
  let arguments = (ins NN_FloatTensor:$rows, NN_IndexTensor:$slots,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{1, 1}">:$groups);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $rows `from` $slots attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::tp::ShardingRule getCombineRule();";
}

#endif // TP_DIALECT_NN_NNEXPERTOPS_TD
