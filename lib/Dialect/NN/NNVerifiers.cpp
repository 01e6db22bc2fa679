//===- NNVerifiers.cpp - Constraints of the nn ops ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each verify() checks the numbered constraints of the op's description.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Traits.h"
#include "mlir/IR/TypeUtilities.h"
#include "tp/Dialect/NN/Expressions.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::nn;

static LogicalResult verifyDim(Operation *op, int64_t dim,
                               RankedTensorType type) {
  if (dim >= 0 && dim < type.getRank())
    return success();
  return op->emitOpError() << "dimension " << dim << " is out of range for "
                           << type;
}

/// Infers the result types again; empty if operands determine none.
template <typename OpT>
static SmallVector<Type> inferTypes(OpT op) {
  SmallVector<Type> types;
  if (failed(OpT::inferReturnTypes(op.getContext(), std::nullopt,
                                   typename OpT::Adaptor(op), types)))
    types.clear();
  return types;
}

template <typename OpT>
static LogicalResult verifyResultType(OpT op) {
  SmallVector<Type> types = inferTypes(op);
  if (types.empty())
    return op.emitOpError("has operands that determine no result type");
  Type expected = types.front();
  if (op.getType() == expected)
    return success();
  return op.emitOpError() << "result should be " << expected << ", found "
                          << op.getType();
}

static LogicalResult verifySameElement(Operation *op) {
  Type element = getElementTypeOrSelf(op->getResult(0));
  for (Value operand : op->getOperands())
    if (getElementTypeOrSelf(operand) != element)
      return op->emitOpError()
             << "operands and result must have one element "
                "type, found "
             << operand.getType() << " and " << op->getResult(0).getType();
  return success();
}

LogicalResult IotaOp::verify() { return verifyDim(*this, getDim(), getType()); }

LogicalResult WhereOp::verify() {
  Type element = getType().getElementType();
  if (getLhs().getType().getElementType() != element ||
      getRhs().getType().getElementType() != element)
    return emitOpError("both values must have the result's element type");
  return success();
}

LogicalResult LinearOp::verify() {
  auto input = getInput().getType(), weight = getWeight().getType();
  if (input.getRank() < 1 || weight.getRank() != 2 ||
      input.getShape().back() != weight.getDimSize(1))
    return emitOpError() << "needs (b…, k) and (n, k), found " << input
                         << " and " << weight;
  if (failed(verifyResultType(*this)))
    return failure();
  return verifySameElement(*this);
}

LogicalResult MatmulOp::verify() {
  auto lhs = getLhs().getType(), rhs = getRhs().getType();
  if (lhs.getRank() < 2 || rhs.getRank() < 2 ||
      lhs.getShape().back() != rhs.getDimSize(rhs.getRank() - 2))
    return emitOpError() << "needs (b…, m, k) and (b…, k, n), found " << lhs
                         << " and " << rhs;
  SmallVector<int64_t> shape;
  if (!OpTrait::util::getBroadcastedShape(lhs.getShape().drop_back(2),
                                          rhs.getShape().drop_back(2), shape))
    return emitOpError() << "batch dimensions of " << lhs << " and " << rhs
                         << " don't broadcast";
  if (failed(verifyResultType(*this)))
    return failure();
  return verifySameElement(*this);
}

