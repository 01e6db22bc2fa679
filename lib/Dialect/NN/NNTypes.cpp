//===- NNTypes.cpp - Result types of the nn ops ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where operands determine no type, any type is inferred, because verify()
// refuses the op and explains why. A builder whose inference fails would end the
// process.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Traits.h"
#include "tp/Dialect/NN/Expressions.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::nn;
using expr::shapeOf, expr::typeOf;

using Types = SmallVectorImpl<Type>;
using OptionalLocation = std::optional<Location>;

/// A result of `shape` and of the element type of `like`.
static LogicalResult infer(Value like, ArrayRef<int64_t> shape, Types &types) {
  types.push_back(typeOf(like).clone(shape));
  return success();
}

/// The type of `operand`, for each result of an op that verify() refuses.
static LogicalResult inferAny(Value operand, Types &types,
                              unsigned numResults = 1) {
  types.append(numResults, operand.getType());
  return success();
}

LogicalResult nn::inferBroadcast(ValueRange operands, Type element,
                                 Types &types) {
  SmallVector<int64_t> shape, joined;
  for (Value operand : operands) {
    if (!OpTrait::util::getBroadcastedShape(shape, shapeOf(operand), joined))
      return inferAny(operands.front(), types);
    shape = joined;
  }
  types.push_back(RankedTensorType::get(shape, element));
  return success();
}

LogicalResult CompareOp::inferReturnTypes(MLIRContext *context,
                                          OptionalLocation, Adaptor adaptor,
                                          Types &types) {
  return inferBroadcast(adaptor.getOperands(), IntegerType::get(context, 1),
                        types);
}

LogicalResult WhereOp::inferReturnTypes(MLIRContext *, OptionalLocation,
                                        Adaptor adaptor, Types &types) {
  return inferBroadcast(adaptor.getOperands(),
                        expr::elementOf(adaptor.getLhs()), types);
}

LogicalResult LinearOp::inferReturnTypes(MLIRContext *, OptionalLocation,
                                         Adaptor adaptor, Types &types) {
  SmallVector<int64_t> shape(shapeOf(adaptor.getInput()));
  if (shape.empty() || shapeOf(adaptor.getWeight()).empty())
    return inferAny(adaptor.getInput(), types);
  shape.back() = shapeOf(adaptor.getWeight()).front();
  return infer(adaptor.getInput(), shape, types);
}

LogicalResult MatmulOp::inferReturnTypes(MLIRContext *, OptionalLocation,
                                         Adaptor adaptor, Types &types) {
  ArrayRef<int64_t> lhs = shapeOf(adaptor.getLhs()),
                    rhs = shapeOf(adaptor.getRhs());
  SmallVector<int64_t> shape;
  if (lhs.size() < 2 || rhs.size() < 2 ||
      !OpTrait::util::getBroadcastedShape(lhs.drop_back(2), rhs.drop_back(2),
                                          shape))
    return inferAny(adaptor.getLhs(), types);
  shape.append({lhs[lhs.size() - 2], rhs.back()});
  return infer(adaptor.getLhs(), shape, types);
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *, OptionalLocation,
                                            Adaptor adaptor, Types &types) {
  SmallVector<int64_t> shape(shapeOf(adaptor.getQuery()));
  if (shape.empty() || shapeOf(adaptor.getValue()).empty())
    return inferAny(adaptor.getQuery(), types);
  shape.back() = shapeOf(adaptor.getValue()).back();
  return infer(adaptor.getQuery(), shape, types);
}

/// The gradients of attention's query, key and value.
template <typename AdaptorT>
static LogicalResult inferGradients(AdaptorT adaptor, Types &types) {
  Value query = adaptor.getQuery();
  ArrayRef<int64_t> key = shapeOf(adaptor.getKey()),
                    value = shapeOf(adaptor.getValue());
  SmallVector<int64_t> shape(shapeOf(query));
  if (shape.size() < 2 || key.size() < 2 || value.empty())
    return inferAny(query, types, 3);
  types.push_back(query.getType());
  shape[shape.size() - 2] = key[key.size() - 2];
  types.push_back(typeOf(query).clone(shape));
  shape.back() = value.back();
  types.push_back(typeOf(query).clone(shape));
  return success();
}

