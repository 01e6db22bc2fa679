//===- AttentionGradients.cpp - Gradients of attention --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Dialect/NN/Expressions.h"
#include <limits>

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::expr;
using tp::GradientBuilder;

namespace {
/// The scores of attention in nn ops. Query heads that share a key head form a
/// separate dimension: query (b…, h, g, t, d), key (b…, h, 1, s, d), value (b…,
/// h, 1, s, e).
class Scores {
public:
  template <typename OpT>
  Scores(ImplicitLocOpBuilder &b, OpT op)
      : b(b), mask(op.getMask()), causal(op.getCausal()), offset(getOffset(op)),
        rank(op.getQuery().getType().getRank()) {
    auto type = op.getQuery().getType();
    auto keyType = op.getKey().getType();
    heads = rank >= 4 ? type.getDimSize(rank - 3) : 1;
    keyHeads = rank >= 4 ? keyType.getDimSize(rank - 3) : 1;
    query = splitHeads(op.getQuery());
    key = addGroup(op.getKey());
    value = addGroup(op.getValue());
    element = type.getElementType();
    wide = getWideElement(element);
    scale = op.getScale().convertToDouble();

    scores = castTo(b, matmul(b, query, transposeLast(b, key)), wide);
    scores = applyMask(mul(b, scores, scale));
    last = typeOf(scores).getRank() - 1;
  }

protected:
  bool isGrouped() const { return heads != keyHeads; }
  int64_t getGroup() const { return heads / keyHeads; }

  /// (b…, h * g, t, d) → (b…, h, g, t, d).
  Value splitHeads(Value x) {
    if (!isGrouped())
      return x;
    SmallVector<int64_t> shape(typeOf(x).getShape());
    shape[rank - 3] = keyHeads;
    shape.insert(shape.begin() + rank - 2, getGroup());
    return reshape(b, x, shape);
  }
  Value joinHeads(Value x) {
    if (!isGrouped())
      return x;
    SmallVector<int64_t> shape(typeOf(x).getShape());
    shape[rank - 3] = heads;
    shape.erase(shape.begin() + rank - 2);
    return reshape(b, x, shape);
  }
  Value addGroup(Value x) {
    return isGrouped() ? unsqueeze(b, x, rank - 2) : x;
  }

  /// The mask in the scores' shape: with its heads split, or one head for all.
  Value getSplitMask() {
    int64_t maskRank = typeOf(mask).getRank();
    if (!isGrouped() || maskRank < 3)
      return mask;
    SmallVector<int64_t> shape(typeOf(mask).getShape());
    bool isPerHead = shape[maskRank - 3] != 1;
    if (isPerHead)
      shape[maskRank - 3] = keyHeads;
    shape.insert(shape.begin() + maskRank - 2, isPerHead ? getGroup() : 1);
    return reshape(b, mask, shape);
  }

  Value applyMask(Value scores) {
    Value lowest = constant(b, wide, -std::numeric_limits<double>::infinity());
    if (mask) {
      if (elementOf(mask).isInteger(1))
        return select(b, getSplitMask(), scores, lowest);
      return add(b, scores, castTo(b, getSplitMask(), wide));
    }
    if (!causal)
      return scores;
    auto shape = typeOf(scores).getShape().take_back(2);
    Value row = iota(b, {shape[0], 1}, 0, b.getI64Type());
    Value column = iota(b, {1, shape[1]}, 1, b.getI64Type());
    if (offset)
      row = add(b, row, offset);
    return select(b, compare(b, ComparePredicate::LE, column, row), scores,
                  lowest);
  }

  template <typename OpT>
  static Value getOffset(OpT) {
    return {};
  }
  static Value getOffset(AttentionBlockOp op) { return op.getOffset(); }
  static Value getOffset(AttentionBlockGradientOp op) { return op.getOffset(); }

  ImplicitLocOpBuilder &b;
  Value mask;
  bool causal;
  Value offset; ///< null if there is none
  int64_t rank, heads, keyHeads, last;
  Value query, key, value; ///< heads split
  Type element, wide;
  double scale;
  Value scores; ///< wide
};

/// The formulas of nn.attention_block.
class BlockFormulas : Scores {
public:
  BlockFormulas(ImplicitLocOpBuilder &b, AttentionBlockOp op) : Scores(b, op) {}

