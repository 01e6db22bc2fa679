//===- ImportBuilder.h - PyTorch's ways to build nn ops ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_IMPORTBUILDER_H
#define TP_LIB_IMPORT_IMPORTBUILDER_H

#include "tp/Dialect/NN/Expressions.h"

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

/// Adds to Expressions.h what only importers need: numbers as Python has them,
/// and functions that take arguments as PyTorch does and build no op that would
/// do nothing.
class ImportBuilder : public ImplicitLocOpBuilder {
public:
  explicit ImportBuilder(MLIRContext *context)
      : ImplicitLocOpBuilder(UnknownLoc::get(context), context) {}

  /// The value as an attribute of `elementType`, converted as PyTorch does.
  TypedAttr number(Type elementType, Scalar value);
  Value splat(ArrayRef<int64_t> shape, Type elementType, Scalar value);
  Value scalar(Type elementType, Scalar value) {
    return splat({}, elementType, value);
  }

  /// Converts f16 and bf16 to f32, in which PyTorch computes with them, so that
  /// an op that becomes several ops rounds only once. Other types stay.
  Value widen(Value v);
  /// `v` rounded towards 0.
  Value truncate(Value v);
  /// `index` with negative elements counted from `size`. Those below -size
  /// stay, so that a run reports them unchanged.
  Value wrapIndex(Value index, int64_t size);
  /// Whether a number is negative, -0 included. NaN counts as positive.
  Value signBit(Value v);
  /// The magnitude of `v` with the sign of `sign`.
  Value copySign(Value v, Value sign);
  /// `v` without a gradient.
  Value stopGradient(Value v);
  /// Merges reshapes in a row, and splits dimensions before a transpose.
  Value reshape(Value v, ArrayRef<int64_t> shape);
  Value transpose(Value v, ArrayRef<int64_t> permutation);
  /// Swaps two dimensions.
  Value swap(Value v, int64_t a, int64_t b);
  Value slice(Value v, int64_t dim, int64_t start, int64_t size,
              int64_t step = 1);
  /// `v` with the slice from `start` on, by `step`, replaced by `part`.
  Value sliceScatter(Value v, Value part, int64_t dim, int64_t start,
                     int64_t step = 1);
  Value concat(ValueRange values, int64_t dim);
  /// The elements at constant positions along a dimension. Positions in a row
  /// are a slice, and evenly spaced ones aren't written out.
  Value pick(Value v, int64_t dim, ArrayRef<int64_t> positions);
  /// `dims` in any order; none or empty means all.
  Value reduce(nn::ReduceKind kind, Value v, ArrayRef<int64_t> dims,
               bool keepdim);
  /// The square root of a sum of squares. Its gradient at 0 is 0, as in
  /// PyTorch's norms.
  Value rootOfSquares(Value sum);

  /// True at (…, i, j) of a matrix where j - i ≤ diagonal (tril) or
  /// j - i ≥ diagonal (triu).
  Value triangle(int64_t rows, int64_t columns, int64_t diagonal, bool upper);

private:
  Value reshapeBeforeTranspose(Value v, ArrayRef<int64_t> newShape);
};

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_IMPORTBUILDER_H
