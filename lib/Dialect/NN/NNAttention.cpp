//===- NNAttention.cpp - Rules and per-rank forms of attention ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If a mesh dimension splits the sequence, attention communicates by its context
// method, as PyTorch's context_parallel
// (torch/distributed/tensor/experimental/_context_parallel):
//
// - Rows of the query, with whole keys and values. A causal attention needs the
//   position of the rank's rows. The gradients of keys and values are Partial.
// - A ring (Liu et al., Ring Attention with Blockwise Transformers). In step i,
//   the rank at position p of a group of n attends to block p - i, modulo n, of
//   the keys and values, and the blocks move to the next rank. The partial
//   results are merged by their log-sum-exp. In the backward pass, the gradients
//   of keys and values travel with their blocks, and one step further, home.
//
// A ring's backward pass needs the log-sum-exp, so it contains the forward pass
// once more; where the forward pass has the same operands, the ops are equal and
// `cse` and `tp-optimize-collectives` merge them. The blocks that travel for the
// gradients are behind `nn.recompute`, so that no rank keeps all blocks.
//
//===----------------------------------------------------------------------===//

#include "tp/Dialect/NN/Expressions.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Dialect/TP/TP.h"

#include <limits>

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::expr;
using tp::ContextMethod;
using tp::ContextMethodAttr;
using tp::DimFactors;
using tp::FactorKind;
using tp::LinearSet;
using tp::OpSplit;
using tp::ShardingRule;
using tp::TensorFactors;

//===----------------------------------------------------------------------===//
// Context method
//===----------------------------------------------------------------------===//

int64_t AttentionOp::getNumHeads() {
  ArrayRef<int64_t> shape = getQuery().getType().getShape();
  return shape.size() >= 4 ? shape[shape.size() - 3] : 1;
}

int64_t AttentionOp::getNumRows() {
  return getQuery().getType().getShape().end()[-2];
}

int64_t AttentionOp::getNumColumns() {
  return getKey().getType().getShape().end()[-2];
}

void AttentionOp::setContextMethod(ContextMethod method) {
  setContextMethodAttr(ContextMethodAttr::get((*this)->getContext(), method));
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

/// Depth and width stay whole, and so do the rows and columns unless `method`
/// splits them. In the spec, `s` is the columns; in a ring they are split with
/// the rows. The mask, operand `maskNumber`, is bound separately, because it
/// broadcasts over the product of h and g.
static ShardingRule getRule(Operation *op, std::string spec, Value mask,
                            unsigned maskNumber,
                            std::optional<ContextMethod> method) {
  bool isRing = method == ContextMethod::Ring;
  if (isRing)
    llvm::replace(spec, 's', 't');
  SmallVector<bool> present(op->getNumOperands(), true);
  if (mask)
    present.erase(present.begin() + maskNumber);
  ShardingRule rule = ShardingRule::einsum(op, spec, present);
  for (StringRef name : {"s", "d", "e"})
    rule.whole(name);
  if (!method || method == ContextMethod::AllToAll)
    rule.whole("t");
  unsigned rows = *rule.getFactor("t");
  if (isRing) {
    rule.factors[rows].kind = FactorKind::Collective;
    rule.factors[rows].circulatedOperands = {1, 2};
  }
  if (method == ContextMethod::AllToAll || method == ContextMethod::Cheapest)
    for (StringRef heads : {"h", "g"})
      if (std::optional<unsigned> factor = rule.getFactor(heads))
        rule.alternatives.push_back({rows, *factor});
  if (!mask)
    return rule;
  TensorFactors scores = rule.operands[0];
  scores.back() = isRing ? DimFactors() : rule.operands[1].end()[-2];
  auto type = cast<RankedTensorType>(mask.getType());
  TensorFactors dims(type.getRank());
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    size_t aligned = scores.size() - type.getRank() + dim;
    int64_t size = 1;
    for (unsigned factor : scores[aligned])
      size *= rule.factors[factor].size;
    if (type.getDimSize(dim) == size)
      dims[dim] = scores[aligned];
  }
  rule.operands.insert(rule.operands.begin() + maskNumber, dims);
  return rule;
}