/// Query, key, value and mask of attention or of its gradient.
template <typename OpT>
static LogicalResult verifyAttention(OpT op) {
  auto query = op.getQuery().getType(), key = op.getKey().getType(),
       value = op.getValue().getType();
  int64_t rank = query.getRank();
  auto mismatch = [&]() {
    return op.emitOpError()
           << "needs query (b…, h, t, d), key (b…, hk, s, d) and "
              "value (b…, hk, s, e) with hk dividing h, found "
           << query << ", " << key << " and " << value;
  };
  if (rank < 3 || key.getRank() != rank || value.getRank() != rank)
    return mismatch();
  int64_t batches = rank >= 4 ? rank - 3 : rank - 2;
  if (key.getShape().take_front(batches) !=
          query.getShape().take_front(batches) ||
      key.getShape().drop_back() != value.getShape().drop_back() ||
      key.getShape().back() != query.getShape().back())
    return mismatch();
  if (rank >= 4) {
    int64_t heads = query.getDimSize(rank - 3);
    int64_t keyHeads = key.getDimSize(rank - 3);
    if (heads != keyHeads && (keyHeads == 0 || heads % keyHeads))
      return mismatch();
  }
  Value mask = op.getMask();
  if (!mask)
    return success();
  Type element = query.getElementType();
  auto maskType = cast<RankedTensorType>(mask.getType());
  if (op.getCausal())
    return op.emitOpError(
        op->template hasTrait<OpTrait::AttrSizedOperandSegments>()
            ? "takes either an offset or a mask"
            : "takes either 'causal' or a mask");
  if (maskType.getElementType() != element &&
      !maskType.getElementType().isInteger(1))
    return op.emitOpError()
           << "mask must be i1 or " << element << ", found " << maskType;
  SmallVector<int64_t> scores(query.getShape());
  scores.back() = key.getDimSize(rank - 2);
  SmallVector<int64_t> joined;
  if (maskType.getRank() > rank ||
      !OpTrait::util::getBroadcastedShape(maskType.getShape(), scores,
                                          joined) ||
      joined != scores)
    return op.emitOpError()
           << "mask " << maskType << " doesn't broadcast to the scores' shape "
           << RankedTensorType::get(scores, element);
  return success();
}

template <typename OpT>
static LogicalResult verifyContext(OpT op) {
  int64_t rows = op.getQuery().getType().getShape().end()[-2];
  int64_t columns = op.getKey().getType().getShape().end()[-2];
  if (op.getContextMethod() == tp::ContextMethod::Ring && rows != columns)
    return op.emitOpError() << "needs as many keys as queries in a ring, found "
                            << columns << " and " << rows;
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyAttention(*this)) || failed(verifyContext(*this)))
    return failure();
  if (failed(verifyResultType(*this)))
    return failure();
  Type element = getType().getElementType();
  for (Value operand : {getQuery(), getKey(), getValue()})
    if (getElementTypeOrSelf(operand) != element)
      return emitOpError(
          "query, key, value and result must have one element type");
  return success();
}

/// Checks that `found`, called `name`, has `type`.
static LogicalResult verifyType(Operation *op, StringRef name, Value found,
                                Type type) {
  if (found.getType() == type)
    return success();
  return op->emitOpError() << name << " must be " << type << ", found "
                           << found.getType();
}

LogicalResult AttentionBlockOp::verify() {
  if (failed(verifyAttention(*this)))
    return failure();
  SmallVector<Type> types = inferTypes(*this);
  auto query = getQuery().getType();
  for (auto [name, operand] :
       {std::pair<StringRef, Value>{"key", getKey()}, {"value", getValue()}})
    if (getElementTypeOrSelf(operand) != query.getElementType())
      return verifyType(*this, name, operand,
                        cast<RankedTensorType>(operand.getType())
                            .clone(query.getElementType()));
  if (failed(verifyType(*this, "the result", getResult(), types[0])))
    return failure();
  return verifyType(*this, "the log-sum-exp", getLse(), types[1]);
}

template <typename OpT>
static LogicalResult verifyAttentionGradient(OpT op) {
  if (failed(verifyAttention(op)))
    return failure();
  auto query = op.getQuery().getType(), value = op.getValue().getType();
  auto needs = [&](StringRef name, Value found, Type type) {
    return verifyType(op, name, found, type);
  };
  for (auto [name, operand] : {std::pair<StringRef, Value>{"key", op.getKey()},
                               {"value", op.getValue()}})
    if (getElementTypeOrSelf(operand) != query.getElementType())
      return needs(name, operand,
                   cast<RankedTensorType>(operand.getType())
                       .clone(query.getElementType()));
  SmallVector<int64_t> rows(query.getShape());
  rows.back() = value.getShape().back();
  SmallVector<Type> types = inferTypes(op);
  if (failed(needs("gradient", op.getGradient(), query.clone(rows))) ||
      failed(needs("the query's gradient", op.getQueryGradient(), types[0])) ||
      failed(needs("the key's gradient", op.getKeyGradient(), types[1])))
    return failure();
  return needs("the value's gradient", op.getValueGradient(), types[2]);
}

