//===- RoutingToTPRT.cpp - Sorts and products of groups as calls ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LinalgBuilders.h"
#include "LookupLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "tp/CodeGen/Passes.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TPRT/TPRT.h"

namespace mlir::tp {
#define GEN_PASS_DEF_CONVERTROUTINGTOTPRT
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp::nnlinalg;

using Loop = tprt::GroupedGemmOp::Loop;

namespace {
struct SortPattern : OpRewritePattern<nn::SortOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::SortOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value values = buildEmpty(b, getTensorType(op.getValues())),
          indices = buildEmpty(b, getTensorType(op.getIndices()));
    auto sort = tprt::SortOp::create(
        b, op->getResultTypes(), op.getInput(), values, indices,
        op.getDimAttr(), op.getDescending() ? b.getUnitAttr() : UnitAttr());
    rewriter.replaceOp(op, sort.getResults());
    return success();
  }
};

/// An op whose first two operands are multiplied, in the loops `second` and
/// `result`.
template <typename OpT>
struct GroupedPattern : OpRewritePattern<OpT> {
  GroupedPattern(MLIRContext *context, ArrayRef<Loop> second,
                 ArrayRef<Loop> result)
      : OpRewritePattern<OpT>(context), second(second), result(result) {}

  LogicalResult matchAndRewrite(OpT op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto map = [&](ArrayRef<Loop> loops) {
      SmallVector<AffineExpr> exprs;
      for (Loop loop : loops)
        exprs.push_back(b.getAffineDimExpr(loop));
      return AffineMap::get(4, 0, exprs, b.getContext());
    };
    Value rows = op->getOperand(0);
    buildIndexCheck(b, op, op.getBounds(),
                    getTensorType(rows).getDimSize(0) + 1);
    RankedTensorType type = getTensorType(op.getResult());
    auto gemm = tprt::GroupedGemmOp::create(
        b, type, rows, op->getOperand(1), op.getBounds(), buildEmpty(b, type),
        b.getAffineMapArrayAttr(
            {map({Loop::Row, Loop::Depth}), map(second), map(result)}));
    rewriter.replaceOp(op, gemm.getResults());
    return success();
  }

private:
  SmallVector<Loop> second, result;
};

struct ConvertRoutingToTPRT
    : tp::impl::ConvertRoutingToTPRTBase<ConvertRoutingToTPRT> {
  using ConvertRoutingToTPRTBase::ConvertRoutingToTPRTBase;

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    patterns.add<SortPattern>(context);
    const Loop matrices[] = {Loop::Group, Loop::Depth, Loop::Column};
    const Loop rows[] = {Loop::Row, Loop::Column};
    patterns.add<GroupedPattern<nn::GroupedMatmulOp>>(context, matrices, rows);
    patterns.add<GroupedPattern<nn::GroupedOuterSumOp>>(context, rows,
                                                        matrices);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace
