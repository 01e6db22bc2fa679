//===- Sums.cpp - Ops that add and subtract -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Transforms/Sums.h"
#include "mlir/Dialect/Traits.h"
#include "tp/Interfaces/TensorBuilder.h"

using namespace mlir;
using namespace mlir::tp;

/// Whether operands of different shapes are broadcast, as those of nn are.
static bool broadcasts(Operation *sum) {
  return sum->hasTrait<OpTrait::ResultsBroadcastableShape>();
}

RankedTensorType tp::getSumType(RankedTensorType a, RankedTensorType b) {
  if (!a || !b)
    return a ? a : b;
  SmallVector<int64_t> shape;
  OpTrait::util::getBroadcastedShape(a.getShape(), b.getShape(), shape);
  return a.clone(shape);
}

Value tp::buildZero(OpBuilder &builder, const TensorBuilder &tensors,
                    Operation *like, RankedTensorType type) {
  Attribute zero = builder.getZeroAttr(type);
  if (Operation *constant = like->getDialect()->materializeConstant(
          builder, zero, type, like->getLoc()))
    return constant->getResult(0);
  return tensors.constant(builder, like->getLoc(), cast<ElementsAttr>(zero));
}

Value tp::buildSum(OpBuilder &builder, const TensorBuilder &tensors,
                   Operation *like, Value a, Value b, RankedTensorType type) {
  Location loc = like->getLoc();
  SmallVector<Value, 2> operands = {a, b};
  for (Value &operand : operands) {
    if (!operand)
      operand = buildZero(builder, tensors, like,
                          broadcasts(like)
                              ? RankedTensorType::get({}, type.getElementType())
                              : type);
    else if (!broadcasts(like) && operand.getType() != type)
      operand = tensors.broadcast(builder, loc, operand, type);
  }
  Operation *sum = Operation::create(loc, like->getName(), type, operands,
                                     like->getDiscardableAttrDictionary(),
                                     like->getPropertiesStorage(), BlockRange(),
                                     /*numRegions=*/0);
  return builder.insert(sum)->getResult(0);
}

bool tp::canTotal(Operation *like, Type element) {
  // Outside of nn, a sum may be built for any type of arithmetic.
  return !broadcasts(like) ||
         getElementTypeOrSelf(like->getResult(0)) == element;
}

/// Whether `like` is a difference and no addition of its dialect is known.
static bool isOnlyDifference(Operation *like) {
  return !like->hasTrait<OpTrait::IsCommutative>() && !broadcasts(like);
}

Value tp::buildAddend(OpBuilder &builder, const TensorBuilder &tensors,
                      Operation *like, Value part) {
  return isOnlyDifference(like)
             ? buildSum(builder, tensors, like, {}, part,
                        cast<RankedTensorType>(part.getType()))
             : part;
}

Value tp::buildTotal(OpBuilder &builder, const TensorBuilder &tensors,
                     Operation *like, Value whole, Value addend,
                     RankedTensorType type) {
  if (like->hasTrait<OpTrait::IsCommutative>() || isOnlyDifference(like))
    return buildSum(builder, tensors, like, whole, addend, type);
  return tensors.add(builder, like->getLoc(), whole, addend, type);
}
