//===- NNBuilder.h - build nn ops with inferred types -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each function builds one nn op (or none, if it would do nothing) and infers
// its result type. Shapes are static; the caller has checked that they fit.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_IMPORT_NNBUILDER_H
#define TP_LIB_IMPORT_NNBUILDER_H

#include "mlir/Dialect/Traits.h"
#include "mlir/IR/Builders.h"
#include "tp/Dialect/NN/NN.h"

namespace mlir::tp {

/// A number of the model's Python code. Integers keep all 64 bits.
struct Scalar {
  bool isInteger = true;
  int64_t integer = 0;
  double real = 0;

  static Scalar of(int64_t value) { return {true, value, double(value)}; }
  static Scalar of(double value) { return {false, int64_t(0), value}; }
  bool operator==(double value) const { return real == value; }
};

class NNBuilder {
public:
  explicit NNBuilder(MLIRContext *context)
      : builder(context), loc(UnknownLoc::get(context)) {}

  OpBuilder builder;
  Location loc;

  static RankedTensorType type(Value v) {
    return cast<RankedTensorType>(v.getType());
  }
  static ArrayRef<int64_t> shape(Value v) { return type(v).getShape(); }
  static int64_t rank(Value v) { return type(v).getRank(); }
  static Type element(Value v) { return type(v).getElementType(); }
  static bool isFloat(Value v) { return isa<FloatType>(element(v)); }
  static bool isBool(Value v) { return element(v).isInteger(1); }

  /// The value as an attribute of `elementType`, converted as PyTorch does.
  TypedAttr number(Type elementType, Scalar value);
  Value splat(ArrayRef<int64_t> shape, Type elementType, Scalar value);
  Value scalar(Type elementType, Scalar value) {
    return splat({}, elementType, value);
  }
  Value iota(ArrayRef<int64_t> shape, Type elementType, int64_t dim,
             double start, double step);

  Value cast(Value v, Type elementType);
  /// Converts f16 and bf16 to f32, in which PyTorch computes with them, so that
  /// an op that becomes several ops rounds only once. Other types stay.
  Value widen(Value v);
  /// `v` without a gradient.
  Value stopGradient(Value v);
  Value reshape(Value v, ArrayRef<int64_t> shape);
  Value transpose(Value v, ArrayRef<int64_t> permutation);
  /// Swaps two dimensions.
  Value swap(Value v, int64_t a, int64_t b);
  Value broadcast(Value v, ArrayRef<int64_t> shape);
  Value slice(Value v, int64_t dim, int64_t start, int64_t size,
              int64_t step = 1);
  Value concat(ValueRange values, int64_t dim);

  template <typename Op>
  Value unary(Value v) {
    return Op::create(builder, loc, v.getType(), v);
  }
  /// Operands of one element type; shapes broadcast.
  template <typename Op>
  Value binary(Value lhs, Value rhs) {
    return Op::create(builder, loc, broadcastType({lhs, rhs}, element(lhs)),
                      lhs, rhs);
  }
  Value add(Value a, Value b) { return binary<nn::AddOp>(a, b); }
  Value sub(Value a, Value b) { return binary<nn::SubOp>(a, b); }
  Value mul(Value a, Value b) { return binary<nn::MulOp>(a, b); }
  Value div(Value a, Value b) { return binary<nn::DivOp>(a, b); }
  Value compare(nn::ComparePredicate predicate, Value lhs, Value rhs);
  Value where(Value condition, Value lhs, Value rhs);
  Value matmul(Value lhs, Value rhs);
  Value linear(Value input, Value weight);
  /// `dims` in any order; none or empty means all.
  Value reduce(nn::ReduceKind kind, Value v, ArrayRef<int64_t> dims,
               bool keepdim);
  Value softmax(Value v, int64_t dim);
  Value logSoftmax(Value v, int64_t dim);

  /// True at (…, i, j) of a matrix where j - i ≤ diagonal (tril) or
  /// j - i ≥ diagonal (triu).
  Value triangle(int64_t rows, int64_t columns, int64_t diagonal, bool upper);

private:
  Value reshapeBeforeTranspose(Value v, ArrayRef<int64_t> newShape);
  RankedTensorType broadcastType(ArrayRef<Value> values, Type elementType);
};

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_NNBUILDER_H
