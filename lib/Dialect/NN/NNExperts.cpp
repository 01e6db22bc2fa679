//===- NNExperts.cpp - Tokens on their way to experts ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If the parts of the experts are split, rank p of the group has block p of the
// tokens and the slots of part p. How many tokens a rank sends to another one
// depends on the data, but shapes don't: for each part, a rank gives all of its
// tokens, with zeros for those that have no slot there, and an all-to-all that
// leaves out rows of zeros moves them. So a rank has at most all tokens, and
// none is dropped. A token that has several slots in a part moves once.
//
//   tokens (t/n, d) -> copies (n, t/n, d) -> all_to_all -> (1, t, d) -> slots
//   slots -> sums (1, t, d) -> all_to_all -> (n, t/n, d) -> their sum
//
//===----------------------------------------------------------------------===//

#include "tp/Dialect/NN/NNExperts.h"
#include "tp/Dialect/NN/Expressions.h"
#include "tp/Dialect/TP/SparseRows.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::expr;
using tp::OpSplit;
using tp::ShardingRule;

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

static ShardingRule getRule(Operation *op, StringRef spec) {
  ShardingRule rule = ShardingRule::einsum(op, spec);
  for (StringRef name : {"t", "q", "c"})
    rule.whole(name);
  rule.factors[*rule.getFactor("p")].kind = tp::FactorKind::Collective;
  return rule.linear({tp::LinearSet{0}});
}

ShardingRule DispatchOp::getDispatchRule() {
  return getRule(*this, "([p t] d, q c) -> (p c d)");
}

ShardingRule CombineOp::getCombineRule() {
  return getRule(*this, "(p c d, q c) -> ([p t] d)");
}

/// `tokens` are (t, d), `rows` (p, c, d).
static LogicalResult verifySlots(Operation *op, RankedTensorType tokens,
                                 RankedTensorType rows,
                                 RankedTensorType slots) {
  if (tokens.getRank() != 2 || rows.getRank() != 3 ||
      tokens.getDimSize(1) != rows.getDimSize(2) ||
      slots.getShape() != rows.getShape().drop_back())
    return op->emitOpError()
           << "needs tokens (t, d), slots (p, c) and rows (p, c, d), found "
           << tokens << ", " << slots << " and " << rows;
  if (tokens.getElementType() != rows.getElementType())
    return op->emitOpError() << "tokens and rows must have one element type, "
                                "found "
                             << tokens << " and " << rows;
  int64_t parts = rows.getDimSize(0);
  if (parts == 0 || tokens.getDimSize(0) % parts != 0)
    return op->emitOpError() << "the parts must divide the tokens, found "
                             << parts << " parts of " << tokens;
  return success();
}

LogicalResult DispatchOp::verify() {
  return verifySlots(*this, getTokens().getType(), getType(),
                     getSlots().getType());
}

LogicalResult CombineOp::verify() {
  return verifySlots(*this, getType(), getRows().getType(),
                     getSlots().getType());
}

//===----------------------------------------------------------------------===//
// Per-rank forms
//===----------------------------------------------------------------------===//

namespace {

/// What a rank computes of an op. `slots` are those of all parts; `axes` split
/// the parts, one to a rank, or are empty.
class SlotWriter {
public:
  SlotWriter(Operation *op, OpBuilder &builder, Value slots, int64_t numTokens,
             const OpSplit &split, ArrayRef<tp::AxisRefAttr> axes)
      : op(op), b(op->getLoc(), builder), slots(slots), numTokens(numTokens),
        numParts(shapeOf(slots)[0]), numSlots(shapeOf(slots)[1]),
        mesh(FlatSymbolRefAttr::get(tp::MeshOp(split.mesh).getSymNameAttr())),
        axes(tp::AxisListAttr::get(b.getContext(), axes)) {}

  bool isSplit() const { return !axes.empty(); }
  int64_t getNumLocalParts() const { return isSplit() ? 1 : numParts; }

  /// The rank's `tokens` in the rank's slots.
  Value dispatch(Value tokens) {
    if (isSplit())
      tokens = send(tokens);
    auto [used, index] = getOwnSlots();
    Value rows = IndexSelectOp::create(b, tokens, index, 0);
    return reshape(b, keep(b, unsqueeze(b, used, 1), rows),
                   {getNumLocalParts(), numSlots, shapeOf(tokens)[1]});
  }

  /// The sums of the slots' `rows` for the rank's tokens.
  Value combine(Value rows) {
    auto [used, index] = getOwnSlots();
    int64_t width = shapeOf(rows)[2];
    Value own = keep(b, unsqueeze(b, used, 1),
                     reshape(b, rows, {getNumLocalParts() * numSlots, width}));
    Value sums = ScatterAddRowsOp::create(
        b, typeOf(rows).clone({numTokens, width}), index, own);
    if (!isSplit())
      return sums;
    Value parts = exchange(reshape(b, sums, {1, numTokens, width}),
                           {numParts, numTokens / numParts, width},
                           /*split=*/1, /*concat=*/0);
    return reduce(b, ReduceKind::Sum, parts, {0}, /*keepdim=*/false);
  }

private:
  /// For each of the rank's slots, whether it is used and its token, or 0.
  std::pair<Value, Value> getOwnSlots() {
    Value own = slots;
    if (isSplit())
      own = slice(slots, 0);
    own = reshape(b, own, {getNumLocalParts() * numSlots});
    Value used = compare(b, ComparePredicate::GE, own, zero());
    return {used, select(b, used, own, zero())};
  }

