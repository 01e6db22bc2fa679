//===- NNExperts.cpp - Tokens on their way to experts ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If the parts of the experts are split, rank p of a group has block p of the
// group's tokens and the slots of part p. How many tokens a rank sends to
// another one depends on the data, but shapes don't: for each part, a rank gives
// all of its tokens, with zeros for those that have no slot there, and an
// all-to-all that leaves out rows of zeros moves them. So a rank has at most all
// tokens of its group, and none is dropped. A token that has several slots in a
// part moves once. For n parts and a group of t tokens:
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
                                 RankedTensorType rows, RankedTensorType slots,
                                 ArrayRef<int64_t> groups) {
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
  if (groups.size() != 2 || groups[0] < 1 || groups[1] < 1 ||
      parts % groups[0] != 0 || parts / groups[0] % groups[1] != 0)
    return op->emitOpError()
           << "groups must be two positive numbers whose product divides "
           << parts << ", found [" << groups << "]";
  return success();
}

LogicalResult DispatchOp::verify() {
  return verifySlots(*this, getTokens().getType(), getType(),
                     getSlots().getType(), getGroups());
}

LogicalResult CombineOp::verify() {
  return verifySlots(*this, getType(), getRows().getType(),
                     getSlots().getType(), getGroups());
}

//===----------------------------------------------------------------------===//
// Per-rank forms
//===----------------------------------------------------------------------===//

namespace {

/// The blocks of the tokens as (g, n, h): parts n between the two numbers of
/// groups. Axes split them from the major one on.
struct SlotBlocks {
  int64_t major, parts, minor;
  SmallVector<tp::AxisRefAttr> majorAxes = {}, partAxes = {}, minorAxes = {};

  /// Fails if `axes` split the parts in another way than one to a rank.
  LogicalResult split(ArrayRef<tp::AxisRefAttr> axes, tp::MeshOp mesh) {
    bool hasParts = parts == 1;
    for (tp::AxisRefAttr axis : axes) {
      int64_t size = mesh.getAxisSize(axis);
      bool isMajor = size > 1 && major > 1;
      bool isMinor = size > 1 && !isMajor && hasParts;
      if (!isMajor && !isMinor) {
        partAxes.push_back(axis);
        hasParts = mesh.getAxesSize(partAxes) == parts;
        continue;
      }
      int64_t &count = isMajor ? major : minor;
      if (count % size != 0)
        return failure();
      count /= size;
      (isMajor ? majorAxes : minorAxes).push_back(axis);
    }
    return success(partAxes.empty() || hasParts);
  }
};

/// What a rank computes of an op. `slots` are those of all groups and parts.
class SlotWriter {
public:
  /// `blocks` are those of the rank, with all parts; `blockSize` is the number
  /// of tokens in each.
  SlotWriter(Operation *op, OpBuilder &builder, Value slots,
             ArrayRef<int64_t> groups, int64_t blockSize,
             const SlotBlocks &blocks, tp::MeshOp mesh)
      : op(op), b(op->getLoc(), builder), blocks(blocks), blockSize(blockSize),
        numSlots(shapeOf(slots)[1]),
        mesh(FlatSymbolRefAttr::get(mesh.getSymNameAttr())) {
    takeSlots(slots, groups);
  }

  /// The rank's `tokens` in the rank's slots.
  Value dispatch(Value tokens) {
    if (isSplit())
      tokens = send(tokens);
    auto [used, index] = getOwnSlots();
    Value rows = IndexSelectOp::create(b, tokens, index, 0);
    return reshape(b, keep(b, unsqueeze(b, used, 1), rows),
                   {getNumLists(), numSlots, shapeOf(tokens)[1]});
  }

  /// The sums of the slots' `rows` for the rank's tokens.
  Value combine(Value rows) {
    auto [used, index] = getOwnSlots();
    int64_t width = shapeOf(rows)[2];
    Value own = keep(b, unsqueeze(b, used, 1),
                     reshape(b, rows, {getNumLists() * numSlots, width}));
    Value sums = ScatterAddRowsOp::create(
        b, typeOf(rows).clone({getNumTokens(), width}), index, own);
    if (!isSplit())
      return sums;
    Value parts = exchange(reshape(b, sums, {1, getNumTokens(), width}),
                           {blocks.parts, getNumOwnTokens(), width},
                           /*split=*/1, /*concat=*/0);
    return reduce(b, ReduceKind::Sum, parts, {0}, /*keepdim=*/false);
  }

private:
  bool isSplit() const { return !blocks.partAxes.empty(); }
  /// The tokens of the rank's groups, and those of them that the rank has.
  int64_t getNumTokens() const {
    return blocks.major * blocks.parts * blocks.minor * blockSize;
  }
  int64_t getNumOwnTokens() const {
    return isSplit() ? getNumTokens() / blocks.parts : getNumTokens();
  }
  /// The number of the rank's lists of slots.
  int64_t getNumLists() const {
    return blocks.major * blocks.minor * (isSplit() ? 1 : blocks.parts);
  }

  /// Takes the slots of the rank's groups, for all parts: (g, n, h, c). They
  /// become the tokens' places among those of all the rank's groups.
  void takeSlots(Value all, ArrayRef<int64_t> groups) {
    int64_t numParts = blocks.parts, major = blocks.major, minor = blocks.minor;
    Value own = all;
    if (groups[0] * groups[1] > 1) {
      own = reshape(b, own, {groups[0], numParts, groups[1], numSlots});
      own = slice(own, 0, blocks.majorAxes, major);
      own = slice(own, 2, blocks.minorAxes, minor);
    }
    if (major * minor > 1) {
      Type element = elementOf(own);
      Value place = own;
      if (minor > 1) {
        Value part = binary<FloorDivOp>(b, own, integer(b, element, blockSize));
        place = add(b, place,
                    binary<MulOp>(
                        b, part, integer(b, element, (minor - 1) * blockSize)));
      }
      Value first = add(b,
                        iota(b, {major, 1, 1, 1}, 0, element, 0,
                             numParts * minor * blockSize),
                        iota(b, {1, 1, minor, 1}, 2, element, 0, blockSize));
      own = select(b, compare(b, ComparePredicate::GE, own, zero(element)),
                   add(b, place, first), integer(b, element, -1));
    }
    slots = own;
  }