/// Whether groups of query heads share key heads, or all operands have the same
/// leading dimensions.
template <typename OpT>
static bool hasHeads(OpT op) {
  return op.getQuery().getType().getRank() >= 4;
}

template <typename OpT>
static ShardingRule getForwardRule(OpT op, StringRef results,
                                   std::optional<ContextMethod> method) {
  std::string spec = hasHeads(op) ? "(b.. [h g] t d, b.. h s d, b.. h s e) -> "
                                  : "(b.. t d, b.. s d, b.. s e) -> ";
  ShardingRule rule =
      getRule(op, spec + results.str(), op.getMask(), 3, method);
  // The product with the keys, and the one with the values. In a ring, no factor
  // is the columns alone.
  if (method == ContextMethod::Ring)
    rule.flops = 2.0 * op.getKey().getType().getShape().end()[-2] *
                 (op.getQuery().getType().getNumElements() +
                  op.getResult().getType().getNumElements());
  return rule;
}

ShardingRule AttentionOp::getAttentionRule() {
  return getForwardRule(*this,
                        hasHeads(*this) ? "(b.. [h g] t e)" : "(b.. t e)",
                        getContextMethod());
}

ShardingRule AttentionBlockOp::getAttentionRule() {
  ShardingRule rule = getForwardRule(
      *this,
      hasHeads(*this) ? "(b.. [h g] t e, b.. [h g] t 1)" : "(b.. t e, b.. t 1)",
      std::nullopt);
  if (getOffset())
    rule.operands.emplace_back();
  return rule;
}

/// Five products: three over depth, two over width. `more` are the operands
/// before the mask.
template <typename OpT>
static ShardingRule getBackwardRule(OpT op, StringRef more, unsigned maskNumber,
                                    std::optional<ContextMethod> method) {
  std::string spec =
      (hasHeads(op) ? "(b.. [h g] t d, b.. h s d, b.. h s e, "
                    : "(b.. t d, b.. s d, b.. s e, ") +
      more.str() +
      (hasHeads(op) ? ") -> (b.. [h g] t d, b.. [h g] s d, b.. [h g] s e)"
                    : ") -> (b.. t d, b.. s d, b.. s e)");
  ShardingRule rule = getRule(op, spec, op.getMask(), maskNumber, method);
  tp::Factor &rows = rule.factors[*rule.getFactor("t")];
  if (method == ContextMethod::Ring)
    rows.circulatedResults = {1, 2};
  else if (rows.kind == FactorKind::Parallel)
    rows.summedResults = {1, 2};
  int64_t columns = op.getKey().getType().getShape().end()[-2];
  rule.flops = 2.0 * columns *
               (3.0 * op.getQuery().getType().getNumElements() +
                2.0 * op.getGradient().getType().getNumElements());
  return rule;
}

ShardingRule AttentionGradientOp::getAttentionGradientRule() {
  return getBackwardRule(*this, hasHeads(*this) ? "b.. [h g] t e" : "b.. t e",
                         4, getContextMethod())
      .linear({LinearSet{3}});
}

ShardingRule AttentionBlockGradientOp::getAttentionGradientRule() {
  ShardingRule rule = getBackwardRule(
      *this,
      hasHeads(*this) ? "b.. [h g] t e, b.. [h g] t 1, b.. [h g] t 1"
                      : "b.. t e, b.. t 1, b.. t 1",
      6, std::nullopt);
  if (getOffset())
    rule.operands.emplace_back();
  return rule.linear({LinearSet{3, 5}});
}

//===----------------------------------------------------------------------===//
// Per-rank forms
//===----------------------------------------------------------------------===//

