//===- NNFolders.cpp - Folders and canonicalization of the nn ops ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "tp/Dialect/NN/NN.h"

using namespace mlir;
using namespace mlir::nn;

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

OpFoldResult CastOp::fold(FoldAdaptor) {
  return getInput().getType() == getType() ? getInput() : OpFoldResult();
}

OpFoldResult StopGradientOp::fold(FoldAdaptor adaptor) {
  if (getInput().getDefiningOp<StopGradientOp>())
    return getInput();
  return adaptor.getInput();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto splat = dyn_cast_or_null<DenseElementsAttr>(adaptor.getInput()))
    return splat.reshape(getType());
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (isIdentityPermutation(getPermutation()))
    return getInput();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getInput()))
    return splat.resizeSplat(getType());
  return {};
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getInput()))
    return splat.resizeSplat(getType());
  return {};
}

/// Whether both begin at one element and go on by one step.
static bool isSameRange(SliceScatterOp write, SliceOp read) {
  return write.getDim() == read.getDim() &&
         write.getStart() == read.getStart() &&
         write.getStep() == read.getStep();
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType() && getStart() == 0)
    return getInput();
  if (auto written = getInput().getDefiningOp<SliceScatterOp>();
      written && isSameRange(written, *this) &&
      written.getSource().getType() == getType())
    return written.getSource();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getInput()))
    return splat.resizeSplat(getType());
  return {};
}

OpFoldResult SliceScatterOp::fold(FoldAdaptor) {
  if (getSource().getType() == getType())
    return getSource();
  if (auto read = getSource().getDefiningOp<SliceOp>();
      read && isSameRange(*this, read) && read.getInput() == getInput())
    return getInput();
  return {};
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  return getInputs().size() == 1 ? getInputs()[0] : OpFoldResult();
}

namespace {
/// reshape(reshape(x)) is one reshape.
struct MergeReshapes final : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto producer = op.getInput().getDefiningOp<ReshapeOp>();
    if (!producer)
      return failure();
    rewriter.modifyOpInPlace(
        op, [&] { op.getInputMutable().assign(producer.getInput()); });
    return success();
  }
};

/// transpose(transpose(x)) is one transpose.
struct MergeTransposes final : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    auto producer = op.getInput().getDefiningOp<TransposeOp>();
    if (!producer)
      return failure();
    rewriter.replaceOpWithNewOp<TransposeOp>(
        op, op.getType(), producer.getInput(),
        applyPermutation(producer.getPermutation(), op.getPermutation()));
    return success();
  }
};
} // namespace

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &results,
                                            MLIRContext *context) {
  results.add<MergeReshapes>(context);
}

void TransposeOp::getCanonicalizationPatterns(RewritePatternSet &results,
                                              MLIRContext *context) {
  results.add<MergeTransposes>(context);
}