LogicalResult AttentionGradientOp::inferReturnTypes(MLIRContext *,
                                                    OptionalLocation,
                                                    Adaptor adaptor,
                                                    Types &types) {
  return inferGradients(adaptor, types);
}

LogicalResult AttentionBlockOp::inferReturnTypes(MLIRContext *,
                                                 OptionalLocation,
                                                 Adaptor adaptor,
                                                 Types &types) {
  Value query = adaptor.getQuery();
  SmallVector<int64_t> shape(shapeOf(query));
  if (shape.empty() || shapeOf(adaptor.getValue()).empty())
    return inferAny(query, types, 2);
  shape.back() = shapeOf(adaptor.getValue()).back();
  types.push_back(typeOf(query).clone(shape));
  shape.back() = 1;
  types.push_back(
      typeOf(query).clone(shape, expr::getWideElement(expr::elementOf(query))));
  return success();
}

LogicalResult AttentionBlockGradientOp::inferReturnTypes(MLIRContext *,
                                                         OptionalLocation,
                                                         Adaptor adaptor,
                                                         Types &types) {
  return inferGradients(adaptor, types);
}

LogicalResult EmbeddingOp::inferReturnTypes(MLIRContext *, OptionalLocation,
                                            Adaptor adaptor, Types &types) {
  SmallVector<int64_t> shape(shapeOf(adaptor.getIndices()));
  if (shapeOf(adaptor.getWeight()).empty())
    return inferAny(adaptor.getWeight(), types);
  shape.push_back(shapeOf(adaptor.getWeight()).back());
  return infer(adaptor.getWeight(), shape, types);
}

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext *, OptionalLocation,
                                            Adaptor adaptor, Types &types) {
  types.push_back(adaptor.getInput().getType());
  return success();
}

LogicalResult RMSNormOp::inferReturnTypes(MLIRContext *, OptionalLocation,
                                          Adaptor adaptor, Types &types) {
  types.push_back(adaptor.getInput().getType());
  return success();
}

/// The shape without `dims`, or with size 1 there.
static SmallVector<int64_t>
getReducedShape(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims, bool keepdim) {
  SmallVector<int64_t> reduced;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (!llvm::is_contained(dims, static_cast<int64_t>(dim)))
      reduced.push_back(size);
    else if (keepdim)
      reduced.push_back(1);
  }
  return reduced;
}

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *, OptionalLocation,
                                         Adaptor adaptor, Types &types) {
  Value input = adaptor.getInput();
  return infer(
      input,
      getReducedShape(shapeOf(input), adaptor.getDims(), adaptor.getKeepdim()),
      types);
}

LogicalResult ArgMaxOp::inferReturnTypes(MLIRContext *context, OptionalLocation,
                                         Adaptor adaptor, Types &types) {
  types.push_back(RankedTensorType::get(
      getReducedShape(shapeOf(adaptor.getInput()),
                      static_cast<int64_t>(adaptor.getDim()),
                      adaptor.getKeepdim()),
      IntegerType::get(context, 64)));
  return success();
}

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, OptionalLocation,
                                            Adaptor adaptor, Types &types) {
  ArrayRef<int64_t> from = shapeOf(adaptor.getInput());
  SmallVector<int64_t> shape;
  for (int64_t dim : adaptor.getPermutation()) {
    if (dim < 0 || dim >= static_cast<int64_t>(from.size()))
      return inferAny(adaptor.getInput(), types);
    shape.push_back(from[dim]);
  }
  return infer(adaptor.getInput(), shape, types);
}

LogicalResult SliceScatterOp::inferReturnTypes(MLIRContext *, OptionalLocation,
                                               Adaptor adaptor, Types &types) {
  return inferAny(adaptor.getInput(), types);
}

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *, OptionalLocation,
                                         Adaptor adaptor, Types &types) {
  if (adaptor.getInputs().empty())
    return failure();
  Value first = adaptor.getInputs().front();
  SmallVector<int64_t> shape(shapeOf(first));
  size_t dim = adaptor.getDim();
  if (dim >= shape.size())
    return inferAny(first, types);
  shape[dim] = 0;
  for (Value input : adaptor.getInputs()) {
    if (shapeOf(input).size() != shape.size())
      return inferAny(first, types);
    shape[dim] += shapeOf(input)[dim];
  }
  return infer(first, shape, types);
}

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, OptionalLocation,
                                         Adaptor adaptor, Types &types) {
  return infer(adaptor.getInput(), shapeOf(adaptor.getIndex()), types);
}