namespace {

/// What a rank computes of an op whose sequence `axes` split. `query`, `key`,
/// `value` and `mask` are the rank's.
class SplitAttention {
public:
  template <typename OpT>
  SplitAttention(OpT op, ImplicitLocOpBuilder &b, ValueRange operands,
                 const OpSplit &split, unsigned factor)
      : op(op), b(b), query(operands[0]), key(operands[1]), value(operands[2]),
        mask(op.getMask() ? operands.back() : Value()),
        scale(op.getScaleAttr()), causal(op.getCausal()),
        element(elementOf(operands[0])), wide(getWideElement(element)),
        mesh(split.mesh), axes(split.factorAxes[factor]),
        segments(split.factorSegments[factor]), rank(split.rank),
        rows(op.getQuery().getType().getShape().end()[-2]) {}

protected:
  /// The position of the first of this rank's rows in a sequence of `size`.
  Value getOffset(int64_t size) {
    return tp::ShardOffsetOp::create(
        b, RankedTensorType::get({}, b.getI64Type()), b.getI64IntegerAttr(size),
        FlatSymbolRefAttr::get(mesh.getSymNameAttr()), getAxes());
  }
  Value getNumber(int64_t number) { return integer(b, b.getI64Type(), number); }
  tp::AxisListAttr getAxes() {
    return tp::AxisListAttr::get(b.getContext(), axes);
  }

  std::pair<Value, Value> attend(Value query, Value key, Value value,
                                 Value mask, Value offset) {
    auto block =
        AttentionBlockOp::create(b, query, key, value, mask, offset, scale);
    return {block.getResult(), block.getLse()};
  }

  /// The sum over a row of the probabilities times their gradients.
  Value getDelta(Value result, Value gradient) {
    return reduce(b, ReduceKind::Sum,
                  mul(b, castTo(b, result, wide), castTo(b, gradient, wide)),
                  {rankOf(result) - 1}, /*keepdim=*/true);
  }

  Operation *op;
  ImplicitLocOpBuilder &b;
  Value query, key, value, mask;
  FloatAttr scale;
  bool causal;
  Type element, wide;
  tp::MeshOp mesh;
  ArrayRef<tp::AxisRefAttr> axes;
  ArrayRef<int64_t> segments;
  int64_t rank;
  int64_t rows; ///< of all ranks
};

/// Some rows, all columns, causal.
class CausalRows : public SplitAttention {
public:
  using SplitAttention::SplitAttention;

  Value build() {
    SmallVector<Value> results;
    forEachSegment([&](Value query, Value offset, auto) {
      results.push_back(attend(query, key, value, Value(), offset).first);
    });
    return join(results);
  }

  SmallVector<Value> buildGradients(Value gradient) {
    SmallVector<Value> queryGradients;
    Value keyGradient, valueGradient;
    forEachSegment([&](Value query, Value offset, auto slice) {
      Value own = slice(gradient);
      auto [result, lse] = attend(query, key, value, Value(), offset);
      auto part = AttentionBlockGradientOp::create(b, query, key, value, own,
                                                   lse, getDelta(result, own),
                                                   Value(), offset, scale);
      queryGradients.push_back(part.getQueryGradient());
      auto addTo = [&](Value &sum, Value more) {
        sum = sum ? add(b, sum, more) : more;
      };
      addTo(keyGradient, part.getKeyGradient());
      addTo(valueGradient, part.getValueGradient());
    });
    return {join(queryGradients), keyGradient, valueGradient};
  }

private:
  /// Calls visit(query, offset, slice of a tensor with the same rows) for the
  /// rank's part of each segment of the rows.
  template <typename Visit>
  void forEachSegment(Visit visit) {
    SmallVector<int64_t> sizes(segments);
    if (sizes.empty())
      sizes.push_back(rows);
    int64_t begin = 0, first = 0, dim = rankOf(query) - 2;
    for (int64_t size : sizes) {
      int64_t count = 0;
      for (tp::Interval piece : tp::getDimBlock(size, getAxes(), mesh, rank))
        count += piece.size;
      auto slice = [&](Value x) -> Value {
        if (sizes.size() == 1)
          return x;
        SmallVector<int64_t> shape(shapeOf(x));
        shape[dim] = count;
        return SliceOp::create(b, typeOf(x).clone(shape), x, dim, first,
                               /*step=*/1);
      };
      Value offset = getOffset(size);
      if (begin)
        offset = add(b, offset, getNumber(begin));
      visit(slice(query), offset, slice);
      begin += size;
      first += count;
    }
  }

