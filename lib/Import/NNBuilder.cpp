//===- NNBuilder.cpp - build nn ops with inferred types -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "NNBuilder.h"
#include "tp/Dialect/NN/Expressions.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;
using namespace mlir::tp;

RankedTensorType NNBuilder::broadcastType(ArrayRef<Value> values,
                                          Type elementType) {
  llvm::SmallVector<int64_t> result(shape(values.front()));
  for (Value value : values.drop_front()) {
    llvm::SmallVector<int64_t> both;
    OpTrait::util::getBroadcastedShape(result, shape(value), both);
    result = std::move(both);
  }
  return RankedTensorType::get(result, elementType);
}

TypedAttr NNBuilder::number(Type elementType, Scalar value) {
  if (auto floatType = dyn_cast<FloatType>(elementType)) {
    llvm::APFloat real(value.isInteger ? double(value.integer) : value.real);
    bool losesInfo;
    real.convert(floatType.getFloatSemantics(),
                 llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return FloatAttr::get(floatType, real);
  }
  if (elementType.isInteger(1))
    return BoolAttr::get(builder.getContext(), value.isInteger
                                                   ? value.integer != 0
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

Value NNBuilder::splat(ArrayRef<int64_t> shape, Type elementType,
                       Scalar value) {
  auto type = RankedTensorType::get(shape, elementType);
  auto elements =
      DenseElementsAttr::get(type, Attribute(number(elementType, value)));
  return nn::ConstantOp::create(builder, loc, type, elements);
}

Value NNBuilder::iota(ArrayRef<int64_t> shape, Type elementType, int64_t dim,
                      double start, double step) {
  return nn::IotaOp::create(
      builder, loc, RankedTensorType::get(shape, elementType),
      builder.getI64IntegerAttr(dim), builder.getF64FloatAttr(start),
      builder.getF64FloatAttr(step));
}

Value NNBuilder::stopGradient(Value v) {
  return isFloat(v) ? unary<nn::StopGradientOp>(v) : v;
}

Value NNBuilder::cast(Value v, Type elementType) {
  if (element(v) == elementType)
    return v;
  return nn::CastOp::create(builder, loc,
                            RankedTensorType::get(shape(v), elementType), v);
}

Value NNBuilder::widen(Value v) {
  return isFloat(v) ? cast(v, nn::expr::getWideElement(element(v))) : v;
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
Value NNBuilder::reshapeBeforeTranspose(Value v, ArrayRef<int64_t> newShape) {
  auto transposed = v.getDefiningOp<nn::TransposeOp>();
  if (!transposed || !transposed.getInput().getDefiningOp<nn::ReshapeOp>())
    return {};
  auto parts = splitDims(shape(v), newShape);
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

Value NNBuilder::reshape(Value v, ArrayRef<int64_t> newShape) {
  // One reshape replaces several in a row.
  while (auto before = v.getDefiningOp<nn::ReshapeOp>())
    v = before.getInput();
  if (shape(v) == newShape)
    return v;
  if (Value result = reshapeBeforeTranspose(v, newShape))
    return result;
  return nn::ReshapeOp::create(builder, loc,
                               RankedTensorType::get(newShape, element(v)), v);
}

Value NNBuilder::transpose(Value v, ArrayRef<int64_t> permutation) {
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, rank(v))))
    return v;
  auto newShape = llvm::map_to_vector(
      permutation, [&](int64_t dim) { return shape(v)[dim]; });
  return nn::TransposeOp::create(builder, loc,
                                 RankedTensorType::get(newShape, element(v)), v,
                                 permutation);
}

Value NNBuilder::swap(Value v, int64_t a, int64_t b) {
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank(v)));
  std::swap(permutation[a], permutation[b]);
  return transpose(v, permutation);
}

Value NNBuilder::broadcast(Value v, ArrayRef<int64_t> newShape) {
  if (shape(v) == newShape)
    return v;
  return nn::BroadcastOp::create(
      builder, loc, RankedTensorType::get(newShape, element(v)), v);
}

