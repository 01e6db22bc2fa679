//===- Contraction.cpp - gradients of products, attention, embedding ------===//

#include "tp/Dialect/NN/Expressions.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::expr;
using tp::GradientBuilder;

void LinearOp::buildGradient(GradientBuilder &b) {
  Value g = b.getGradient();
  if (b.wants(0))
    b.setGradient(0, LinearOp::create(b, getInput().getType(), g,
                                      transposeLast(b, getWeight())));
  if (b.wants(1))
    b.setGradient(1,
                  OuterSumOp::create(b, getWeight().getType(), g, getInput()));
}

void MatmulOp::buildGradient(GradientBuilder &b) {
  Value g = b.getGradient(), lhs = getLhs(), rhs = getRhs();
  if (b.wants(0))
    b.setGradient(0,
                  sumTo(b, matmul(b, g, transposeLast(b, rhs)), typeOf(lhs)));
  if (!b.wants(1))
    return;
  // A matrix for all of the batch: one contraction over it.
  if (typeOf(rhs).getRank() == 2 && typeOf(lhs).getRank() > 2)
    b.setGradient(1, OuterSumOp::create(b, rhs.getType(), lhs, g));
  else
    b.setGradient(1,
                  sumTo(b, matmul(b, transposeLast(b, lhs), g), typeOf(rhs)));
}

/// As linear is in each operand: lhs[b, m] gets Σ_n g[m, n] * rhs[b, n].
void OuterSumOp::buildGradient(GradientBuilder &b) {
  Value g = b.getGradient();
  if (b.wants(0))
    b.setGradient(0, LinearOp::create(b, getLhs().getType(), getRhs(), g));
  if (b.wants(1))
    b.setGradient(1, LinearOp::create(b, getRhs().getType(), getLhs(),
                                      transposeLast(b, g)));
}

namespace {
/// Attention with query heads that share a key head as a dimension of their
/// own: query (b…, h, g, t, d), key (b…, h, 1, s, d), value (b…, h, 1, s, e).
class AttentionGradient {
public:
  AttentionGradient(AttentionOp op, GradientBuilder &b) : op(op), b(b) {
    auto query = op.getQuery().getType(), key = op.getKey().getType();
    rank = query.getRank();
    if (rank >= 4 && query.getDimSize(rank - 3) != key.getDimSize(rank - 3))
      group = query.getDimSize(rank - 3) / key.getDimSize(rank - 3);
  }

  void build() {
    Value query = splitHeads(op.getQuery()), key = addGroup(op.getKey()),
          value = addGroup(op.getValue());
    Value g = splitHeads(b.getGradient()), out = splitHeads(b.getResult());
    Type element = elementOf(query), wide = getWideElement(element);
    double scale = op.getScale().convertToDouble();

    Value scores = castTo(b, matmul(b, query, transposeLast(b, key)), wide);
    scores = applyMask(mul(b, scores, scale), wide);
    auto type = typeOf(scores);
    int64_t last = type.getRank() - 1;
    Value weights =
        SoftmaxOp::create(b, type, scores, b.getI64IntegerAttr(last));
    if (b.wants(2)) {
      Value narrow = castTo(b, weights, element);
      b.setGradient(2, removeGroup(matmul(b, transposeLast(b, narrow), g),
                                   op.getValue()));
    }
    if (!b.wants(0) && !b.wants(1) && !wantsMask())
      return;
    // The sum over a row of weights * dWeights is that of out * g.
    Value products = mul(b, castTo(b, out, wide), castTo(b, g, wide));
    Value sums = reduce(b, ReduceKind::Sum, products,
                        {typeOf(out).getRank() - 1}, /*keepdim=*/true);
    Value dWeights = castTo(b, matmul(b, g, transposeLast(b, value)), wide);
    Value dScores = mul(b, weights, sub(b, dWeights, sums));
    if (wantsMask())
      b.setGradient(3, castTo(b, sumToMask(dScores), element));
    dScores = castTo(b, mul(b, dScores, scale), element);
    if (b.wants(0))
      b.setGradient(0, reshape(b, matmul(b, dScores, key),
                               op.getQuery().getType().getShape()));
    if (b.wants(1))
      b.setGradient(1, removeGroup(matmul(b, transposeLast(b, dScores), query),
                                   op.getKey()));
  }

private:
  bool wantsMask() { return op.getMask() && b.wants(3); }