  Value join(ArrayRef<Value> parts) {
    if (parts.size() == 1)
      return parts.front();
    int64_t dim = rankOf(query) - 2;
    SmallVector<int64_t> shape(shapeOf(parts.front()));
    shape[dim] = shapeOf(query)[dim];
    return ConcatOp::create(b, typeOf(parts.front()).clone(shape), parts,
                            b.getI64IntegerAttr(dim));
  }
};

class Ring : public SplitAttention {
public:
  template <typename OpT>
  Ring(OpT op, ImplicitLocOpBuilder &b, ValueRange operands,
       const OpSplit &split, unsigned factor)
      : SplitAttention(op, b, operands, split, factor),
        numRanks(mesh.getAxesSize(axes)), numColumns(rows / numRanks),
        start(getOffset(rows)) {}

  /// The result of all columns, and the log-sum-exp, both wide.
  std::pair<Value, Value> build() {
    Value ownKey = key, ownValue = value, result, lse;
    for (int64_t step = 0; step < numRanks; ++step) {
      Value nextKey, nextValue;
      if (step + 1 < numRanks) {
        nextKey = passOn(ownKey);
        nextValue = passOn(ownValue);
      }
      auto [part, partLse] =
          attend(query, ownKey, ownValue, getMask(step), getOffsetOf(step));
      part = castTo(b, part, wide);
      if (step == 0)
        result = part, lse = partLse;
      else
        merge(result, lse, part, partLse);
      ownKey = nextKey, ownValue = nextValue;
    }
    return {result, lse};
  }

  SmallVector<Value> buildGradients(Value gradient) {
    auto [result, lse] = build();
    Value delta = getDelta(result, gradient);
    Value ownKey = RecomputeOp::create(b, key.getType(), key);
    Value ownValue = RecomputeOp::create(b, value.getType(), value);
    SmallVector<Value> sums(3);
    for (int64_t step = 0; step < numRanks; ++step) {
      Value nextKey, nextValue;
      if (step + 1 < numRanks) {
        nextKey = passOn(ownKey);
        nextValue = passOn(ownValue);
      }
      auto part = AttentionBlockGradientOp::create(
          b, query, ownKey, ownValue, gradient, lse, delta, getMask(step),
          getOffsetOf(step), scale);
      for (auto [i, sum] : llvm::enumerate(sums)) {
        Value more = castTo(b, part->getResult(i), wide);
        if (step > 0)
          more = add(b, i == 0 ? sum : passOn(sum), more);
        sum = more;
      }
      ownKey = nextKey, ownValue = nextValue;
    }
    return {castTo(b, sums[0], element), castTo(b, passOn(sums[1]), element),
            castTo(b, passOn(sums[2]), element)};
  }

  Value narrow(Value x) { return castTo(b, x, element); }

private:
  /// The block that the previous rank has.
  Value passOn(Value block) {
    SmallVector<int64_t> source;
    for (int64_t position = 0; position < numRanks; ++position)
      source.push_back((position + numRanks - 1) % numRanks);
    return tp::PermuteOp::create(
        b, block.getType(), block, b.getDenseI64ArrayAttr(source),
        FlatSymbolRefAttr::get(mesh.getSymNameAttr()), getAxes(),
        op->getAttrOfType<StringAttr>(tp::kFqnAttr),
        b.getStringAttr(op->getName().getStringRef() + " in a ring"),
        IntegerAttr());
  }