  /// All tokens that have a slot of this rank, and zeros for the others.
  Value send(Value tokens) {
    int64_t count = shapeOf(tokens)[0], width = shapeOf(tokens)[1];
    Value needed = slice(getNeeded(), 1);
    SmallVector<int64_t> shape = {numParts, count, width};
    Value copies =
        keep(b, unsqueeze(b, needed, 2), broadcast(b, tokens, shape));
    Value received =
        exchange(copies, {1, numTokens, width}, /*split=*/0, /*concat=*/1);
    return reshape(b, received, {numTokens, width});
  }

  /// For each part and token, whether the token has a slot there.
  Value getNeeded() {
    Type element = elementOf(slots);
    Value first = iota(b, {numParts, 1}, 0, element, 0, numTokens);
    // Empty slots have a place of their own, at the end.
    int64_t end = numParts * numTokens;
    Value isUsed = compare(b, ComparePredicate::GE, slots, zero());
    Value places =
        select(b, isUsed, add(b, slots, first), integer(b, element, end));
    auto vector = [&](int64_t size) {
      return RankedTensorType::get({size}, element);
    };
    int64_t all = numParts * numSlots;
    Value marks = ScatterOp::create(
        b, ScatterKind::Copy, filled(b, vector(end + 1), 0),
        reshape(b, places, {all}), filled(b, vector(all), 1), /*dim=*/0);
    Value needed = SliceOp::create(b, vector(end), marks, /*dim=*/0,
                                   /*start=*/0, /*step=*/1);
    return compare(b, ComparePredicate::NE,
                   reshape(b, needed, {numParts, numTokens}), zero());
  }

  Value exchange(Value x, ArrayRef<int64_t> shape, int64_t split,
                 int64_t concat) {
    auto moved = tp::AllToAllOp::create(
        b, typeOf(x).clone(shape), x, b.getI64IntegerAttr(split),
        b.getI64IntegerAttr(concat), mesh, axes,
        op->getAttrOfType<StringAttr>(tp::kFqnAttr),
        b.getStringAttr(op->getName().getStringRef() + " of experts"),
        IntegerAttr());
    moved->setAttr(tp::kSparseRowsAttr, b.getUnitAttr());
    return moved;
  }

  /// This rank's block of a value that every rank has.
  Value slice(Value x, int64_t dim) {
    SmallVector<int64_t> shape(shapeOf(x));
    shape[dim] /= numParts;
    return tp::LocalSliceOp::create(b, typeOf(x).clone(shape), x,
                                    b.getI64IntegerAttr(dim), mesh, axes);
  }

  Value zero() { return integer(b, elementOf(slots), 0); }

  Operation *op;
  ImplicitLocOpBuilder b;
  Value slots;
  int64_t numTokens; ///< of all ranks
  int64_t numParts, numSlots;
  FlatSymbolRefAttr mesh;
  tp::AxisListAttr axes;
};

/// Calls build(writer) unless the parts are split in another way than one to a
/// rank.
template <typename OpT>
FailureOr<SmallVector<Value>>
writeSlots(OpT op, OpBuilder &builder, Value slots, int64_t numTokens,
           const OpSplit &split, function_ref<Value(SlotWriter &)> build) {
  ArrayRef<tp::AxisRefAttr> axes =
      split.factorAxes[*op.getShardingRule().getFactor("p")];
  int64_t numRanks = tp::MeshOp(split.mesh).getAxesSize(axes);
  int64_t numParts = shapeOf(slots)[0];
  if (!axes.empty() && numRanks != numParts)
    return op.emitOpError()
           << "has " << numParts << " parts, which " << numRanks
           << " ranks split; the number of parts must be the "
              "number of these ranks";
  SlotWriter writer(op, builder, slots, numTokens, split, axes);
  return SmallVector<Value>{build(writer)};
}

} // namespace

FailureOr<SmallVector<Value>> DispatchOp::partition(OpBuilder &builder,
                                                    ValueRange operands,
                                                    TypeRange,
                                                    const OpSplit &split) {
  return writeSlots(*this, builder, operands[1],
                    getTokens().getType().getDimSize(0), split,
                    [&](SlotWriter &w) { return w.dispatch(operands[0]); });
}

FailureOr<SmallVector<Value>> CombineOp::partition(OpBuilder &builder,
                                                   ValueRange operands,
                                                   TypeRange,
                                                   const OpSplit &split) {
  return writeSlots(*this, builder, operands[1], getType().getDimSize(0), split,
                    [&](SlotWriter &w) { return w.combine(operands[0]); });
}
