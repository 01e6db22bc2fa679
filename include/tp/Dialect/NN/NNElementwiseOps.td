//===- NNElementwiseOps.td - Pointwise ops -----------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_NN_NNELEMENTWISEOPS_TD
#define TP_DIALECT_NN_NNELEMENTWISEOPS_TD

include "tp/Dialect/NN/NNBase.td"

class NN_UnaryOp<string mnemonic, string what, string linear = "",
                 TypeConstraint type = NN_FloatTensor,
                 bit differentiable = 1>
    : NN_RuleOp<mnemonic, "ShardingRule::elementwise(*this)" # linear, [SameOperandsAndResultType],
                differentiable = differentiable> {
  let summary = what;
  let description = what # [{, element by element.}] # "\n\n```mlir\n%1 = nn." # mnemonic #
                    " %0 : tensor<2x4xf32>\n```\n";
  let arguments = (ins type:$input);
  let results = (outs type:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

def NN_NegOp : NN_UnaryOp<"neg", "-x", ".linear({{0}})", NN_NumericTensor>;
def NN_AbsOp : NN_UnaryOp<"abs", "The absolute value", "", NN_NumericTensor>;
def NN_ExpOp : NN_UnaryOp<"exp", "e to the power of x">;
def NN_Expm1Op : NN_UnaryOp<"expm1", "exp(x) - 1, exact near 0">;
def NN_LogOp : NN_UnaryOp<"log", "The natural logarithm">;
def NN_Log1pOp : NN_UnaryOp<"log1p", "log(1 + x), exact near 0">;
def NN_SqrtOp : NN_UnaryOp<"sqrt", "The square root">;
def NN_RsqrtOp : NN_UnaryOp<"rsqrt", "1 / sqrt(x)">;
def NN_ReciprocalOp : NN_UnaryOp<"reciprocal", "1 / x">;
def NN_SinOp : NN_UnaryOp<"sin", "The sine">;
def NN_CosOp : NN_UnaryOp<"cos", "The cosine">;
def NN_AtanOp : NN_UnaryOp<"atan", "The inverse tangent">;
def NN_TanhOp : NN_UnaryOp<"tanh", "The hyperbolic tangent">;
def NN_ErfOp : NN_UnaryOp<"erf", "The error function">;
def NN_SigmoidOp : NN_UnaryOp<"sigmoid", "1 / (1 + exp(-x))">;
def NN_SiluOp : NN_UnaryOp<"silu", "x * sigmoid(x)">;
def NN_ReluOp : NN_UnaryOp<"relu", "max(x, 0)", "", NN_NumericTensor>;
def NN_FloorOp : NN_UnaryOp<"floor", "The largest integer not above x">;
def NN_CeilOp : NN_UnaryOp<"ceil", "The smallest integer not below x">;
def NN_RoundOp : NN_UnaryOp<"round", "The nearest integer, the even one of two">;
def NN_LogicalNotOp : NN_UnaryOp<"logical_not", "not x", type = NN_BoolTensor, differentiable = 0>;

def NN_GeluOp : NN_RuleOp<"gelu", "ShardingRule::elementwise(*this)", [SameOperandsAndResultType]> {
  let summary = "Gaussian error linear unit";
  let description = [{
    `x * Φ(x)`, computed with erf; with `tanh`, PyTorch's `approximate='tanh'` form.

    ```mlir
    %1 = nn.gelu %0 : tensor<2x4xf32>
    %2 = nn.gelu tanh %0 : tensor<2x4xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$input, UnitProp:$tanh);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "(`tanh` $tanh^)? $input attr-dict `:` type($result)";
}

def NN_CastOp : NN_RuleOp<"cast", "getCastRule()", [SameOperandsAndResultShape]> {
  let summary = "Change the element type";
  let description = [{
    PyTorch's conversion: float to integer truncates, anything to bool is `x != 0`, bool to number
    is 0 or 1. The cast is linear only between float types of growing precision.

    ```mlir
    %1 = nn.cast %0 : tensor<2x4xi1> -> tensor<2x4xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
  let extraClassDeclaration = "::mlir::tp::ShardingRule getCastRule();";
}

class NN_BinaryOp<string mnemonic, string what, string linear = "", list<Trait> traits = [],
                  TypeConstraint type = NN_NumericTensor, bit partitioned = 0,
                  bit differentiable = 1>
    : NN_RuleOp<mnemonic, "ShardingRule::elementwise(*this)" # linear,
                traits # [SameOperandsAndResultElementType, ResultsBroadcastableShape,
                          NN_InferType],
                    partitioned = partitioned, differentiable = differentiable> {
  let summary = what;
  let description = what # ", element by element. Shapes broadcast as in NumPy.\n\n"
    "```mlir\n%2 = nn." # mnemonic #
    " %0, %1 : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>\n```\n";
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let extraClassDefinition = ruleDefinition # [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *,
        ::std::optional<::mlir::Location>, Adaptor adaptor,
        ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return inferBroadcast(adaptor.getOperands(), getElementTypeOrSelf(adaptor.getLhs()), types);
    }
  }];
}