  /// The position of the rank's rows minus that of the columns of `step`: of the
  /// first ranks, the columns are those of the last ones.
  Value getDistance(int64_t step) {
    if (step == 0)
      return getNumber(0);
    Value near = getNumber(step * numColumns);
    return select(b, compare(b, ComparePredicate::LT, start, near),
                  getNumber(step * numColumns - rows), near);
  }

  /// Null unless the attention is causal.
  Value getOffsetOf(int64_t step) {
    return causal ? getDistance(step) : Value();
  }

  /// The mask's columns of `step`.
  Value getMask(int64_t step) {
    if (!mask || shapeOf(mask).back() == 1)
      return mask;
    Value first = sub(b, start, getDistance(step));
    Value columns = add(b, iota(b, {numColumns}, 0, b.getI64Type()), first);
    return IndexSelectOp::create(b, mask, columns, rankOf(mask) - 1);
  }

  /// Adds to `result`, of log-sum-exp `lse`, the result for other columns. Two
  /// rows that see nothing give 0.
  void merge(Value &result, Value &lse, Value part, Value partLse) {
    Value larger =
        select(b, compare(b, ComparePredicate::LT, lse, partLse), partLse, lse);
    Value isSeen = compare(b, ComparePredicate::NE, larger,
                           -std::numeric_limits<double>::infinity());
    larger = keep(b, isSeen, larger);
    Value weight = expr::exp(b, sub(b, lse, larger));
    Value partWeight = expr::exp(b, sub(b, partLse, larger));
    Value sum = add(b, weight, partWeight);
    Value divisor = select(b, isSeen, sum, constantLike(b, sum, 1));
    result = div(b, add(b, mul(b, result, weight), mul(b, part, partWeight)),
                 divisor);
    lse = add(b, larger, unary<LogOp>(b, sum));
  }

  int64_t numRanks, numColumns;
  Value start; ///< of the rank's rows
};

/// The local form without a context method.
template <typename OpT>
SmallVector<Value> buildClone(OpT op, OpBuilder &builder, ValueRange operands,
                              TypeRange types) {
  SmallVector<Value> results =
      *tp::clonePartitioned(op, builder, operands, types);
  cast<OpT>(results.front().getDefiningOp()).removeContextMethodAttr();
  return results;
}

} // namespace

FailureOr<SmallVector<Value>> AttentionOp::partition(OpBuilder &builder,
                                                     ValueRange operands,
                                                     TypeRange types,
                                                     const OpSplit &split) {
  unsigned rows = *getShardingRule().getFactor("t");
  ImplicitLocOpBuilder b(getLoc(), builder);
  if (split.factorAxes[rows].empty())
    return buildClone(*this, builder, operands, types);
  if (getContextMethod() == ContextMethod::Ring) {
    Ring ring(*this, b, operands, split, rows);
    return SmallVector<Value>{ring.narrow(ring.build().first)};
  }
  if (!getCausal())
    return buildClone(*this, builder, operands, types);
  return SmallVector<Value>{
      CausalRows(*this, b, operands, split, rows).build()};
}

FailureOr<SmallVector<Value>>
AttentionGradientOp::partition(OpBuilder &builder, ValueRange operands,
                               TypeRange types, const OpSplit &split) {
  unsigned rows = *getShardingRule().getFactor("t");
  ImplicitLocOpBuilder b(getLoc(), builder);
  if (split.factorAxes[rows].empty())
    return buildClone(*this, builder, operands, types);
  if (getContextMethod() == ContextMethod::Ring)
    return Ring(*this, b, operands, split, rows).buildGradients(operands[3]);
  if (!getCausal())
    return buildClone(*this, builder, operands, types);
  return CausalRows(*this, b, operands, split, rows)
      .buildGradients(operands[3]);
}
