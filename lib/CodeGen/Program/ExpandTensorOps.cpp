//===- ExpandTensorOps.cpp - Structured ops for ops on tensors ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "tp/CodeGen/NNToLinalg/TensorLookup.h"
#include "tp/CodeGen/Passes.h"
#include "tp/Dialect/TPRT/TPRT.h"

namespace mlir::tp {
#define GEN_PASS_DEF_EXPANDTENSOROPS
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;

namespace {

/// Decomposes softmax and similar ops into simpler ones.
struct Decompose : OpInterfaceRewritePattern<linalg::AggregatedOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::AggregatedOpInterface op,
                                PatternRewriter &rewriter) const override {
    FailureOr<SmallVector<Value>> values = op.decomposeOperation(rewriter);
    if (failed(values))
      return failure();
    rewriter.replaceOp(op, *values);
    return success();
  }
};

struct LowerPack : OpRewritePattern<linalg::PackOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::PackOp op,
                                PatternRewriter &rewriter) const override {
    return LogicalResult(linalg::lowerPack(rewriter, op));
  }
};

struct LowerUnPack : OpRewritePattern<linalg::UnPackOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::UnPackOp op,
                                PatternRewriter &rewriter) const override {
    return LogicalResult(linalg::lowerUnPack(rewriter, op));
  }
};

class ExpandTensorOps : public tp::impl::ExpandTensorOpsBase<ExpandTensorOps> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    WalkResult walked = getOperation()->walk([&](Operation *op) {
      if (auto gather = dyn_cast<tensor::GatherOp>(op))
        tp::lowerGather(rewriter, gather);
      else if (auto scatter = dyn_cast<tensor::ScatterOp>(op))
        return WalkResult(tp::lowerScatter(rewriter, scatter));
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    RewritePatternSet patterns(&getContext());
    patterns.add<Decompose, LowerPack, LowerUnPack>(&getContext());
    linalg::populateElementwiseToLinalgConversionPatterns(patterns);
    linalg::populateDecomposePadPatterns(patterns);
    linalg::populateSwapExtractSliceWithFillPatterns(patterns);
    tensor::populateDecomposeTensorConcatPatterns(patterns);
    tensor::populateFoldTensorEmptyPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
