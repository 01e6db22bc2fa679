//===- OptimizeCollectives.cpp - Fewer and cheaper collectives ------------===//

#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::tp {
#define GEN_PASS_DEF_OPTIMIZECOLLECTIVES
#include "tp/Transforms/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

void remarkRewrite(Operation *op, StringRef name, StringRef what) {
  remark::passed(op->getLoc(), remark::RemarkOpts::name(name).category(
                                   "tp-optimize-collectives"))
      << remark::add("{0}", what.str());
}

/// all_reduce, then this rank's slice of it, by all users: reduce_scatter.
struct ScatterSlicedReduction final : OpRewritePattern<AllReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AllReduceOp op,
                                PatternRewriter &rewriter) const override {
    LocalSliceOp first;
    for (Operation *user : op->getUsers()) {
      auto slice = dyn_cast<LocalSliceOp>(user);
      if (!slice || slice.getAxes() != op.getAxes() ||
          (first && (slice.getDim() != first.getDim())))
        return failure();
      first = slice;
    }
    if (!first)
      return failure();
    remarkRewrite(op, "ReduceScatter",
                  "all_reduce then local_slice is a reduce_scatter");
    auto scatter = ReduceScatterOp::create(
        rewriter, op.getLoc(), first.getType(), op.getInput(), op.getKind(),
        first.getDimAttr(), op.getMeshAttr(), op.getAxes(), op.getFqnAttr(),
        op.getReasonAttr(), IntegerAttr());
    setCollectiveBytes(scatter, lookupMesh(op, op.getMeshAttr()));
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      rewriter.replaceOp(user, scatter);
    rewriter.eraseOp(op);
    return success();
  }
};

/// The block that was gathered, sliced out again.
struct SliceOfGather final : OpRewritePattern<LocalSliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LocalSliceOp op,
                                PatternRewriter &rewriter) const override {
    auto gather = op.getInput().getDefiningOp<AllGatherOp>();
    if (!gather || gather.getDim() != op.getDim() ||
        gather.getAxes() != op.getAxes())
      return failure();
    rewriter.replaceOp(op, gather.getInput());
    return success();
  }
};

/// A whole that was sliced only to be put together again.
struct GatherOfSlice final : OpRewritePattern<AllGatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AllGatherOp op,
                                PatternRewriter &rewriter) const override {
    auto slice = op.getInput().getDefiningOp<LocalSliceOp>();
    if (!slice || slice.getDim() != op.getDim() ||
        slice.getAxes() != op.getAxes())
      return failure();
    remarkRewrite(op, "GatherOfSlice", "all_gather of a local_slice removed");
    rewriter.replaceOp(op, slice.getInput());
    return success();
  }
};

/// Whether two collectives compute the same from the same operand; who asked
/// for them doesn't matter.
bool isSame(Operation *a, Operation *b) {
  if (a->getName() != b->getName() || a->getOperands() != b->getOperands() ||
      a->getResultTypes() != b->getResultTypes())
    return false;
  auto withoutProvenance = [](Operation *op) {
    NamedAttrList attrs(op->getAttrDictionary());
    for (StringRef name : {"fqn", "reason", "bytes", "tp.fqn"})
      attrs.erase(name);
    return attrs.getDictionary(op->getContext());
  };
  return withoutProvenance(a) == withoutProvenance(b);
}

struct OptimizeCollectives
    : tp::impl::OptimizeCollectivesBase<OptimizeCollectives> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    if (!function.getBody().hasOneBlock()) {
      function.emitError("only functions of one block are supported");
      return signalPassFailure();
    }
    Block &block = function.getBody().front();
    RewritePatternSet patterns(&getContext());
    patterns.add<ScatterSlicedReduction, SliceOfGather, GatherOfSlice>(
        &getContext());
    FrozenRewritePatternSet frozen(std::move(patterns));
    shareEqual(block);
    if (failed(applyPatternsGreedily(function, frozen)))
      return signalPassFailure();
    shareEqual(block);
    eraseUnused(block);
  }

  /// Equal data movement on equal operands is done once.
  void shareEqual(Block &block) {
    DenseMap<Value, SmallVector<Operation *, 2>> byOperand;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!isa<CollectiveOpInterface, LocalSliceOp>(op))
        continue;
      auto &others = byOperand[op.getOperand(0)];
      auto it = llvm::find_if(
          others, [&](Operation *other) { return isSame(other, &op); });
      if (it == others.end()) {
        others.push_back(&op);
        continue;
      }
      if (isa<CollectiveOpInterface>(op)) {
        remarkRewrite(&op, "Shared", "shares an equal earlier collective");
        ++numShared;
      }
      op.replaceAllUsesWith(*it);
      op.erase();
    }
  }

  /// No rank needs what none of its programs uses: all of them drop it alike.
  void eraseUnused(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
      bool removable = isa<CollectiveOpInterface>(op) || isPure(&op);
      if (!removable || !op.use_empty() || op.hasTrait<OpTrait::IsTerminator>())
        continue;
      if (isa<CollectiveOpInterface>(op))
        ++numUnused;
      op.erase();
    }
  }
};

} // namespace