Value NNBuilder::slice(Value v, int64_t dim, int64_t start, int64_t size,
                       int64_t step) {
  if (start == 0 && size == shape(v)[dim])
    return v;
  llvm::SmallVector<int64_t> newShape(shape(v));
  newShape[dim] = size;
  // An empty or single-element range has no step; 1 keeps it inside.
  if (size <= 1)
    step = 1;
  return nn::SliceOp::create(
      builder, loc, RankedTensorType::get(newShape, element(v)), v,
      builder.getI64IntegerAttr(dim), builder.getI64IntegerAttr(start),
      builder.getI64IntegerAttr(step));
}

Value NNBuilder::concat(ValueRange values, int64_t dim) {
  if (values.size() == 1)
    return values.front();
  llvm::SmallVector<int64_t> newShape(shape(values.front()));
  newShape[dim] = 0;
  for (Value value : values)
    newShape[dim] += shape(value)[dim];
  return nn::ConcatOp::create(
      builder, loc, RankedTensorType::get(newShape, element(values.front())),
      values, builder.getI64IntegerAttr(dim));
}

Value NNBuilder::compare(nn::ComparePredicate predicate, Value lhs, Value rhs) {
  return nn::CompareOp::create(builder, loc,
                               broadcastType({lhs, rhs}, builder.getI1Type()),
                               predicate, lhs, rhs);
}

Value NNBuilder::where(Value condition, Value lhs, Value rhs) {
  return nn::WhereOp::create(builder, loc,
                             broadcastType({condition, lhs, rhs}, element(lhs)),
                             condition, lhs, rhs);
}

Value NNBuilder::matmul(Value lhs, Value rhs) {
  llvm::SmallVector<int64_t> newShape;
  OpTrait::util::getBroadcastedShape(shape(lhs).drop_back(2),
                                     shape(rhs).drop_back(2), newShape);
  newShape.push_back(shape(lhs)[rank(lhs) - 2]);
  newShape.push_back(shape(rhs).back());
  return nn::MatmulOp::create(
      builder, loc, RankedTensorType::get(newShape, element(lhs)), lhs, rhs);
}

Value NNBuilder::linear(Value input, Value weight) {
  llvm::SmallVector<int64_t> newShape(shape(input));
  newShape.back() = shape(weight).front();
  return nn::LinearOp::create(builder, loc,
                              RankedTensorType::get(newShape, element(input)),
                              input, weight);
}

Value NNBuilder::reduce(nn::ReduceKind kind, Value v, ArrayRef<int64_t> dims,
                        bool keepdim) {
  llvm::SmallVector<int64_t> sorted(dims);
  if (sorted.empty())
    sorted = llvm::to_vector(llvm::seq<int64_t>(0, rank(v)));
  llvm::sort(sorted);
  // The sum, mean, … of a single number.
  if (sorted.empty())
    return v;
  llvm::SmallVector<int64_t> newShape;
  for (auto [dim, size] : llvm::enumerate(shape(v))) {
    if (!llvm::is_contained(sorted, int64_t(dim)))
      newShape.push_back(size);
    else if (keepdim)
      newShape.push_back(1);
  }
  return nn::ReduceOp::create(builder, loc,
                              RankedTensorType::get(newShape, element(v)), kind,
                              v, sorted, keepdim);
}

Value NNBuilder::softmax(Value v, int64_t dim) {
  return nn::SoftmaxOp::create(builder, loc, v.getType(), v,
                               builder.getI64IntegerAttr(dim));
}

Value NNBuilder::logSoftmax(Value v, int64_t dim) {
  return nn::LogSoftmaxOp::create(builder, loc, v.getType(), v,
                                  builder.getI64IntegerAttr(dim));
}

Value NNBuilder::triangle(int64_t rows, int64_t columns, int64_t diagonal,
                          bool upper) {
  // Compare j - i ≤ diagonal as column ≤ row, with rows counted from `diagonal`
  // on.
  Value column = iota({columns}, builder.getI64Type(), 0, 0, 1);
  Value row = iota({rows, 1}, builder.getI64Type(), 0, diagonal, 1);
  return compare(upper ? nn::ComparePredicate::GE : nn::ComparePredicate::LE,
                 column, row);
}