LogicalResult AttentionGradientOp::verify() {
  if (failed(verifyAttentionGradient(*this)))
    return failure();
  return verifyContext(*this);
}

LogicalResult AttentionBlockGradientOp::verify() {
  if (failed(verifyAttentionGradient(*this)))
    return failure();
  auto query = getQuery().getType();
  SmallVector<int64_t> shape(query.getShape());
  shape.back() = 1;
  Type row = query.clone(shape, expr::getWideElement(query.getElementType()));
  if (failed(verifyType(*this, "the log-sum-exp", getLse(), row)))
    return failure();
  return verifyType(*this, "delta", getDelta(), row);
}

LogicalResult EmbeddingOp::verify() {
  auto weight = getWeight().getType();
  if (weight.getRank() != 2)
    return emitOpError() << "weight must have two dimensions, found " << weight;
  return verifyResultType(*this);
}

template <typename OpT>
static LogicalResult verifyNorm(OpT op, ArrayRef<Value> parameters) {
  auto input = op.getInput().getType();
  int64_t normalized = op.getNormalized();
  if (normalized < 1 || normalized > input.getRank())
    return op.emitOpError()
           << "can't normalize " << normalized << " dimensions of " << input;
  if (failed(verifyResultType(op)))
    return failure();
  for (Value parameter : parameters) {
    if (!parameter)
      continue;
    auto type = cast<RankedTensorType>(parameter.getType());
    if (type.getShape() != input.getShape().take_back(normalized))
      return op.emitOpError()
             << "weight and bias must have the shape of the normalized "
                "dimensions of "
             << input << ", found " << type;
  }
  return success();
}

LogicalResult LayerNormOp::verify() {
  return verifyNorm(*this, {getWeight(), getBias()});
}
LogicalResult RMSNormOp::verify() { return verifyNorm(*this, {getWeight()}); }

LogicalResult SoftmaxOp::verify() {
  return verifyDim(*this, getDim(), getType());
}
LogicalResult LogSoftmaxOp::verify() {
  return verifyDim(*this, getDim(), getType());
}

LogicalResult ReduceOp::verify() {
  int64_t last = -1;
  for (int64_t dim : getDims()) {
    if (failed(verifyDim(*this, dim, getInput().getType())))
      return failure();
    if (dim <= last)
      return emitOpError("dims must be distinct and ascending");
    last = dim;
  }
  return verifyResultType(*this);
}

LogicalResult ArgMaxOp::verify() {
  if (failed(verifyDim(*this, getDim(), getInput().getType())))
    return failure();
  return verifyResultType(*this);
}

LogicalResult ReshapeOp::verify() {
  auto from = getInput().getType(), to = getType();
  if (from.getNumElements() != to.getNumElements())
    return emitOpError() << "input has " << from.getNumElements()
                         << " elements, result " << to.getNumElements();
  if (from.getElementType() != to.getElementType())
    return emitOpError("input and result must have one element type");
  return success();
}

LogicalResult TransposeOp::verify() {
  auto from = getInput().getType();
  ArrayRef<int64_t> permutation = getPermutation();
  if (static_cast<int64_t>(permutation.size()) != from.getRank())
    return emitOpError() << "permutation has " << permutation.size()
                         << " entries, the input " << from.getRank()
                         << " dimensions";
  SmallVector<bool> seen(permutation.size(), false);
  for (int64_t dim : permutation) {
    if (dim < 0 || dim >= from.getRank() || seen[dim])
      return emitOpError("permutation must name each dimension once");
    seen[dim] = true;
  }
  return verifyResultType(*this);
}

LogicalResult BroadcastOp::verify() {
  auto from = getInput().getType(), to = getType();
  if (from.getElementType() != to.getElementType())
    return emitOpError("input and result must have one element type");
  bool fits = from.getRank() <= to.getRank();
  for (int64_t dim = 0; fits && dim < from.getRank(); ++dim) {
    int64_t target = to.getDimSize(to.getRank() - from.getRank() + dim);
    fits = from.getDimSize(dim) == 1 || from.getDimSize(dim) == target;
  }
  if (!fits)
    return emitOpError() << from << " doesn't broadcast to " << to;
  return success();
}