  SmallVector<Value> getResults() {
    Value maximum = reduce(b, ReduceKind::Max, scores, {last},
                           /*keepdim=*/true);
    Value isSeen = compare(b, ComparePredicate::NE, maximum,
                           -std::numeric_limits<double>::infinity());
    maximum = keep(b, isSeen, maximum);
    Value weights = expr::exp(b, sub(b, scores, maximum));
    Value sum = reduce(b, ReduceKind::Sum, weights, {last}, /*keepdim=*/true);
    Value divisor = select(b, isSeen, sum, constantLike(b, sum, 1));
    Value result = matmul(b, div(b, weights, divisor), castTo(b, value, wide));
    return {joinHeads(castTo(b, result, element)),
            joinHeads(add(b, maximum, unary<LogOp>(b, sum)))};
  }
};

/// The formulas of nn.attention_gradient and nn.attention_block_gradient, and
/// the mask's gradient.
class Decomposition : Scores {
public:
  template <typename OpT>
  Decomposition(ImplicitLocOpBuilder &b, OpT op, Value gradient)
      : Scores(b, op) {
    weights = safeSoftmax(b, scores, last);
    addGradient(gradient, [&](Value dWeights) {
      return reduce(b, ReduceKind::Sum, mul(b, weights, dWeights), {last},
                    /*keepdim=*/true);
    });
  }

  Decomposition(ImplicitLocOpBuilder &b, AttentionBlockGradientOp op)
      : Scores(b, op) {
    Value lse = splitHeads(op.getLse());
    Value isSeen = compare(b, ComparePredicate::NE, lse,
                           -std::numeric_limits<double>::infinity());
    weights = expr::exp(b, sub(b, scores, keep(b, isSeen, lse)));
    addGradient(op.getGradient(),
                [&](Value) { return splitHeads(op.getDelta()); });
  }

  Value getQueryGradient() {
    return joinHeads(matmul(b, getNarrowScores(), key));
  }
  Value getKeyGradient() {
    return joinHeads(matmul(b, transposeLast(b, getNarrowScores()), query));
  }
  Value getValueGradient() {
    return joinHeads(
        matmul(b, transposeLast(b, castTo(b, weights, element)), g));
  }
  Value getMaskGradient() {
    return castTo(b, sumTo(b, joinHeads(dScores), typeOf(mask)), element);
  }

private:
  /// `getSums` gives the sums of a row's probabilities times their gradients.
  template <typename GetSums>
  void addGradient(Value gradient, GetSums getSums) {
    g = splitHeads(gradient);
    Value dWeights = castTo(b, matmul(b, g, transposeLast(b, value)), wide);
    dScores = mul(b, weights, sub(b, dWeights, getSums(dWeights)));
  }

  Value getNarrowScores() { return castTo(b, mul(b, dScores, scale), element); }

  Value g;                ///< heads split
  Value weights, dScores; ///< wide
};

/// Sums the gradients of the heads that share a head of `operand`.
Value sumGroups(ImplicitLocOpBuilder &b, Value gradient, Value operand) {
  auto type = typeOf(operand);
  if (gradient.getType() == type)
    return gradient;
  int64_t heads = type.getRank() - 3;
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin() + heads + 1,
               typeOf(gradient).getDimSize(heads) / type.getDimSize(heads));
  return reduce(b, ReduceKind::Sum, reshape(b, gradient, shape), {heads + 1},
                /*keepdim=*/false);
}
} // namespace

void AttentionOp::buildGradient(GradientBuilder &b) {
  bool wantsMask = getMask() && b.wants(3);
  if (!wantsMask && !b.wants(0) && !b.wants(1) && !b.wants(2))
    return;
  SmallVector<Value> gradients;
  if (wantsMask) {
    Decomposition formulas(b, *this, b.getGradient());
    gradients = {formulas.getQueryGradient(), formulas.getKeyGradient(),
                 formulas.getValueGradient()};
    b.setGradient(3, formulas.getMaskGradient());
  } else {
    auto op = AttentionGradientOp::create(
        b, getQuery(), getKey(), getValue(), b.getGradient(), getMask(),
        getScaleAttr(), getCausal(), getContextMethodAttr());
    gradients = op->getResults();
  }
  for (auto [i, gradient] : llvm::enumerate(gradients))
    if (b.wants(i))
      b.setGradient(i, sumGroups(b, gradient, getOperand(i)));
}

SmallVector<Value> AttentionGradientOp::decompose(ImplicitLocOpBuilder &b) {
  Decomposition formulas(b, *this, getGradient());
  return {formulas.getQueryGradient(), formulas.getKeyGradient(),
          formulas.getValueGradient()};
}

SmallVector<Value>
AttentionBlockGradientOp::decompose(ImplicitLocOpBuilder &b) {
  Decomposition formulas(b, *this);
  return {formulas.getQueryGradient(), formulas.getKeyGradient(),
          formulas.getValueGradient()};
}

SmallVector<Value> AttentionBlockOp::decompose(ImplicitLocOpBuilder &b) {
  return BlockFormulas(b, *this).getResults();
}
