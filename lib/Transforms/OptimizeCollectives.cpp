//===- OptimizeCollectives.cpp - Fewer and cheaper collectives ------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"

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

/// What `op` does; who asked for it doesn't matter.
DictionaryAttr getWithoutProvenance(Operation *op) {
  NamedAttrList attrs(op->getAttrDictionary());
  for (StringRef name : {"fqn", "reason", "bytes", "tp.fqn"})
    attrs.erase(name);
  return attrs.getDictionary(op->getContext());
}

/// Whether two collectives compute the same from the same operand.
bool isSame(Operation *a, Operation *b) {
  return a->getName() == b->getName() && a->getOperands() == b->getOperands() &&
         a->getResultTypes() == b->getResultTypes() &&
         getWithoutProvenance(a) == getWithoutProvenance(b);
}

/// The collectives of a program, in order.
SmallVector<Operation *> getCollectives(func::FuncOp program) {
  return llvm::map_to_vector(
      program.getOps<CollectiveOpInterface>(),
      [](CollectiveOpInterface op) { return op.getOperation(); });
}

/// Whether two programs issue the same collectives. Shapes may differ.
bool isInStep(func::FuncOp a, func::FuncOp b) {
  return llvm::equal(
      getCollectives(a), getCollectives(b), [](Operation *x, Operation *y) {
        return x->getName() == y->getName() &&
               getWithoutProvenance(x) == getWithoutProvenance(y);
      });
}

struct OptimizeCollectives
    : tp::impl::OptimizeCollectivesBase<OptimizeCollectives> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ScatterSlicedReduction, SliceOfGather, GatherOfSlice>(
        &getContext());
    FrozenRewritePatternSet frozen(std::move(patterns));
    for (ArrayRef<func::FuncOp> programs : getPrograms(getOperation()))
      if (failed(optimize(programs, frozen)))
        return signalPassFailure();
  }

  /// `programs` are those of all ranks for one function. What is equal, or
  /// unused, in some of them needn't be in others: where a rank's blocks are
  /// empty, constants stand for what is computed elsewhere. All must issue the
  /// same collectives, so they change alike or not at all.
  LogicalResult optimize(ArrayRef<func::FuncOp> programs,
                         const FrozenRewritePatternSet &patterns) {
    SmallVector<OwningOpRef<func::FuncOp>> originals;
    for (func::FuncOp program : programs) {
      if (!program.getBody().hasOneBlock())
        return program.emitError("only functions of one block are supported");
      if (programs.size() > 1)
        originals.emplace_back(program.clone());
      if (failed(simplify(program, patterns)))
        return failure();
    }
    auto first = programs.front();
    if (!llvm::all_of(programs.drop_front(), [&](func::FuncOp program) {
          return isInStep(first, program);
        }))
      for (auto [program, original] : llvm::zip_equal(programs, originals))
        program->getRegion(0).takeBody(original->getBody());
    eraseUnused(programs);
    return success();
  }

  LogicalResult simplify(func::FuncOp program,
                         const FrozenRewritePatternSet &patterns) {
    Block &block = program.getBody().front();
    shareEqual(block);
    // Constants that happen to be equal stay apart.
    GreedyRewriteConfig config;
    config.enableFolding(false)
        .enableConstantCSE(false)
        .setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    if (failed(applyPatternsGreedily(program, patterns, config)))
      return failure();
    shareEqual(block);
    return success();
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

  /// Drops what no rank uses.
  void eraseUnused(ArrayRef<func::FuncOp> programs) {
    auto erasePure = [&]() {
      for (func::FuncOp program : programs)
        for (Operation &op : llvm::make_early_inc_range(
                 llvm::reverse(program.getBody().front())))
          if (isPure(&op) && op.use_empty() &&
              !op.hasTrait<OpTrait::IsTerminator>())
            op.erase();
    };
    erasePure();
    auto collectives = llvm::map_to_vector(programs, getCollectives);
    // A program that was wrong before stays so; tp-report says why.
    for (ArrayRef<Operation *> list : collectives)
      if (list.size() != collectives.front().size())
        return;
    for (size_t i = collectives.front().size(); i-- > 0;) {
      if (!llvm::all_of(collectives,
                        [&](const auto &list) { return list[i]->use_empty(); }))
        continue;
      ++numUnused;
      for (const auto &list : collectives)
        list[i]->erase();
      erasePure();
    }
  }
};

} // namespace
