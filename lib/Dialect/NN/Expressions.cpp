//===- Expressions.cpp - nn ops written as formulas -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Dialect/NN/Expressions.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::nn;

Value expr::filled(ImplicitLocOpBuilder &b, RankedTensorType type,
                   double value) {
  Type element = type.getElementType();
  Attribute attr = isa<FloatType>(element)
                       ? static_cast<Attribute>(b.getFloatAttr(element, value))
                       : b.getIntegerAttr(element, static_cast<int64_t>(value));
  return ConstantOp::create(b, DenseElementsAttr::get(type, attr));
}

Value expr::constant(ImplicitLocOpBuilder &b, Type element, double value) {
  return filled(b, RankedTensorType::get({}, element), value);
}

Value expr::integer(ImplicitLocOpBuilder &b, Type element, int64_t value) {
  return ConstantOp::create(
      b, DenseElementsAttr::get(RankedTensorType::get({}, element),
                                Attribute(b.getIntegerAttr(element, value))));
}

Value expr::constantLike(ImplicitLocOpBuilder &b, Value like, double value) {
  return constant(b, elementOf(like), value);
}

Value expr::compare(ImplicitLocOpBuilder &b, ComparePredicate predicate,
                    Value x, double y) {
  return compare(b, predicate, x, constantLike(b, x, y));
}

Value expr::keep(ImplicitLocOpBuilder &b, Value condition, Value x) {
  return select(b, condition, x, constantLike(b, x, 0));
}

Value expr::castTo(ImplicitLocOpBuilder &b, Value x, Type element) {
  if (elementOf(x) == element)
    return x;
  return CastOp::create(b, typeOf(x).clone(element), x);
}

Type expr::getWideElement(Type element) {
  return element.getIntOrFloatBitWidth() < 32
             ? Float32Type::get(element.getContext())
             : element;
}

Value expr::reshape(ImplicitLocOpBuilder &b, Value x, ArrayRef<int64_t> shape) {
  if (shapeOf(x) == shape)
    return x;
  return ReshapeOp::create(b, typeOf(x).clone(shape), x);
}

Value expr::unsqueeze(ImplicitLocOpBuilder &b, Value x, int64_t dim) {
  SmallVector<int64_t> shape(shapeOf(x));
  shape.insert(shape.begin() + dim, 1);
  return reshape(b, x, shape);
}

Value expr::transposeLast(ImplicitLocOpBuilder &b, Value x) {
  auto permutation =
      llvm::to_vector(llvm::seq<int64_t>(0, typeOf(x).getRank()));
  std::swap(permutation[permutation.size() - 2], permutation.back());
  return transpose(b, x, permutation);
}

Value expr::broadcast(ImplicitLocOpBuilder &b, Value x,
                      ArrayRef<int64_t> shape) {
  if (shapeOf(x) == shape)
    return x;
  return BroadcastOp::create(b, typeOf(x).clone(shape), x);
}

Value expr::safeSoftmax(ImplicitLocOpBuilder &b, Value x, int64_t dim) {
  Value maximum = reduce(b, ReduceKind::Max, x, {dim}, /*keepdim=*/true);
  Value isSeen = compare(b, ComparePredicate::NE, maximum,
                         -std::numeric_limits<double>::infinity());
  // Avoids a NaN, which a gradient would multiply by 0.
  x = keep(b, isSeen, x);
  return keep(b, isSeen, SoftmaxOp::create(b, x, dim));
}

Value expr::sumTo(ImplicitLocOpBuilder &b, Value x, RankedTensorType type) {
  ArrayRef<int64_t> shape = shapeOf(x);
  int64_t missing = shape.size() - type.getRank();
  SmallVector<int64_t> dims;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    int64_t aligned = static_cast<int64_t>(dim) - missing;
    if (aligned < 0 || (type.getDimSize(aligned) == 1 && size != 1))
      dims.push_back(dim);
  }
  if (!dims.empty())
    x = reduce(b, ReduceKind::Sum, x, dims, /*keepdim=*/false);
  return reshape(b, x, type.getShape());
}

Value expr::iota(ImplicitLocOpBuilder &b, ArrayRef<int64_t> shape, int64_t dim,
                 Type element, double start, double step) {
  return IotaOp::create(b, RankedTensorType::get(shape, element),
                        b.getI64IntegerAttr(dim), b.getF64FloatAttr(start),
                        b.getF64FloatAttr(step));
}
