//===- LinalgBuilders.h - linalg ops from scalar bodies ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builders for the patterns of all op families: they describe a linalg.generic
// by its operands on a loop space and a function that builds its scalar body.
// The builders take care of f16 and bf16 (bodies compute in f32), of broadcast
// operands (indexing maps), and of splat constants (scalars).
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_CODEGEN_NNTOLINALG_LINALGBUILDERS_H
#define TP_LIB_CODEGEN_NNTOLINALG_LINALGBUILDERS_H

#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::tp::nnlinalg {

/// All tensors of the dialect are ranked, of static shape.
inline RankedTensorType getTensorType(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

/// A tensor, or a splat constant, and how the loops index it.
struct Operand {
  Value value;
  AffineMap map;
};

/// Builds a scalar body. `args`: one scalar per input, f16 and bf16 extended to
/// f32; `accs`: one scalar per output, unconverted. The results, one per
/// output, are rounded to the output's type if that is a smaller float.
using GenericBody = function_ref<SmallVector<Value>(
    ImplicitLocOpBuilder &, ArrayRef<Value> args, ArrayRef<Value> accs)>;
using ElementwiseBody =
    function_ref<Value(ImplicitLocOpBuilder &, ArrayRef<Value> args)>;
using ReductionBody = function_ref<Value(ImplicitLocOpBuilder &,
                                         ArrayRef<Value> args, Value acc)>;

/// The type in which bodies compute: f32 for f16 and bf16, else the type.
Type getComputeType(Type elementType);

/// A constant scalar or tensor, also of unsigned integers.
Value buildConstant(ImplicitLocOpBuilder &b, TypedAttr value);

/// A numeric scalar constant of `type`; integers are truncated from `value`.
Value getScalar(ImplicitLocOpBuilder &b, Type type, double value);

/// PyTorch's conversion of a scalar: float to integer truncates, anything to i1
/// is `x != 0`, i1 is 0 or 1; f16 and bf16 go through f32. A value that doesn't
/// fit into an integer type loses its upper bits.
Value convertScalar(ImplicitLocOpBuilder &b, Value value, Type type);

/// The initial value of a maximum: -inf or the smallest integer.
Value getLowest(ImplicitLocOpBuilder &b, Type type);

/// The value of a constant all of whose elements are equal.
TypedAttr getSplat(Value tensor);

/// A tensor of `shape` all of whose elements are `value`.
Value buildFilled(ImplicitLocOpBuilder &b, ArrayRef<int64_t> shape,
                  Value value);
Value buildEmpty(ImplicitLocOpBuilder &b, RankedTensorType type);

/// `value` as seen by loops over `shape`, its dimensions aligned at the right
/// as in NumPy. Looks through reshapes that only add or drop dimensions of size
/// 1, so that they don't separate producer and consumer.
Operand broadcastTo(Value value, ArrayRef<int64_t> shape);

/// A linalg.generic; `outs` hold the initial values.
SmallVector<Value> buildGeneric(ImplicitLocOpBuilder &b, ArrayRef<Operand> ins,
                                ArrayRef<Operand> outs,
                                ArrayRef<utils::IteratorType> iterators,
                                GenericBody body);

/// All-parallel loops over the result's shape; inputs broadcast.
Value buildElementwise(ImplicitLocOpBuilder &b, RankedTensorType type,
                       ValueRange inputs, ElementwiseBody body);
Value buildElementwise(ImplicitLocOpBuilder &b, RankedTensorType type,
                       ArrayRef<Operand> inputs, ElementwiseBody body);

/// Reduces the dimensions `dims` (ascending) of `shape` with `body`, starting
/// with `identity`. The result is of identity's type, without those dimensions.
Value buildReduction(ImplicitLocOpBuilder &b, ArrayRef<Operand> inputs,
                     ArrayRef<int64_t> shape, ArrayRef<int64_t> dims,
                     Value identity, ReductionBody body);

/// `rows`, which lacks the dimensions `dims`, as an operand of all `rank`
/// loops.
Operand asRows(Value rows, int64_t rank, ArrayRef<int64_t> dims);

/// acc + value, which the compiler may reassociate.
Value addToSum(ImplicitLocOpBuilder &b, Value acc, Value value);

/// A tensor of `type` whose elements are `input`'s, as indexed by its map.
Value buildCopy(ImplicitLocOpBuilder &b, RankedTensorType type, Operand input);

/// The sum of lhs * rhs over all loops that `resultMap` lacks. Both maps, and
/// `resultMap`, are projected permutations of the same loops. Its element type
/// is getComputeType(lhs), or that of `lhs` if `isRounded`: a contraction of
/// f16 or bf16 adds up in f32 and rounds once, whatever its body says.
Value buildContraction(ImplicitLocOpBuilder &b, Operand lhs, Operand rhs,
                       ArrayRef<int64_t> resultShape, AffineMap resultMap,
                       bool isRounded = false);

/// Softmax, or its logarithm, along `dim`, of element type `elementType`.
Value buildSoftmax(ImplicitLocOpBuilder &b, Value input, int64_t dim,
                   Type elementType);
/// The softmax of attention: a row of -inf becomes 0, not NaN.
Value buildSafeSoftmax(ImplicitLocOpBuilder &b, Value input, int64_t dim,
                       Type elementType);
Value buildLogSoftmax(ImplicitLocOpBuilder &b, Value input, int64_t dim,
                      Type elementType);

/// The elements of `value`, in row-major order, in another static shape.
Value buildReshape(ImplicitLocOpBuilder &b, Value value,
                   ArrayRef<int64_t> shape);

/// Dimension i of the result is dimension `permutation[i]` of `value`.
Value buildTranspose(ImplicitLocOpBuilder &b, Value value,
                     ArrayRef<int64_t> permutation);

/// `value` with its elements converted as by nn.cast.
Value buildCast(ImplicitLocOpBuilder &b, Value value, Type elementType);

} // namespace mlir::tp::nnlinalg

#endif // TP_LIB_CODEGEN_NNTOLINALG_LINALGBUILDERS_H
