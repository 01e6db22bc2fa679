//===- ImportBuilder.cpp - PyTorch's ways to build nn ops -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ImportBuilder.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;

TypedAttr ImportBuilder::number(Type elementType, Scalar value) {
  if (auto floatType = dyn_cast<FloatType>(elementType)) {
    llvm::APFloat real(value.isInteger ? double(value.integer) : value.real);
    bool losesInfo;
    real.convert(floatType.getFloatSemantics(),
                 llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return FloatAttr::get(floatType, real);
  }
  if (elementType.isInteger(1))
    return BoolAttr::get(getContext(), value.isInteger ? value.integer != 0
                                                       : value.real != 0);
  int64_t integer = value.integer;
  // Infinities and the like give what x86 gives.
  if (!value.isInteger)
    integer = std::abs(value.real) < 0x1p63
                  ? int64_t(value.real)
                  : std::numeric_limits<int64_t>::min();
  return IntegerAttr::get(
      elementType, llvm::APInt(elementType.getIntOrFloatBitWidth(), integer,
                               /*isSigned=*/true, /*implicitTrunc=*/true));
}

Value ImportBuilder::splat(ArrayRef<int64_t> shape, Type elementType,
                           Scalar value) {
  auto type = RankedTensorType::get(shape, elementType);
  auto elements =
      DenseElementsAttr::get(type, Attribute(number(elementType, value)));
  return nn::ConstantOp::create(*this, elements);
}

Value ImportBuilder::stopGradient(Value v) {
  return isFloat(v) ? unary<nn::StopGradientOp>(*this, v) : v;
}

Value ImportBuilder::widen(Value v) {
  return isFloat(v) ? castTo(*this, v, getWideElement(elementOf(v))) : v;
}

Value ImportBuilder::truncate(Value v) {
  Value isNegative = compare(*this, nn::ComparePredicate::LT, v, 0.0);
  return select(*this, isNegative, unary<nn::CeilOp>(*this, v),
                unary<nn::FloorOp>(*this, v));
}

Value ImportBuilder::wrapIndex(Value index, int64_t size) {
  auto isNegative = [&](Value value) {
    return compare(*this, nn::ComparePredicate::LT, value, 0.0);
  };
  // The size must be a number of the index's type.
  if (!llvm::isIntN(elementOf(index).getIntOrFloatBitWidth(), size))
    index = castTo(*this, index, getI64Type());
  Value moved = add(*this, index, integer(*this, elementOf(index), size));
  Value wrapped = select(*this, isNegative(index), moved, index);
  return select(*this, isNegative(wrapped), index, wrapped);
}

Value ImportBuilder::signBit(Value v) {
  Value isNegative =
      compare(*this, nn::ComparePredicate::LT, v, constantLike(*this, v, 0));
  if (!isFloat(v))
    return isNegative;
  // The reciprocal of -0 is -inf, and that of -inf is -0.
  Value reciprocal = unary<nn::ReciprocalOp>(*this, stopGradient(v));
  return binary<nn::LogicalOrOp>(
      *this, isNegative,
      compare(*this, nn::ComparePredicate::LT, reciprocal, 0.0));
}

Value ImportBuilder::copySign(Value v, Value sign) {
  Value size = unary<nn::AbsOp>(*this, v);
  return select(*this, signBit(sign), neg(*this, size), size);
}

/// The sizes into which `to` splits each dimension of `from`; none if `to`
/// isn't such a split, or has further dimensions at its end.
static std::optional<llvm::SmallVector<llvm::SmallVector<int64_t>>>
splitDims(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  llvm::SmallVector<llvm::SmallVector<int64_t>> parts;
  for (int64_t size : from) {
    auto &own = parts.emplace_back();
    int64_t product = 1;
    for (; product < size && !to.empty(); to = to.drop_front()) {
      own.push_back(to.front());
      product *= to.front();
    }
    if (product != size)
      return std::nullopt;
  }
  if (!to.empty())
    return std::nullopt;
  return parts;
}

/// A reshape of transposed dimensions that were merged before, as heads are
/// with the batch. It splits the dimensions before the transpose, so they
/// aren't merged at all.
Value ImportBuilder::reshapeBeforeTranspose(Value v,
                                            ArrayRef<int64_t> newShape) {
  auto transposed = v.getDefiningOp<nn::TransposeOp>();
  if (!transposed || !transposed.getInput().getDefiningOp<nn::ReshapeOp>())
    return {};
  auto parts = splitDims(shapeOf(v), newShape);
  if (!parts)
    return {};
  ArrayRef<int64_t> order = transposed.getPermutation();
  llvm::SmallVector<llvm::SmallVector<int64_t>> before(order.size());
  for (auto [i, from] : llvm::enumerate(order))
    before[from] = (*parts)[i];
  llvm::SmallVector<int64_t> shape, starts, permutation;
  for (ArrayRef<int64_t> own : before) {
    starts.push_back(shape.size());
    llvm::append_range(shape, own);
  }
  for (auto [i, from] : llvm::enumerate(order))
    for (size_t part = 0; part < (*parts)[i].size(); ++part)
      permutation.push_back(starts[from] + part);
  return transpose(reshape(transposed.getInput(), shape), permutation);
}

Value ImportBuilder::reshape(Value v, ArrayRef<int64_t> newShape) {
  // One reshape replaces several in a row.
  while (auto before = v.getDefiningOp<nn::ReshapeOp>())
    v = before.getInput();
  if (shapeOf(v) == newShape)
    return v;
  if (Value result = reshapeBeforeTranspose(v, newShape))
    return result;
  return nn::ReshapeOp::create(*this, typeOf(v).clone(newShape), v);
}

Value ImportBuilder::transpose(Value v, ArrayRef<int64_t> permutation) {
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, rankOf(v))))
    return v;
  return nn::TransposeOp::create(*this, v, permutation);
}

