//===- Expressions.h - nn ops written as formulas ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Importers, gradients, partition hooks and optimizers build nn ops with the
// functions below, or with an op's own `create`, which infers the result type
// wherever it follows from operands and attributes. Each function builds one
// op, or the few ops of a formula. Shapes broadcast as in NumPy; the caller has
// checked that they fit.
//
//===----------------------------------------------------------------------===//

#ifndef TP_DIALECT_NN_EXPRESSIONS_H
#define TP_DIALECT_NN_EXPRESSIONS_H

#include "mlir/Dialect/Traits.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "tp/Dialect/NN/NN.h"

namespace mlir::nn::expr {

inline RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}
inline ArrayRef<int64_t> shapeOf(Value value) {
  return typeOf(value).getShape();
}
inline int64_t rankOf(Value value) { return typeOf(value).getRank(); }
inline Type elementOf(Value value) { return typeOf(value).getElementType(); }
inline bool isFloat(Value value) { return isa<FloatType>(elementOf(value)); }
inline bool isBool(Value value) { return elementOf(value).isInteger(1); }

/// A scalar of element type `element`, for broadcasting.
Value constant(ImplicitLocOpBuilder &b, Type element, double value);
Value constantLike(ImplicitLocOpBuilder &b, Value like, double value);
/// The same for an integer type; exact, where a double may round.
Value integer(ImplicitLocOpBuilder &b, Type element, int64_t value);
/// A tensor of `type` all of whose elements are `value`.
Value filled(ImplicitLocOpBuilder &b, RankedTensorType type, double value);

template <typename OpT>
Value unary(ImplicitLocOpBuilder &b, Value x) {
  return OpT::create(b, x);
}
template <typename OpT>
Value binary(ImplicitLocOpBuilder &b, Value x, Value y) {
  return OpT::create(b, x, y);
}

inline Value neg(ImplicitLocOpBuilder &b, Value x) {
  return unary<NegOp>(b, x);
}
inline Value exp(ImplicitLocOpBuilder &b, Value x) {
  return unary<ExpOp>(b, x);
}
inline Value add(ImplicitLocOpBuilder &b, Value x, Value y) {
  return binary<AddOp>(b, x, y);
}
inline Value sub(ImplicitLocOpBuilder &b, Value x, Value y) {
  return binary<SubOp>(b, x, y);
}
inline Value mul(ImplicitLocOpBuilder &b, Value x, Value y) {
  return binary<MulOp>(b, x, y);
}
inline Value div(ImplicitLocOpBuilder &b, Value x, Value y) {
  return binary<DivOp>(b, x, y);
}
inline Value add(ImplicitLocOpBuilder &b, Value x, double y) {
  return add(b, x, constantLike(b, x, y));
}
inline Value mul(ImplicitLocOpBuilder &b, Value x, double y) {
  return y == 1 ? x : mul(b, x, constantLike(b, x, y));
}
/// y - x.
inline Value subFrom(ImplicitLocOpBuilder &b, double y, Value x) {
  return sub(b, constantLike(b, x, y), x);
}

inline Value compare(ImplicitLocOpBuilder &b, ComparePredicate predicate,
                     Value x, Value y) {
  return CompareOp::create(b, predicate, x, y);
}
Value compare(ImplicitLocOpBuilder &b, ComparePredicate predicate, Value x,
              double y);
inline Value select(ImplicitLocOpBuilder &b, Value condition, Value x,
                    Value y) {
  return WhereOp::create(b, condition, x, y);
}
/// `x` where `condition` holds, else 0.
Value keep(ImplicitLocOpBuilder &b, Value condition, Value x);

/// `x` cast to element type `element`; `x` itself if it has that type.
Value castTo(ImplicitLocOpBuilder &b, Value x, Type element);
/// The type to compute in: f32 for f16 and bf16.
Type getWideElement(Type element);

Value reshape(ImplicitLocOpBuilder &b, Value x, ArrayRef<int64_t> shape);
/// `x` with a dimension of size 1 inserted before dimension `dim`.
Value unsqueeze(ImplicitLocOpBuilder &b, Value x, int64_t dim);
inline Value transpose(ImplicitLocOpBuilder &b, Value x,
                       ArrayRef<int64_t> permutation) {
  return TransposeOp::create(b, x, permutation);
}
/// The last two dimensions swapped.
Value transposeLast(ImplicitLocOpBuilder &b, Value x);
Value broadcast(ImplicitLocOpBuilder &b, Value x, ArrayRef<int64_t> shape);
inline Value matmul(ImplicitLocOpBuilder &b, Value x, Value y) {
  return binary<MatmulOp>(b, x, y);
}

inline Value reduce(ImplicitLocOpBuilder &b, ReduceKind kind, Value x,
                    ArrayRef<int64_t> dims, bool keepdim) {
  return ReduceOp::create(b, kind, x, dims, keepdim);
}
/// The softmax of attention along dimension `dim`. A row of -inf becomes 0, and
/// so do its gradients; nn.softmax would give NaN.
Value safeSoftmax(ImplicitLocOpBuilder &b, Value x, int64_t dim);
/// Sums the dimensions that `type` was broadcast over: the gradient of a
/// broadcast.
Value sumTo(ImplicitLocOpBuilder &b, Value x, RankedTensorType type);

/// start, start + step, … along dimension `dim` of `shape`, of element type
/// `element`.
Value iota(ImplicitLocOpBuilder &b, ArrayRef<int64_t> shape, int64_t dim,
           Type element, double start = 0, double step = 1);

} // namespace mlir::nn::expr

#endif // TP_DIALECT_NN_EXPRESSIONS_H