  /// (b…, h * g, t, d) → (b…, h, g, t, d).
  Value splitHeads(Value x) {
    if (!group)
      return x;
    SmallVector<int64_t> shape(typeOf(x).getShape());
    shape[rank - 3] /= *group;
    shape.insert(shape.begin() + rank - 2, *group);
    return reshape(b, x, shape);
  }
  Value addGroup(Value x) { return group ? unsqueeze(b, x, rank - 2) : x; }
  /// Sums what the heads that share one give.
  Value removeGroup(Value gradient, Value operand) {
    if (group)
      gradient =
          reduce(b, ReduceKind::Sum, gradient, {rank - 2}, /*keepdim=*/false);
    return reshape(b, gradient, typeOf(operand).getShape());
  }

  /// The mask as scores see it: its heads split, or one for all.
  Value getMask() {
    Value mask = op.getMask();
    int64_t maskRank = typeOf(mask).getRank();
    if (!group || maskRank < 3)
      return mask;
    int64_t heads = maskRank - 3;
    SmallVector<int64_t> shape(typeOf(mask).getShape());
    bool isPerHead = shape[heads] != 1;
    if (isPerHead)
      shape[heads] /= *group;
    shape.insert(shape.begin() + heads + 1, isPerHead ? *group : 1);
    return reshape(b, mask, shape);
  }

  Value applyMask(Value scores, Type wide) {
    Value lowest = constant(b, wide, -std::numeric_limits<double>::infinity());
    if (Value mask = op.getMask()) {
      if (elementOf(mask).isInteger(1))
        return select(b, getMask(), scores, lowest);
      return add(b, scores, castTo(b, getMask(), wide));
    }
    if (!op.getCausal())
      return scores;
    auto shape = typeOf(scores).getShape().take_back(2);
    Value row = iota(b, {shape[0], 1}, 0, b.getI64Type());
    Value column = iota(b, {1, shape[1]}, 1, b.getI64Type());
    return select(b, compare(b, ComparePredicate::LE, column, row), scores,
                  lowest);
  }

  Value sumToMask(Value dScores) {
    Value mask = op.getMask();
    if (group) { // (b…, h, g, t, s) → (b…, h * g, t, s)
      SmallVector<int64_t> shape(typeOf(dScores).getShape());
      shape[rank - 3] *= *group;
      shape.erase(shape.begin() + rank - 2);
      dScores = reshape(b, dScores, shape);
    }
    return sumTo(b, dScores, typeOf(mask));
  }

  AttentionOp op;
  GradientBuilder &b;
  int64_t rank;
  std::optional<int64_t> group;
};
} // namespace

void AttentionOp::buildGradient(GradientBuilder &b) {
  AttentionGradient(*this, b).build();
}

void EmbeddingOp::buildGradient(GradientBuilder &b) {
  if (!b.wants(1))
    return;
  Value rows = b.getGradient();
  if (auto padding = getPaddingAttr()) {
    Value counted = compare(b, ComparePredicate::NE, getIndices(),
                            static_cast<double>(padding.getInt()));
    counted = unsqueeze(b, counted, typeOf(counted).getRank());
    rows = keep(b, counted, rows);
  }
  b.setGradient(1, ScatterAddRowsOp::create(b, getWeight().getType(),
                                            getIndices(), rows));
}

void ScatterAddRowsOp::buildGradient(GradientBuilder &b) {
  if (b.wants(1))
    b.setGradient(1, EmbeddingOp::create(b, getRows().getType(), getIndices(),
                                         b.getGradient(), IntegerAttr()));
}