// A sum is linear in both operands together. If one is a Partial and the other is replicated, the
// replicated one must count on one rank only; the partition hook takes care of this.
def NN_AddOp : NN_BinaryOp<"add", "a + b", ".linear({{0, 1}}).linearOnce({{0}, {1}})",
                           [Commutative], partitioned = 1>;
def NN_SubOp : NN_BinaryOp<"sub", "a - b", ".linear({{0, 1}}).linearOnce({{0}, {1}})",
                           partitioned = 1>;
def NN_MulOp : NN_BinaryOp<"mul", "a * b", ".linear({{0}, {1}})", [Commutative]>;
def NN_DivOp : NN_BinaryOp<"div", "a / b (truncated for integers)",
                           "\n.linear(getElementTypeOrSelf(getType()).isInteger() ? "
                           "::llvm::ArrayRef<::mlir::tp::LinearSet>() : "
                           "::llvm::ArrayRef<::mlir::tp::LinearSet>({::mlir::tp::LinearSet{0}}))">;
def NN_FloorDivOp : NN_BinaryOp<"floor_div", "floor(a / b)">;
def NN_RemainderOp : NN_BinaryOp<"remainder", "a - b * floor(a / b), the sign of b">;
def NN_PowOp : NN_BinaryOp<"pow", "a to the power of b">;
def NN_MaximumOp : NN_BinaryOp<"maximum", "The larger of a and b", "", [Commutative]>;
def NN_MinimumOp : NN_BinaryOp<"minimum", "The smaller of a and b", "", [Commutative]>;
def NN_LogicalAndOp : NN_BinaryOp<"logical_and", "a and b", "", [Commutative], NN_BoolTensor,
                                  differentiable = 0>;
def NN_LogicalOrOp : NN_BinaryOp<"logical_or", "a or b", "", [Commutative], NN_BoolTensor,
                                 differentiable = 0>;
def NN_LogicalXorOp : NN_BinaryOp<"logical_xor", "a xor b", "", [Commutative], NN_BoolTensor,
                                  differentiable = 0>;

def NN_ComparePredicate : I32EnumAttr<"ComparePredicate", "a comparison", [
    I32EnumAttrCase<"EQ", 0, "eq">, I32EnumAttrCase<"NE", 1, "ne">,
    I32EnumAttrCase<"LT", 2, "lt">, I32EnumAttrCase<"LE", 3, "le">,
    I32EnumAttrCase<"GT", 4, "gt">, I32EnumAttrCase<"GE", 5, "ge">]> {
  let cppNamespace = "::mlir::nn";
  let genSpecializedAttr = 0;
}

def NN_CompareOp : NN_RuleOp<"compare", "ShardingRule::elementwise(*this)",
                             [SameOperandsElementType, ResultsBroadcastableShape, NN_InferType],
                                 differentiable = 0> {
  let summary = "Compare";
  let description = [{
    `a predicate b`, element by element, shapes broadcast as in NumPy. Comparisons with NaN are
    false, except `ne`.

    ```mlir
    %2 = nn.compare le %0, %1 : (tensor<4x1xi64>, tensor<4xi64>) -> tensor<4x4xi1>
    ```
  }];
  let arguments = (ins EnumProp<NN_ComparePredicate>:$predicate, NN_SignlessTensor:$lhs,
                   NN_SignlessTensor:$rhs);
  let results = (outs NN_BoolTensor:$result);
  let assemblyFormat = "$predicate $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

def NN_WhereOp : NN_RuleOp<"where", "ShardingRule::elementwise(*this).linear({{1, 2}})",
                           [ResultsBroadcastableShape, NN_InferType]> {
  let summary = "Choose by a condition";
  let description = [{
    `condition ? a : b`, element by element, shapes broadcast as in NumPy.

    ```mlir
    %3 = nn.where %c, %a, %b : (tensor<4x4xi1>, tensor<2x4x4xf32>, tensor<f32>) -> tensor<2x4x4xf32>
    ```

    **Constraints:** (C1) both values have the result's element type.
  }];
  let arguments = (ins NN_BoolTensor:$condition, NN_Tensor:$lhs, NN_Tensor:$rhs);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$condition `,` $lhs `,` $rhs attr-dict `:` functional-type(operands, "
                       "results)";
  let hasVerifier = 1;
}

#endif // TP_DIALECT_NN_NNELEMENTWISEOPS_TD