/// Checks that `part` is the range of `whole` from `start` on, by `step`. The
/// message calls it `partName`.
static LogicalResult verifyRange(Operation *op, RankedTensorType whole,
                                 RankedTensorType part, int64_t dim,
                                 int64_t start, int64_t step,
                                 StringRef partName) {
  if (failed(verifyDim(op, dim, whole)))
    return failure();
  if (part.getRank() != whole.getRank() ||
      part.getElementType() != whole.getElementType())
    return op->emitOpError()
           << "input " << whole << " and " << partName << " " << part
           << " must differ in dimension " << dim << " only";
  int64_t count = part.getDimSize(dim);
  if (start < 0 || step < 1 ||
      (count > 0 && (start >= whole.getDimSize(dim) ||
                     (count - 1) > (whole.getDimSize(dim) - 1 - start) / step)))
    return op->emitOpError() << "range of " << count << " elements from "
                             << start << " by " << step << " leaves dimension "
                             << dim << " of size " << whole.getDimSize(dim);
  SmallVector<int64_t> shape(whole.getShape());
  shape[dim] = count;
  if (part.getShape() == ArrayRef(shape))
    return success();
  return op->emitOpError() << partName << " should be " << whole.clone(shape)
                           << ", found " << part;
}

LogicalResult SliceOp::verify() {
  return verifyRange(*this, getInput().getType(), getType(), getDim(),
                     getStart(), getStep(), "result");
}

LogicalResult SliceScatterOp::verify() {
  if (failed(verifyRange(*this, getInput().getType(), getSource().getType(),
                         getDim(), getStart(), getStep(), "source")))
    return failure();
  return verifyResultType(*this);
}

LogicalResult ConcatOp::verify() {
  if (getInputs().empty())
    return emitOpError("needs at least one operand");
  int64_t dim = getDim();
  if (failed(verifyDim(*this, dim, getType())))
    return failure();
  ArrayRef<int64_t> shape = expr::shapeOf(getInputs().front());
  for (Value input : getInputs()) {
    auto type = cast<RankedTensorType>(input.getType());
    if (type.getRank() != getType().getRank())
      return emitOpError("operands and result must have one rank");
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (d != dim && type.getDimSize(d) != shape[d])
        return emitOpError()
               << "operands must agree in all dimensions but " << dim;
  }
  if (failed(verifyResultType(*this)))
    return failure();
  return verifySameElement(*this);
}

LogicalResult GatherOp::verify() {
  auto input = getInput().getType(), index = getIndex().getType();
  if (failed(verifyDim(*this, getDim(), input)))
    return failure();
  if (index.getRank() != input.getRank())
    return emitOpError() << "input " << input << " and index " << index
                         << " must have one rank";
  for (int64_t dim = 0; dim < input.getRank(); ++dim)
    if (dim != static_cast<int64_t>(getDim()) &&
        index.getDimSize(dim) > input.getDimSize(dim))
      return emitOpError() << "index " << index << " is larger than input "
                           << input << " in dimension " << dim;
  return verifyResultType(*this);
}

LogicalResult IndexSelectOp::verify() {
  auto input = getInput().getType(), index = getIndex().getType();
  if (failed(verifyDim(*this, getDim(), input)))
    return failure();
  if (index.getRank() != 1)
    return emitOpError() << "index must have one dimension, found " << index;
  return verifyResultType(*this);
}

LogicalResult SortOp::verify() {
  auto input = getInput().getType();
  if (failed(verifyDim(*this, getDim(), input)))
    return failure();
  int64_t count = getCount(), size = input.getDimSize(getDim());
  if (count < 0 || count > size)
    return emitOpError() << "count should be from 0 to " << size << ", found "
                         << count;
  SmallVector<Type> types = inferTypes(*this);
  if (getValues().getType() != types[0] || getIndices().getType() != types[1])
    return emitOpError() << "results should be " << types[0] << " and "
                         << types[1] << ", found " << getValues().getType()
                         << " and " << getIndices().getType();
  return success();
}