  /// For each of the rank's slots, whether it is used and its token, or 0.
  std::pair<Value, Value> getOwnSlots() {
    Value own = slots;
    if (isSplit())
      own = slice(own, rankOf(own) == 4 ? 1 : 0, blocks.partAxes, 1);
    own = reshape(b, own, {getNumLists() * numSlots});
    Value none = zero(elementOf(own));
    Value used = compare(b, ComparePredicate::GE, own, none);
    return {used, select(b, used, own, none)};
  }

  /// All tokens of the group that have a slot of this rank, and zeros for the
  /// others.
  Value send(Value tokens) {
    int64_t count = shapeOf(tokens)[0], width = shapeOf(tokens)[1];
    Value needed = slice(getNeeded(), 1, blocks.partAxes, getNumOwnTokens());
    SmallVector<int64_t> shape = {blocks.parts, count, width};
    Value copies =
        keep(b, unsqueeze(b, needed, 2), broadcast(b, tokens, shape));
    Value received =
        exchange(copies, {1, getNumTokens(), width}, /*split=*/0, /*concat=*/1);
    return reshape(b, received, {getNumTokens(), width});
  }

  /// For each part and token, whether the token has a slot there.
  Value getNeeded() {
    Type element = elementOf(slots);
    int64_t numParts = blocks.parts, numTokens = getNumTokens(),
            perPart = blocks.major * blocks.minor * numSlots;
    Value own = reshape(b, slots, {numParts, perPart});
    Value first = iota(b, {numParts, 1}, 0, element, 0, numTokens);
    // Empty slots have a place of their own, at the end.
    int64_t end = numParts * numTokens;
    Value isUsed = compare(b, ComparePredicate::GE, own, zero(element));
    Value places =
        select(b, isUsed, add(b, own, first), integer(b, element, end));
    auto vector = [&](int64_t size) {
      return RankedTensorType::get({size}, element);
    };
    int64_t all = numParts * perPart;
    Value marks = ScatterOp::create(
        b, ScatterKind::Copy, filled(b, vector(end + 1), 0),
        reshape(b, places, {all}), filled(b, vector(all), 1), /*dim=*/0);
    Value needed = SliceOp::create(b, vector(end), marks, /*dim=*/0,
                                   /*start=*/0, /*step=*/1);
    return compare(b, ComparePredicate::NE,
                   reshape(b, needed, {numParts, numTokens}), zero(element));
  }

  Value exchange(Value x, ArrayRef<int64_t> shape, int64_t split,
                 int64_t concat) {
    auto moved = tp::AllToAllOp::create(
        b, typeOf(x).clone(shape), x, b.getI64IntegerAttr(split),
        b.getI64IntegerAttr(concat), mesh, getList(blocks.partAxes),
        op->getAttrOfType<StringAttr>(tp::kFqnAttr),
        b.getStringAttr(op->getName().getStringRef() + " of experts"),
        IntegerAttr());
    moved->setAttr(tp::kSparseRowsAttr, b.getUnitAttr());
    return moved;
  }

  /// This rank's block, of `size`, of a value that every rank has.
  Value slice(Value x, int64_t dim, ArrayRef<tp::AxisRefAttr> axes,
              int64_t size) {
    if (axes.empty())
      return x;
    SmallVector<int64_t> shape(shapeOf(x));
    shape[dim] = size;
    return tp::LocalSliceOp::create(b, typeOf(x).clone(shape), x,
                                    b.getI64IntegerAttr(dim), mesh,
                                    getList(axes));
  }

  tp::AxisListAttr getList(ArrayRef<tp::AxisRefAttr> axes) {
    return tp::AxisListAttr::get(b.getContext(), axes);
  }
  Value zero(Type element) { return integer(b, element, 0); }

  Operation *op;
  ImplicitLocOpBuilder b;
  const SlotBlocks &blocks;
  int64_t blockSize, numSlots;
  FlatSymbolRefAttr mesh;
  Value slots; ///< (n, c), or (g, n, h, c) if there are groups
};

/// Calls build(writer) unless the parts are split in another way than one to a
/// rank.
template <typename OpT>
FailureOr<SmallVector<Value>>
writeSlots(OpT op, OpBuilder &builder, Value slots, int64_t numTokens,
           const OpSplit &split, function_ref<Value(SlotWriter &)> build) {
  ArrayRef<tp::AxisRefAttr> axes =
      split.factorAxes[*op.getShardingRule().getFactor("p")];
  tp::MeshOp mesh = split.mesh;
  ArrayRef<int64_t> groups = op.getGroups();
  int64_t numBlocks = shapeOf(slots)[0];
  SlotBlocks blocks = {groups[0], numBlocks / (groups[0] * groups[1]),
                       groups[1]};
  if (failed(blocks.split(axes, mesh)))
    return op.emitOpError() << "has " << blocks.parts << " parts, which "
                            << mesh.getAxesSize(blocks.partAxes)
                            << " ranks split; the number of parts must be the "
                               "number of these ranks";
  SlotWriter writer(op, builder, slots, groups, numTokens / numBlocks, blocks,
                    mesh);
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
