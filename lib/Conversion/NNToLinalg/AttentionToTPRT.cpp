//===- AttentionToTPRT.cpp - attention as one call ------------------------===//

#include "Builders.h"
#include "Grouping.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "tp/Conversion/Passes.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TPRT/TPRT.h"

namespace mlir::tp {
#define GEN_PASS_DEF_CONVERTATTENTIONTOTPRT
#include "tp/Conversion/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp::nnlinalg;

namespace {
struct AttentionPattern : OpRewritePattern<nn::AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::AttentionOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getResult());
    Grouping grouping(op);
    if (type.getRank() - 2 + grouping.isGrouped() > 8)
      return failure(); // the runtime has no more loops
    auto splitHeads = [&](Value value) {
      return buildReshape(b, value,
                          grouping.split(getTensorType(value).getShape()));
    };
    Value query = splitHeads(op.getQuery());

    // The loops are (lead…, row, column, depth, width).
    unsigned numLead = getTensorType(query).getRank() - 2;
    unsigned row = numLead, column = numLead + 1, depth = numLead + 2,
             width = numLead + 3;
    auto getMap = [&](unsigned first, unsigned second, bool isShared) {
      SmallVector<unsigned> loops;
      for (unsigned i = 0; i < numLead; ++i)
        if (!isShared || !grouping.isGrouped() || i + 1 != numLead)
          loops.push_back(i);
      loops.append({first, second});
      return AffineMap::getMultiDimMapWithTargets(numLead + 4, loops,
                                                  op.getContext());
    };
    SmallVector<Value> operands = {query, op.getKey(), op.getValue()};
    SmallVector<AffineMap> maps = {getMap(row, depth, false),
                                   getMap(column, depth, true),
                                   getMap(column, width, true)};
    if (op.getMask()) {
      SmallVector<int64_t> scoreShape(getTensorType(query).getShape());
      scoreShape.back() = getTensorType(op.getKey()).getShape().end()[-2];
      Operand mask = broadcastTo(splitHeads(op.getMask()), scoreShape);
      operands.push_back(mask.value);
      maps.push_back(AffineMap::get(numLead + 4, 0, mask.map.getResults(),
                                    op.getContext()));
    }
    RankedTensorType splitType = type.clone(grouping.split(type.getShape()));
    operands.push_back(buildEmpty(b, splitType));
    maps.push_back(getMap(row, width, false));
    auto attention = tprt::AttentionOp::create(
        b, TypeRange(splitType), operands[0], operands[1], operands[2],
        op.getMask() ? operands[3] : Value(), operands.back(), op.getScale(),
        op.getCausal(), b.getAffineMapArrayAttr(maps));
    rewriter.replaceOp(
        op, buildReshape(b, attention.getResults()[0], type.getShape()));
    return success();
  }
};

struct ConvertAttentionToTPRT
    : tp::impl::ConvertAttentionToTPRTBase<ConvertAttentionToTPRT> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<AttentionPattern>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace
