//===- NNTrainingOps.td - Ops of training steps ------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_NN_NNTRAININGOPS_TD
#define TP_DIALECT_NN_NNTRAININGOPS_TD

include "tp/Dialect/NN/NNBase.td"

def NN_OuterSumOp : NN_RuleOp<"outer_sum",
    "ShardingRule::einsum(*this, \"(b.. m, b.. n) -> (m n)\").linear({{0}, {1}})", [NN_InferType]> {
  let summary = "Sum of the outer products over all leading dimensions";
  let description = [{
    `result[m, n] = Σ_b lhs[b…, m] * rhs[b…, n]`: the gradient of `nn.linear`'s weight. Splitting a
    leading dimension, the batch or the sequence, gives Partial(sum).

    ```mlir
    %2 = nn.outer_sum %0, %1 : (tensor<2x8x32xf32>, tensor<2x8x16xf32>) -> tensor<32x16xf32>
    ```

    **Constraints:** (C1) the leading dimensions agree; (C2) the result is (m, n); (C3) one element
    type.
  }];
  let arguments = (ins NN_FloatTensor:$lhs, NN_FloatTensor:$rhs);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def NN_AttentionGradientOp : NN_RuleOp<"attention_gradient", "getAttentionGradientRule()",
                                       [NN_InferType], partitioned = 1, differentiable = 0> {
  let summary = "The gradients of nn.attention's query, key and value";
  let description = [{
    With `p = softmax(query · keyᵀ * scale + mask)`, as in `nn.attention`, and the `gradient` of its
    result:

        value_gradient = pᵀ · gradient
        scores = p * (w - Σ p * w),  w = gradient · valueᵀ         (the sum over a row)
        query_gradient = scores · key * scale
        key_gradient   = scoresᵀ · query * scale

    The probabilities are recomputed, one block of rows of scores at a time. In grouped-query
    attention, each query head has its own gradients of the shared key and value. `tp-grad` adds
    these up with `nn.reduce`, whose result is Partial if a group is split. Batch and heads can be
    split. With `context`, so can the sequence, as in `nn.attention`: if rows are split and key and
    value are whole, their gradients are Partial. In a ring, the gradients travel with their blocks.
    All three results are linear in `gradient`.

    ```mlir
    %dq, %dk, %dv = nn.attention_gradient causal %q, %k, %v gradient %g scale 0.125
       : (tensor<2x12x64x32xf32>, tensor<2x4x64x32xf32>, tensor<2x4x64x32xf32>, tensor<2x12x64x32xf32>)
      -> (tensor<2x12x64x32xf32>, tensor<2x12x64x32xf32>, tensor<2x12x64x32xf32>)
    ```

    The gradient of a mask needs the scores of all rows. If it is wanted, `tp-grad` expands the
    formulas into nn ops.

    **Constraints:** (C1) query, key, value and mask as in `nn.attention`, gradient of its result's
    type; (C2) the results are (b…, h, t, d), (b…, h, s, d) and (b…, h, s, e).
  }];
  let arguments = (ins NN_FloatTensor:$query, NN_FloatTensor:$key, NN_FloatTensor:$value,
                   NN_FloatTensor:$gradient,
                       Optional<NN_Tensor>:$mask, F64Attr:$scale, UnitProp:$causal,
                       OptionalAttr<NN_ContextMethodAttr>:$context_method);
  let results = (outs NN_FloatTensor:$query_gradient, NN_FloatTensor:$key_gradient,
                 NN_FloatTensor:$value_gradient);
  let assemblyFormat = [{
    (`causal` $causal^)? $query `,` $key `,` $value `gradient` $gradient (`mask` $mask^)? `scale`
    $scale (`context` custom<ContextMethod>($context_method)^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::tp::ShardingRule getAttentionGradientRule();
    /// Builds the formulas as nn ops, which hold the scores of all rows. Returns the results.
    ::llvm::SmallVector<::mlir::Value> decompose(::mlir::ImplicitLocOpBuilder &builder);
  }];
}

def NN_AttentionBlockGradientOp : NN_RuleOp<"attention_block_gradient",
    "getAttentionGradientRule()", [NN_InferType, AttrSizedOperandSegments], differentiable = 0> {
  let summary = "The part of attention's gradients that a block of the keys and values has";
  let description = [{
    The formulas of `nn.attention_gradient` for some of the keys and values. The probabilities are
    those of all of them: `p = exp(query · keyᵀ * scale + mask - lse)`, with the log-sum-exp of all
    scores of the row. `delta` is the row's sum `Σ p * w`, which is that of `gradient * result`
    (Dao, FlashAttention-2). The query's gradient is the sum of what the blocks give. With an
    `offset`, rows see the columns that they see in `nn.attention_block`.

    ```mlir
    %dq, %dk, %dv = nn.attention_block_gradient %q, %k, %v gradient %g lse %l delta %d offset %o
        scale 0.125
       : (tensor<2x4x16x32xf32>, tensor<2x4x16x32xf32>, tensor<2x4x16x32xf32>,
          tensor<2x4x16x32xf32>, tensor<2x4x16x1xf32>, tensor<2x4x16x1xf32>, tensor<i64>)
      -> (tensor<2x4x16x32xf32>, tensor<2x4x16x32xf32>, tensor<2x4x16x32xf32>)
    ```

    **Constraints:** (C1) query, key, value, mask, lse and offset as in `nn.attention_block`, gradient
    of its result's type, delta of lse's; (C2) the results are those of `nn.attention_gradient`.
  }];
  let arguments = (ins NN_FloatTensor:$query, NN_FloatTensor:$key, NN_FloatTensor:$value,
                       NN_FloatTensor:$gradient, NN_FloatTensor:$lse, NN_FloatTensor:$delta,
                       Optional<NN_Tensor>:$mask, Optional<0DTensorOf<[I64]>>:$offset,
                       F64Attr:$scale);
  let results = (outs NN_FloatTensor:$query_gradient, NN_FloatTensor:$key_gradient,
                 NN_FloatTensor:$value_gradient);
  let assemblyFormat = [{
    $query `,` $key `,` $value `gradient` $gradient `lse` $lse `delta` $delta (`mask` $mask^)?
    (`offset` $offset^)? `scale` $scale attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::tp::ShardingRule getAttentionGradientRule();
    bool getCausal() { return getOffset() != nullptr; }
    /// Builds the formulas as nn ops, which hold the scores of all rows. Returns the results.
    ::llvm::SmallVector<::mlir::Value> decompose(::mlir::ImplicitLocOpBuilder &builder);
  }];
}

def NN_ScatterAddRowsOp : NN_RuleOp<"scatter_add_rows",
    "ShardingRule::einsum(*this, \"(i.., i.. d) -> (v d)\").linear({{1}})", partitioned = 1> {
  let summary = "Add rows to the rows of zero that an index tensor names";
  let description = [{
    `result[v, d] = Σ rows[i…, d]` over all i with `indices[i…] = v`: the gradient of
    `nn.embedding`'s table. Splitting the indices gives Partial(sum). If the rows of the result
    (`v`) are split, each rank adds only what belongs to its own rows. An index out of range is an
    error at run time.

    ```mlir
    %1 = nn.scatter_add_rows %ids, %rows : (tensor<2x8xi64>, tensor<2x8x16xf32>) -> tensor<100x16xf32>
    ```

    **Constraints:** (C1) rows is (i…, d), the result (v, d); (C2) one element type.
  }];
  let arguments = (ins NN_IndexTensor:$indices, NN_FloatTensor:$rows);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$indices `,` $rows attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def NN_RandomUniformOp : NN_RuleOp<"random_uniform", "ShardingRule::elementwise(*this)",
                                   [NN_InferType], differentiable = 0> {
  let summary = "Uniform random numbers in [0, 1), a function of counter and index";
  let description = [{
    Element i is the 24 leading bits of the first word of Philox-4x32-10 (Salmon et al., Parallel
    Random Numbers: As Easy as 1, 2, 3) at counter (index[i], counter), two words each, with key
    (seed, stream), of which the lower word of each counts. It depends on nothing else: if `index` is
    the global index of each element, every mesh draws the same numbers as one device.

    ```mlir
    %r = nn.random_uniform %step, %index stream %three seed 0 : (tensor<i64>, tensor<2x8xi64>, tensor<i64>) -> tensor<2x8xf32>
    ```

    The stream is an operand, so that layers that differ in it alone are compiled once.

    **Constraints:** (C1) counter and stream are scalars; (C2) the result has index's shape.
  }];
  let arguments = (ins StaticShapeTensorOf<[I64]>:$counter, StaticShapeTensorOf<[I64]>:$index,
                   StaticShapeTensorOf<[I64]>:$stream, I64Attr:$seed);
  let results = (outs StaticShapeTensorOf<[F32]>:$result);
  let assemblyFormat = "$counter `,` $index `stream` $stream `seed` $seed attr-dict `:` "
                       "functional-type(operands, results)";
  let hasVerifier = 1;
}

def NN_DropoutOp : NN_RuleOp<"dropout", "ShardingRule::elementwise(*this).linear({{0}})",
    [SameOperandsAndResultType, DeclareOpInterfaceMethods<GradientOpInterface, ["buildForward"]>],
        differentiable = 0, purity = []> {
  let summary = "Zero elements at random, scale the others";
  let description = [{
    PyTorch's dropout in training mode: an element is zero with probability `p`, and otherwise
    divided by `1 - p`. `tp-grad` turns the op into a product with a mask of `nn.random_uniform`,
    with different numbers in each step. A program that contains it and isn't a training program
    can't be compiled.

    Each dropout has its own random numbers. The op declares that it allocates its result. So passes
    that merge equal ops, such as `cse`, keep two dropouts of the same value, but remove a dropout
    without users.

    ```mlir
    %1 = nn.dropout %0 p 0.1 : tensor<2x4xf32>
    ```

    **Constraints:** (C1) 0 ≤ p ≤ 1.
  }];
  let arguments = (ins NN_FloatTensor:$input, F64Attr:$p);
  let results = (outs Res<NN_FloatTensor, "random numbers of its own", [MemAlloc]>:$result);
  let assemblyFormat = "$input `p` $p attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def NN_StepScalar : 0DTensorOf<[F32, F64]>;

def NN_AdamOp : NN_RuleOp<"adam", "ShardingRule::elementwise(*this)",
    [AllTypesMatch<["parameter", "gradient", "average", "square", "new_parameter", "new_average",
                    "new_square"]>,
     AllTypesMatch<["lr", "correction1", "correction2"]>], differentiable = 0> {
  let summary = "One step of Adam or AdamW";
  let description = [{
    PyTorch's `Adam` (Kingma and Ba), with `decoupled` its `AdamW` (Loshchilov and Hutter), element
    by element:

        g = gradient + weight_decay * parameter    (decoupled: parameter *= 1 - lr * weight_decay)
        average = beta1 * average + (1 - beta1) * g
        square  = beta2 * square + (1 - beta2) * g * g
        parameter -= lr / correction1 * average / (sqrt(square / correction2) + eps)

    with `correction1 = 1 - beta1^t` and `correction2 = 1 - beta2^t` in step t, counted from 1.

    ```mlir
    %w1, %m1, %v1 = nn.adam decoupled %w, %g, %m, %v lr %lr corrections %c1, %c2
      betas 0.9, 0.999 eps 1.0e-8 weight_decay 0.01 : tensor<16x16xf32>, tensor<f32>
    ```

    **Constraints:** (C1) rate and corrections are f64 for f64 parameters, else f32.
  }];
  let arguments = (ins NN_FloatTensor:$parameter, NN_FloatTensor:$gradient, NN_FloatTensor:$average,
                       NN_FloatTensor:$square, NN_StepScalar:$lr, NN_StepScalar:$correction1,
                       NN_StepScalar:$correction2, F64Attr:$beta1, F64Attr:$beta2, F64Attr:$eps,
                           F64Attr:$weight_decay,
                       UnitProp:$decoupled);
  let results = (outs NN_FloatTensor:$new_parameter, NN_FloatTensor:$new_average,
                 NN_FloatTensor:$new_square);
  let assemblyFormat = [{
    (`decoupled` $decoupled^)? $parameter `,` $gradient `,` $average `,` $square `lr` $lr
    `corrections` $correction1
    `,` $correction2 `betas` $beta1 `,` $beta2 `eps` $eps `weight_decay` $weight_decay attr-dict
    `:` type($parameter) `,` type($lr)
  }];
  let hasVerifier = 1;
}

def NN_AMSGradOp : NN_RuleOp<"amsgrad", "ShardingRule::elementwise(*this)",
    [AllTypesMatch<["parameter", "gradient", "average", "square", "largest",
                    "new_parameter", "new_average", "new_square", "new_largest"]>,
     AllTypesMatch<["lr", "correction1", "correction2"]>], differentiable = 0> {
  let summary = "One step of Adam or AdamW with amsgrad";
  let description = [{
    Like `nn.adam`, but divides by the largest `square` so far (Reddi et al., On the Convergence of
    Adam and Beyond):

        largest = max(largest, square)
        parameter -= lr / correction1 * average / (sqrt(largest / correction2) + eps)

    ```mlir
    %w1, %m1, %v1, %x1 = nn.amsgrad decoupled %w, %g, %m, %v, %x lr %lr corrections %c1, %c2
      betas 0.9, 0.999 eps 1.0e-8 weight_decay 0.01 : tensor<16x16xf32>, tensor<f32>
    ```

    **Constraints:** (C1) of `nn.adam`.
  }];
  let arguments = (ins NN_FloatTensor:$parameter,
                       NN_FloatTensor:$gradient,
                       NN_FloatTensor:$average,
                       NN_FloatTensor:$square,
                       NN_FloatTensor:$largest,
                       NN_StepScalar:$lr,
                       NN_StepScalar:$correction1,
                       NN_StepScalar:$correction2,
                       F64Attr:$beta1,
                       F64Attr:$beta2,
                       F64Attr:$eps,
                       F64Attr:$weight_decay,
                       UnitProp:$decoupled);
  let results = (outs NN_FloatTensor:$new_parameter,
                      NN_FloatTensor:$new_average,
                      NN_FloatTensor:$new_square,
                      NN_FloatTensor:$new_largest);
  let assemblyFormat = [{
    (`decoupled` $decoupled^)? $parameter `,` $gradient `,` $average `,` $square `,` $largest
    `lr` $lr `corrections` $correction1 `,` $correction2 `betas` $beta1 `,` $beta2 `eps` $eps
    `weight_decay` $weight_decay attr-dict `:` type($parameter) `,` type($lr)
  }];
  let hasVerifier = 1;
}

def NN_SGDOp : NN_RuleOp<"sgd", "ShardingRule::elementwise(*this)",
    [AllTypesMatch<["parameter", "gradient", "velocity", "new_parameter", "new_velocity"]>],
        differentiable = 0> {
  let summary = "One step of stochastic gradient descent with momentum";
  let description = [{
    PyTorch's `SGD`, element by element:

        g = gradient + weight_decay * parameter
        velocity = momentum * velocity + g
        parameter -= lr * velocity                 (nesterov: lr * (g + momentum * velocity))

    ```mlir
    %w1, %v1 = nn.sgd nesterov %w, %g, %v lr %lr momentum 0.9 weight_decay 0.0 : tensor<16x16xf32>, tensor<f32>
    ```

    Without momentum, there is no velocity, and plain arithmetic ops suffice. Dampening scales the
    gradient beforehand.

    **Constraints:** (C1) the rate is f64 for f64 parameters, else f32.
  }];
  let arguments = (ins NN_FloatTensor:$parameter, NN_FloatTensor:$gradient,
                   NN_FloatTensor:$velocity,
                       NN_StepScalar:$lr, F64Attr:$momentum, F64Attr:$weight_decay,
                       UnitProp:$nesterov);
  let results = (outs NN_FloatTensor:$new_parameter, NN_FloatTensor:$new_velocity);
  let assemblyFormat = [{
    (`nesterov` $nesterov^)? $parameter `,` $gradient `,` $velocity `lr` $lr `momentum` $momentum
    `weight_decay` $weight_decay attr-dict `:` type($parameter) `,` type($lr)
  }];
  let hasVerifier = 1;
}

def NN_StopGradientOp : NN_RuleOp<"stop_gradient", "ShardingRule::elementwise(*this).linear({{0}})",
    [SameOperandsAndResultType, DeclareOpInterfaceMethods<GradientOpInterface,
                                ["passesGradient", "buildUndifferentiated"]>],
        differentiable = 0> {
  let summary = "The identity, with a gradient of zero";
  let description = [{
    PyTorch's `detach()`, or a value computed under `torch.no_grad()`. `tp-grad` treats the result
    as a constant, and removes the op. In a program that isn't differentiated, `tp-propagate` and
    code generation remove it, so it costs nothing.

    ```mlir
    %1 = nn.stop_gradient %0 : tensor<2x4xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$input);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
  let hasFolder = 1;
}

def NN_RecomputeOp : NN_Op<"recompute", [MemoryEffects<[MemWrite]>, AlwaysSpeculatable,
    SameOperandsAndResultType, DeclareOpInterfaceMethods<ShardingRuleOpInterface>]> {
  let summary = "A value to compute from anew";
  let description = [{
    The identity. Ops that the backward pass computes a second time to save memory (activation
    checkpointing, parameters that are gathered again) read their inputs through this op. It keeps
    passes from using the results of the first computation for the second one.

    ```mlir
    %1 = nn.recompute %0 : tensor<2x4xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
  let extraClassDefinition = [{
    ::mlir::tp::ShardingRule $cppClass::getShardingRule() {
      return ::mlir::tp::ShardingRule::elementwise(*this).linear({{0} });
    }
  }];
}

#endif // TP_DIALECT_NN_NNTRAININGOPS_TD
