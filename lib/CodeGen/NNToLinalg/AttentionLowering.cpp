//===- AttentionLowering.cpp - nn.attention -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// scores = query · keyᵀ; the masked, scaled softmax of its rows, 0 in rows that
// see nothing; times value.
// Everything between the two contractions works on rows of scores, in the type
// in which bodies compute.
//
//===----------------------------------------------------------------------===//

#include "Grouping.h"
#include "LinalgBuilders.h"
#include "LoweringPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "tp/Dialect/NN/NN.h"

using namespace mlir;
using namespace mlir::tp::nnlinalg;

namespace {
struct AttentionPattern : OpRewritePattern<nn::AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::AttentionOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getResult());
    Type computeType = getComputeType(type.getElementType());
    Grouping grouping(op.getQuery(), op.getKey());
    Value query = grouping.split(b, op.getQuery());
    SmallVector<int64_t> scoreShape(getTensorType(query).getShape());
    scoreShape.back() = getTensorType(op.getKey()).getShape().end()[-2];

    enum { Row, Column, Sum, NumInner };
    auto getMap = [&](unsigned first, unsigned second, bool isShared) {
      return grouping.getMap(op.getContext(), scoreShape.size() - 2, NumInner,
                             first, second, isShared);
    };
    Value scores = buildContraction(b, {query, getMap(Row, Sum, false)},
                                    {op.getKey(), getMap(Column, Sum, true)},
                                    scoreShape, getMap(Row, Column, false));
    scores = buildMaskedScores(b, op, scores,
                               op.getMask() ? grouping.split(b, op.getMask())
                                            : Value());
    Value weights =
        buildSafeSoftmax(b, scores, scoreShape.size() - 1, computeType);

    SmallVector<int64_t> resultShape = grouping.split(type.getShape());
    Value value = buildCast(b, op.getValue(), computeType);
    Value result = buildContraction(b, {weights, getMap(Row, Sum, false)},
                                    {value, getMap(Sum, Column, true)},
                                    resultShape, getMap(Row, Column, false));
    result = buildCast(b, result, type.getElementType());
    rewriter.replaceOp(op, buildReshape(b, result, type.getShape()));
    return success();
  }

private:
  /// scores * scale, plus a float mask; -inf where a boolean mask is false or,
  /// if causal, right of the diagonal.
  static Value buildMaskedScores(ImplicitLocOpBuilder &b, nn::AttentionOp op,
                                 Value scores, Value mask) {
    RankedTensorType type = getTensorType(scores);
    SmallVector<Value> inputs = {scores};
    if (mask)
      inputs.push_back(mask);
    return buildElementwise(
        b, type, inputs, [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args) {
          Type elementType = type.getElementType();
          Value scale =
              getScalar(b, elementType, op.getScale().convertToDouble());
          Value score = arith::MulFOp::create(b, args[0], scale);
          Value keep;
          if (mask && !args[1].getType().isInteger(1))
            score = arith::AddFOp::create(b, score, args[1]);
          else if (mask)
            keep = args[1];
          if (op.getCausal()) {
            Value row = linalg::IndexOp::create(b, type.getRank() - 2);
            Value column = linalg::IndexOp::create(b, type.getRank() - 1);
            keep = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, column,
                                         row);
          }
          if (!keep)
            return score;
          Value lowest = getLowest(b, elementType);
          return arith::SelectOp::create(b, keep, score, lowest).getResult();
        });
  }
};

template <typename OpT>
struct Decompose : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpT op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, op.decompose(b));
    return success();
  }
};
} // namespace

void mlir::tp::nnlinalg::populateAttentionPatterns(
    RewritePatternSet &patterns) {
  patterns.add<AttentionPattern>(patterns.getContext());
}

void mlir::tp::nnlinalg::populateAttentionDecompositions(
    RewritePatternSet &patterns) {
  patterns
      .add<Decompose<nn::AttentionGradientOp>, Decompose<nn::AttentionBlockOp>,
           Decompose<nn::AttentionBlockGradientOp>>(patterns.getContext());
}