Value ImportBuilder::swap(Value v, int64_t a, int64_t b) {
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(v)));
  std::swap(permutation[a], permutation[b]);
  return transpose(v, permutation);
}

Value ImportBuilder::slice(Value v, int64_t dim, int64_t start, int64_t size,
                           int64_t step) {
  if (start == 0 && size == shapeOf(v)[dim])
    return v;
  llvm::SmallVector<int64_t> newShape(shapeOf(v));
  newShape[dim] = size;
  // An empty or single-element range has no step; 1 keeps it inside.
  if (size <= 1)
    step = 1;
  // Every step-th element of all, as where two tensors are interleaved, is a
  // slice of a minor dimension, beside which the major one can be split.
  if (step > 1 && size * step == shapeOf(v)[dim]) {
    llvm::SmallVector<int64_t> separate(newShape);
    separate.insert(separate.begin() + dim + 1, step);
    return reshape(slice(reshape(v, separate), dim + 1, start, 1), newShape);
  }
  return nn::SliceOp::create(*this, typeOf(v).clone(newShape), v, dim, start,
                             step);
}

Value ImportBuilder::sliceScatter(Value v, Value part, int64_t dim,
                                  int64_t start, int64_t step) {
  int64_t size = shapeOf(part)[dim];
  if (size == shapeOf(v)[dim])
    return part;
  if (size == 0)
    return v;
  return nn::SliceScatterOp::create(*this, v, part, dim, start,
                                    size == 1 ? 1 : step);
}

Value ImportBuilder::concat(ValueRange values, int64_t dim) {
  if (values.size() == 1)
    return values.front();
  return nn::ConcatOp::create(*this, values, dim);
}

Value ImportBuilder::pick(Value v, int64_t dim, ArrayRef<int64_t> positions) {
  int64_t count = positions.size();
  int64_t step = count > 1 ? positions[1] - positions[0] : 1;
  bool isEven = count > 0 && step != 0;
  for (int64_t i = 2; i < count && isEven; ++i)
    isEven = positions[i] - positions[i - 1] == step;
  if (isEven && step == 1)
    return slice(v, dim, positions.front(), count);
  Value index =
      isEven ? iota(*this, {count}, 0, getI64Type(),
                    static_cast<double>(positions.front()),
                    static_cast<double>(step))
             : nn::ConstantOp::create(*this, getI64TensorAttr(positions));
  return nn::IndexSelectOp::create(*this, v, index, dim);
}

Value ImportBuilder::reduce(nn::ReduceKind kind, Value v,
                            ArrayRef<int64_t> dims, bool keepdim) {
  llvm::SmallVector<int64_t> sorted(dims);
  if (sorted.empty())
    sorted = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(v)));
  llvm::sort(sorted);
  // The sum, mean, … of a single number.
  if (sorted.empty())
    return v;
  return nn::ReduceOp::create(*this, kind, v, sorted, keepdim);
}

Value ImportBuilder::rootOfSquares(Value sum) {
  Value isZero = compare(*this, nn::ComparePredicate::EQ, sum, 0.0);
  Value one = constantLike(*this, sum, 1), zero = constantLike(*this, sum, 0);
  Value root = unary<nn::SqrtOp>(*this, select(*this, isZero, one, sum));
  return select(*this, isZero, zero, root);
}

Value ImportBuilder::triangle(int64_t rows, int64_t columns, int64_t diagonal,
                              bool upper) {
  // Compare j - i ≤ diagonal as column ≤ row, with rows counted from `diagonal`
  // on.
  Value column = iota(*this, {columns}, 0, getI64Type());
  Value row = iota(*this, {rows, 1}, 0, getI64Type(), diagonal);
  return compare(*this,
                 upper ? nn::ComparePredicate::GE : nn::ComparePredicate::LE,
                 column, row);
}