LogicalResult IndexSelectOp::inferReturnTypes(MLIRContext *, OptionalLocation,
                                              Adaptor adaptor, Types &types) {
  SmallVector<int64_t> shape(shapeOf(adaptor.getInput()));
  if (adaptor.getDim() >= shape.size() || shapeOf(adaptor.getIndex()).empty())
    return inferAny(adaptor.getInput(), types);
  shape[adaptor.getDim()] = shapeOf(adaptor.getIndex()).front();
  return infer(adaptor.getInput(), shape, types);
}

LogicalResult SortOp::inferReturnTypes(MLIRContext *context, OptionalLocation,
                                       Adaptor adaptor, Types &types) {
  Value input = adaptor.getInput();
  SmallVector<int64_t> shape(shapeOf(input));
  if (adaptor.getDim() < shape.size())
    shape[adaptor.getDim()] = adaptor.getCount();
  types.push_back(typeOf(input).clone(shape));
  types.push_back(RankedTensorType::get(shape, IntegerType::get(context, 64)));
  return success();
}

LogicalResult GroupedMatmulOp::inferReturnTypes(MLIRContext *, OptionalLocation,
                                                Adaptor adaptor, Types &types) {
  ArrayRef<int64_t> input = shapeOf(adaptor.getInput()),
                    weight = shapeOf(adaptor.getWeight());
  if (input.empty() || weight.empty())
    return inferAny(adaptor.getInput(), types);
  return infer(adaptor.getInput(), {input.front(), weight.back()}, types);
}

LogicalResult GroupedOuterSumOp::inferReturnTypes(MLIRContext *,
                                                  OptionalLocation,
                                                  Adaptor adaptor,
                                                  Types &types) {
  ArrayRef<int64_t> lhs = shapeOf(adaptor.getLhs()),
                    rhs = shapeOf(adaptor.getRhs()),
                    bounds = shapeOf(adaptor.getBounds());
  if (lhs.empty() || rhs.empty() || bounds.empty())
    return inferAny(adaptor.getLhs(), types);
  int64_t parts = bounds.size() == 1 ? 1 : bounds.front();
  return infer(adaptor.getLhs(),
               {parts * (bounds.back() - 1), lhs.back(), rhs.back()}, types);
}

template <typename AdaptorT>
static LogicalResult inferLoss(AdaptorT adaptor, Types &types) {
  bool isReduced = adaptor.getReduction() != LossReduction::None;
  return infer(adaptor.getInput(),
               isReduced ? ArrayRef<int64_t>() : shapeOf(adaptor.getTarget()),
               types);
}

LogicalResult CrossEntropyOp::inferReturnTypes(MLIRContext *, OptionalLocation,
                                               Adaptor adaptor, Types &types) {
  return inferLoss(adaptor, types);
}

LogicalResult NLLLossOp::inferReturnTypes(MLIRContext *, OptionalLocation,
                                          Adaptor adaptor, Types &types) {
  return inferLoss(adaptor, types);
}

LogicalResult ClassSumsOp::inferReturnTypes(MLIRContext *, OptionalLocation,
                                            Adaptor adaptor, Types &types) {
  SmallVector<int64_t> shape(shapeOf(adaptor.getInput()));
  if (shape.empty())
    return inferAny(adaptor.getInput(), types, 3);
  shape[shape.size() == 1 ? 0 : 1] = 1;
  types.append(3, typeOf(adaptor.getInput()).clone(shape));
  return success();
}

LogicalResult OuterSumOp::inferReturnTypes(MLIRContext *, OptionalLocation,
                                           Adaptor adaptor, Types &types) {
  ArrayRef<int64_t> lhs = shapeOf(adaptor.getLhs()),
                    rhs = shapeOf(adaptor.getRhs());
  if (lhs.empty() || rhs.empty())
    return inferAny(adaptor.getLhs(), types);
  return infer(adaptor.getLhs(), {lhs.back(), rhs.back()}, types);
}

LogicalResult RandomUniformOp::inferReturnTypes(MLIRContext *context,
                                                OptionalLocation,
                                                Adaptor adaptor, Types &types) {
  types.push_back(RankedTensorType::get(shapeOf(adaptor.getIndex()),
                                        Float32Type::get(context)));
  return success();
}
