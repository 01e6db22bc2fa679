//===- Expressions.cpp - nn ops written as formulas -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Dialect/NN/Expressions.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::nn;

RankedTensorType expr::getBroadcastType(Value x, Value y) {
  SmallVector<int64_t> shape;
  [[maybe_unused]] bool isCompatible = OpTrait::util::getBroadcastedShape(
      typeOf(x).getShape(), typeOf(y).getShape(), shape);
  assert(isCompatible && "gradients broadcast as their ops do");
  return RankedTensorType::get(shape, elementOf(x));
}

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

Value expr::constantLike(ImplicitLocOpBuilder &b, Value like, double value) {
  return constant(b, elementOf(like), value);
}

Value expr::compare(ImplicitLocOpBuilder &b, ComparePredicate predicate,
                    Value x, Value y) {
  return CompareOp::create(b, getBroadcastType(x, y).clone(b.getI1Type()),
                           predicate, x, y);
}

Value expr::compare(ImplicitLocOpBuilder &b, ComparePredicate predicate,
                    Value x, double y) {
  return compare(b, predicate, x, constantLike(b, x, y));
}

Value expr::select(ImplicitLocOpBuilder &b, Value condition, Value x, Value y) {
  SmallVector<int64_t> shape(getBroadcastType(x, y).getShape()), all;
  OpTrait::util::getBroadcastedShape(shape, typeOf(condition).getShape(), all);
  return WhereOp::create(b, RankedTensorType::get(all, elementOf(x)), condition,
                         x, y);
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
  if (typeOf(x).getShape() == shape)
    return x;
  return ReshapeOp::create(b, typeOf(x).clone(shape), x);
}

Value expr::unsqueeze(ImplicitLocOpBuilder &b, Value x, int64_t dim) {
  SmallVector<int64_t> shape(typeOf(x).getShape());
  shape.insert(shape.begin() + dim, 1);
  return reshape(b, x, shape);
}

Value expr::transpose(ImplicitLocOpBuilder &b, Value x,
                      ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> shape;
  for (int64_t from : permutation)
    shape.push_back(typeOf(x).getDimSize(from));
  return TransposeOp::create(b, typeOf(x).clone(shape), x, permutation);
}

Value expr::transposeLast(ImplicitLocOpBuilder &b, Value x) {
  auto permutation =
      llvm::to_vector(llvm::seq<int64_t>(0, typeOf(x).getRank()));
  std::swap(permutation[permutation.size() - 2], permutation.back());
  return transpose(b, x, permutation);
}

Value expr::broadcast(ImplicitLocOpBuilder &b, Value x,
                      ArrayRef<int64_t> shape) {
  if (typeOf(x).getShape() == shape)
    return x;
  return BroadcastOp::create(b, typeOf(x).clone(shape), x);
}

Value expr::matmul(ImplicitLocOpBuilder &b, Value x, Value y) {
  ArrayRef<int64_t> left = typeOf(x).getShape(), right = typeOf(y).getShape();
  SmallVector<int64_t> shape;
  OpTrait::util::getBroadcastedShape(left.drop_back(2), right.drop_back(2),
                                     shape);
  shape.push_back(left[left.size() - 2]);
  shape.push_back(right.back());
  return MatmulOp::create(b, typeOf(x).clone(shape), x, y);
}

Value expr::reduce(ImplicitLocOpBuilder &b, ReduceKind kind, Value x,
                   ArrayRef<int64_t> dims, bool keepdim) {
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(typeOf(x).getShape())) {
    if (!llvm::is_contained(dims, static_cast<int64_t>(dim)))
      shape.push_back(size);
    else if (keepdim)
      shape.push_back(1);
  }
  return ReduceOp::create(b, typeOf(x).clone(shape), kind, x, dims, keepdim);
}

Value expr::safeSoftmax(ImplicitLocOpBuilder &b, Value x, int64_t dim) {
  Value maximum = reduce(b, ReduceKind::Max, x, {dim}, /*keepdim=*/true);
  Value isSeen = compare(b, ComparePredicate::NE, maximum,
                         -std::numeric_limits<double>::infinity());
  // Avoids a NaN, which a gradient would multiply by 0.
  x = keep(b, isSeen, x);
  return keep(b, isSeen,
              SoftmaxOp::create(b, x.getType(), x, b.getI64IntegerAttr(dim)));
}

Value expr::sumTo(ImplicitLocOpBuilder &b, Value x, RankedTensorType type) {
  ArrayRef<int64_t> shape = typeOf(x).getShape();
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
                 Type element) {
  return IotaOp::create(b, RankedTensorType::get(shape, element),
                        b.getI64IntegerAttr(dim), b.getF64FloatAttr(0),
                        b.getF64FloatAttr(1));
}
