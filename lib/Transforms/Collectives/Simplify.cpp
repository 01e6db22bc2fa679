//===- Simplify.cpp - Collectives that undo or continue one another -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Collectives.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Builders.h"
#include "tp/Interfaces/TensorBuilder.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::collectives;

namespace {

/// The users of `op`, if they all are slices and alike; otherwise none.
SmallVector<LocalSliceOp> getOnlySlices(Operation *op) {
  SmallVector<LocalSliceOp> slices;
  for (Operation *user : op->getUsers()) {
    auto slice = dyn_cast<LocalSliceOp>(user);
    if (!slice ||
        (!slices.empty() && (slice.getAxes() != slices.front().getAxes() ||
                             slice.getDim() != slices.front().getDim())))
      return {};
    slices.push_back(slice);
  }
  return slices;
}

/// Replaces `op` and its slices by `by`.
void replaceSlices(PatternRewriter &rewriter, Operation *op,
                   ArrayRef<LocalSliceOp> slices, Value by) {
  for (LocalSliceOp slice : slices)
    rewriter.replaceOp(slice, by);
  rewriter.eraseOp(op);
}

/// If all users of an all_reduce take this rank's slice of it, it becomes a
/// reduce_scatter. Axes that only the reduction or only the slice has are
/// reduced, or sliced, separately:
///
///   reduced over {dp, tp}, sliced over {tp}: scatter over {tp},
///                                            reduce over {dp}
///   reduced over {tp}, sliced over {tp, dp}: scatter over {tp},
///                                            slice over {dp}
///   reduced over {tp}, sliced over {dp, tp}: slice over {dp},
///                                            scatter over {tp}
struct ScatterSlicedReduction final : OpRewritePattern<AllReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AllReduceOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<LocalSliceOp> slices = getOnlySlices(op);
    if (slices.empty())
      return failure();
    LocalSliceOp slice = slices.front();
    ArrayRef<AxisRefAttr> reduced = op.getAxes().getAxes();
    ArrayRef<AxisRefAttr> sliced = slice.getAxes().getAxes();
    if (op.getAxes() != slice.getAxes() &&
        !slice.getAxes().getSegments().empty())
      return failure();

    SmallVector<AxisRefAttr> onlyReduced;
    llvm::copy_if(
        reduced, std::back_inserter(onlyReduced),
        [&](AxisRefAttr axis) { return !llvm::is_contained(sliced, axis); });
    Value result;
    if (onlyReduced.size() + sliced.size() == reduced.size()) {
      result = scatter(rewriter, op, op.getInput(), slice.getAxes(),
                       slice.getDimAttr(), slice.getType());
      if (!onlyReduced.empty())
        result = createFor<AllReduceOp>(
            {op}, rewriter, op.getLoc(), result, op.getKind(), op.getMeshAttr(),
            AxisListAttr::get(getContext(), onlyReduced));
    } else if (sliced.take_front(reduced.size()) == reduced) {
      auto between = divide(slice, reduced);
      if (!between)
        return failure();
      result = scatter(rewriter, op, op.getInput(), op.getAxes(),
                       slice.getDimAttr(), between);
      result = cut(rewriter, slice, result, sliced.drop_front(reduced.size()),
                   slice.getType());
    } else if (sliced.take_back(reduced.size()) == reduced) {
      ArrayRef<AxisRefAttr> before = sliced.drop_back(reduced.size());
      auto between = divide(slice, before);
      if (!between)
        return failure();
      result = cut(rewriter, slice, op.getInput(), before, between);
      result = scatter(rewriter, op, result, op.getAxes(), slice.getDimAttr(),
                       slice.getType());
    } else {
      return failure();
    }
    remarkRewrite(op, "ReduceScatter",
                  "all_reduce then local_slice is a reduce_scatter");
    replaceSlices(rewriter, op, slices, result);
    return success();
  }

  /// The type of the input of `slice` if only `axes` cut it; null if the ranks'
  /// blocks would differ.
  static RankedTensorType divide(LocalSliceOp slice,
                                 ArrayRef<AxisRefAttr> axes) {
    MeshOp mesh = lookupMesh(slice, slice.getMeshAttr());
    int64_t dim = slice.getDim(), count = mesh.getAxesSize(axes);
    RankedTensorType whole = slice.getInput().getType();
    if (whole.getDimSize(dim) % count != 0)
      return {};
    return resize(whole, dim, whole.getDimSize(dim) / count);
  }

  static Value scatter(PatternRewriter &rewriter, AllReduceOp op, Value input,
                       AxisListAttr axes, IntegerAttr dim, Type type) {
    return createFor<ReduceScatterOp>({op}, rewriter, op.getLoc(), type, input,
                                      op.getKind(), dim, op.getMeshAttr(),
                                      axes);
  }

  static Value cut(PatternRewriter &rewriter, LocalSliceOp slice, Value input,
                   ArrayRef<AxisRefAttr> axes, Type type) {
    return LocalSliceOp::create(rewriter, slice.getLoc(), type, input,
                                slice.getDimAttr(), slice.getMeshAttr(),
                                AxisListAttr::get(slice.getContext(), axes));
  }
};