LogicalResult CumSumOp::verify() {
  return verifyDim(*this, getDim(), getType());
}

LogicalResult ScatterOp::verify() {
  auto input = getInput().getType(), index = getIndex().getType(),
       source = getSource().getType();
  int64_t dim = getDim();
  if (failed(verifyDim(*this, dim, input)))
    return failure();
  if (source.getRank() != input.getRank() ||
      source.getElementType() != input.getElementType())
    return emitOpError() << "input and source must have one rank and one "
                            "element type, found "
                         << input << " and " << source;
  if (namesSlices() ? index.getDimSize(0) != source.getDimSize(dim)
                    : index.getShape() != source.getShape())
    return emitOpError() << "index should have the shape of the source "
                         << source << ", or only the size of its dimension "
                         << dim << ", found " << index;
  for (int64_t d = 0; d < input.getRank(); ++d)
    if (d != dim &&
        (namesSlices() ? source.getDimSize(d) != input.getDimSize(d)
                       : source.getDimSize(d) > input.getDimSize(d)))
      return emitOpError() << "source " << source << " doesn't fit input "
                           << input << " in dimension " << d;
  bool isNumber = input.getElementType().isFloat() ||
                  (input.getElementType().isSignlessInteger() &&
                   !input.getElementType().isInteger(1));
  if (getKind() != ScatterKind::Copy && !isNumber)
    return emitOpError() << "of kind '" << stringifyScatterKind(getKind())
                         << "' needs numbers, found " << input;
  return success();
}

/// Whether `bounds` are those of `numGroups` groups of `numRows` rows, in one or
/// in several parts.
static bool areBounds(RankedTensorType bounds, int64_t numRows,
                      int64_t numGroups) {
  if (bounds.getRank() == 1)
    return bounds.getDimSize(0) == numGroups + 1;
  if (bounds.getRank() != 2)
    return false;
  int64_t parts = bounds.getDimSize(0);
  return parts > 0 && numRows % parts == 0 &&
         parts * (bounds.getDimSize(1) - 1) == numGroups;
}

LogicalResult GroupedMatmulOp::verify() {
  auto input = getInput().getType(), weight = getWeight().getType(),
       bounds = getBounds().getType();
  if (input.getRank() != 2 || weight.getRank() != 3 ||
      input.getDimSize(1) != weight.getDimSize(1) ||
      !areBounds(bounds, input.getDimSize(0), weight.getDimSize(0)))
    return emitOpError() << "needs (m, k), (e, k, n) and bounds (e + 1), or "
                            "(p, e / p + 1) where p divides m and e, found "
                         << input << ", " << weight << " and " << bounds;
  if (weight.getElementType() != input.getElementType())
    return emitOpError() << "operands must have one element type, found "
                         << input << " and " << weight;
  return verifyResultType(*this);
}

LogicalResult GroupedOuterSumOp::verify() {
  auto lhs = getLhs().getType(), rhs = getRhs().getType(),
       bounds = getBounds().getType();
  auto result = getType();
  if (lhs.getRank() != 2 || rhs.getRank() != 2 ||
      lhs.getDimSize(0) != rhs.getDimSize(0) || result.getRank() != 3 ||
      !areBounds(bounds, lhs.getDimSize(0), result.getDimSize(0)))
    return emitOpError() << "needs (m, k), (m, n) and bounds (e + 1), or "
                            "(p, e / p + 1) where p divides m and e, found "
                         << lhs << ", " << rhs << " and " << bounds;
  if (rhs.getElementType() != lhs.getElementType())
    return emitOpError() << "operands must have one element type, found " << lhs
                         << " and " << rhs;
  return verifyResultType(*this);
}

template <typename OpT>
static LogicalResult verifyClassLoss(OpT op) {
  auto input = op.getInput().getType(), target = op.getTarget().getType();
  if (input.getRank() < 1)
    return op.emitOpError("needs logits with a class dimension");
  int64_t classDim = input.getRank() == 1 ? 0 : 1;
  SmallVector<int64_t> shape(input.getShape());
  shape.erase(shape.begin() + classDim);
  if (target.getShape() != ArrayRef<int64_t>(shape))
    return op.emitOpError()
           << "target should have the shape of "
           << RankedTensorType::get(shape, target.getElementType())
           << ", found " << target;
  if (op.getWeight()) {
    auto weight = cast<RankedTensorType>(op.getWeight().getType());
    if (weight.getRank() != 1 ||
        weight.getDimSize(0) != input.getDimSize(classDim))
      return op.emitOpError()
             << "weight should have one entry per class ("
             << input.getDimSize(classDim) << "), found " << weight;
  }
  return verifyResultType(op);
}

LogicalResult CrossEntropyOp::verify() {
  if (getLossParallel() && !getLabelSmoothing().isZero())
    return emitOpError("loss_parallel doesn't support label smoothing");
  double smoothing = getLabelSmoothing().convertToDouble();
  if (!(smoothing >= 0 && smoothing <= 1))
    return emitOpError("label smoothing must be between 0 and 1");
  return verifyClassLoss(*this);
}
LogicalResult NLLLossOp::verify() { return verifyClassLoss(*this); }

LogicalResult OuterSumOp::verify() {
  auto lhs = getLhs().getType(), rhs = getRhs().getType();
  if (lhs.getRank() < 1 || lhs.getRank() != rhs.getRank() ||
      lhs.getShape().drop_back() != rhs.getShape().drop_back())
    return emitOpError() << "needs (b…, m) and (b…, n), found " << lhs
                         << " and " << rhs;
  if (failed(verifyResultType(*this)))
    return failure();
  return verifySameElement(*this);
}

LogicalResult ScatterAddRowsOp::verify() {
  auto indices = getIndices().getType(), rows = getRows().getType();
  if (rows.getRank() < 1 || rows.getShape().drop_back() != indices.getShape() ||
      getType().getRank() != 2 ||
      getType().getDimSize(1) != rows.getShape().back())
    return emitOpError() << "needs (i…), (i…, d) and a result (v, d), found "
                         << indices << ", " << rows << " and " << getType();
  if (getType().getElementType() != rows.getElementType())
    return emitOpError("result must have the rows' element type");
  return success();
}

LogicalResult RandomUniformOp::verify() {
  for (auto [name, operand] :
       {std::pair("counter", getCounter()), std::pair("stream", getStream())})
    if (operand.getType().getRank() != 0)
      return emitOpError() << name << " must be a scalar, found "
                           << operand.getType();
  return verifyResultType(*this);
}

LogicalResult DropoutOp::verify() {
  double p = getP().convertToDouble();
  if (p >= 0 && p <= 1)
    return success();
  return emitOpError() << "p must be from 0 to 1, found " << p;
}

LogicalResult ClassSumsOp::verify() {
  auto input = getInput().getType(), target = getTarget().getType();
  SmallVector<int64_t> shape(input.getShape());
  if (shape.empty() || shape[getClassDim()] == 0)
    return emitOpError() << "input must have classes, found " << input;
  shape[getClassDim()] = 1;
  SmallVector<int64_t> targets(shape);
  targets.erase(targets.begin() + getClassDim());
  if (target.getShape() != ArrayRef(targets))
    return emitOpError() << "target must have the input's shape without its "
                            "classes, found "
                         << input << " and " << target;
  Type expected = inferTypes(*this).front();
  if (getMaximum().getType() == expected)
    return success();
  return emitOpError() << "results must be " << expected << ", found "
                       << getMaximum().getType();
}

/// In a narrow type, the rate would be rounded, with the same error for all
/// elements.
static LogicalResult verifyRate(Operation *op, Value parameter, Value lr) {
  Type needed = expr::getWideElement(getElementTypeOrSelf(parameter));
  if (getElementTypeOrSelf(lr) == needed)
    return success();
  return op->emitOpError() << "rate for " << parameter.getType() << " must be "
                           << needed << ", found " << lr.getType();
}

LogicalResult AdamOp::verify() {
  return verifyRate(*this, getParameter(), getLr());
}
LogicalResult AMSGradOp::verify() {
  return verifyRate(*this, getParameter(), getLr());
}
LogicalResult SGDOp::verify() {
  return verifyRate(*this, getParameter(), getLr());
}