/// If all users of an all_gather take this rank's slice along another
/// dimension, it becomes an all_to_all.
struct SwapSlicedGather final : OpRewritePattern<AllGatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AllGatherOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<LocalSliceOp> slices = getOnlySlices(op);
    if (slices.empty() || slices.front().getAxes() != op.getAxes() ||
        slices.front().getDim() == op.getDim() ||
        !op.getAxes().getSegments().empty())
      return failure();
    remarkRewrite(op, "AllToAll",
                  "all_gather then local_slice is an all_to_all");
    auto swap = createFor<AllToAllOp>(
        {op}, rewriter, op.getLoc(), slices.front().getType(), op.getInput(),
        slices.front().getDimAttr(), op.getDimAttr(), op.getMeshAttr(),
        op.getAxes());
    replaceSlices(rewriter, op, slices, swap);
    return success();
  }
};

/// Whether the slice takes the gathered block out again.
bool undoes(LocalSliceOp op, AllGatherOp first) {
  return first.getDim() == op.getDim() && first.getAxes() == op.getAxes();
}
/// Whether the gather puts together again what was sliced.
bool undoes(AllGatherOp op, LocalSliceOp first) {
  return first.getDim() == op.getDim() && first.getAxes() == op.getAxes();
}
/// Whether the split that was moved to another dimension is moved back.
bool undoes(AllToAllOp op, AllToAllOp first) {
  return first.getSplitDim() == op.getConcatDim() &&
         first.getConcatDim() == op.getSplitDim() &&
         first.getAxes() == op.getAxes() &&
         first.getInput().getType() == op.getType();
}
/// Whether the exchanged blocks are exchanged back.
bool undoes(ExchangeOp op, ExchangeOp first) {
  return first.getShape() == op.getShape() && first.getFrom() == op.getTo() &&
         first.getTo() == op.getFrom();
}

/// Replaces an op that undoes the one before it by that one's input.
template <typename OpT, typename FirstT>
struct CancelInverse final : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpT op,
                                PatternRewriter &rewriter) const override {
    auto first = op.getInput().template getDefiningOp<FirstT>();
    if (!first || !undoes(op, first))
      return failure();
    if (isa<CollectiveOpInterface>(*op))
      remarkRewrite(op, "CancelInverse",
                    (op->getName().stripDialect() + " of its inverse, " +
                     first->getName().stripDialect() + ", removed")
                        .str());
    rewriter.replaceOp(op, first.getInput());
    return success();
  }
};

/// A reduce_scatter and the all_gather of its blocks, with nothing in between,
/// become one all_reduce.
struct GatherOfScatter final : OpRewritePattern<AllGatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AllGatherOp op,
                                PatternRewriter &rewriter) const override {
    auto scatter = op.getInput().getDefiningOp<ReduceScatterOp>();
    if (!scatter || !scatter->hasOneUse() ||
        scatter->getBlock() != op->getBlock() ||
        scatter.getDim() != op.getDim() || scatter.getAxes() != op.getAxes())
      return failure();
    remarkRewrite(op, "AllReduce",
                  "reduce_scatter then all_gather is an all_reduce");
    auto reduce = createFor<AllReduceOp>({scatter, op}, rewriter, op.getLoc(),
                                         scatter.getInput(), scatter.getKind(),
                                         op.getMeshAttr(), op.getAxes());
    rewriter.replaceOp(op, reduce);
    rewriter.eraseOp(scatter);
    return success();
  }
};

/// A permutation of a permutation becomes one; one that moves nothing is
/// dropped.
struct ComposePermutes final : OpRewritePattern<PermuteOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PermuteOp op,
                                PatternRewriter &rewriter) const override {
    if (isIdentityPermutation(op.getSource())) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    auto first = op.getInput().getDefiningOp<PermuteOp>();
    if (!first || !first->hasOneUse() || first.getAxes() != op.getAxes() ||
        first->getBlock() != op->getBlock())
      return failure();
    remarkRewrite(op, "ComposePermutes", "permute of a permute is one");
    auto source = applyPermutation(first.getSource(), op.getSource());
    auto both = createFor<PermuteOp>(
        {first, op}, rewriter, op.getLoc(), op.getType(), first.getInput(),
        rewriter.getDenseI64ArrayAttr(source), op.getMeshAttr(), op.getAxes());
    rewriter.replaceOp(op, both);
    rewriter.eraseOp(first);
    return success();
  }
};

} // namespace

void collectives::populateSimplifyPatterns(RewritePatternSet &patterns) {
  patterns.add<ScatterSlicedReduction, SwapSlicedGather, GatherOfScatter,
               ComposePermutes, CancelInverse<LocalSliceOp, AllGatherOp>,
               CancelInverse<AllGatherOp, LocalSliceOp>,
               CancelInverse<AllToAllOp, AllToAllOp>,
               CancelInverse<ExchangeOp, ExchangeOp>>(patterns.getContext());
}
