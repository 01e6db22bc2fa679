//===- OptimizeCollectives.cpp - Fewer and cheaper collectives ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of the rewrites: hoisting comes first, because it makes more
// collectives equal. Collectives that are equal or undo each other go before
// anything is merged. Splitting around reductions makes gathers that others may
// share. Bucketing joins what is left. Memory is bounded last, when it is known
// which values are kept.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"

namespace mlir::tp {
#define GEN_PASS_DEF_OPTIMIZECOLLECTIVES
#include "tp/Transforms/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::collectives;

namespace {

struct OptimizeCollectives
    : tp::impl::OptimizeCollectivesBase<OptimizeCollectives> {
  using OptimizeCollectivesBase::OptimizeCollectivesBase;

  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    populateSimplifyPatterns(set);
    patterns = FrozenRewritePatternSet(std::move(set));
    return success();
  }

  void runOnOperation() override {
    auto found = getPrograms(getOperation());
    if (failed(found))
      return signalPassFailure();
    functions = std::move(*found);
    for (ArrayRef<func::FuncOp> programs : functions)
      for (func::FuncOp program : programs)
        if (!program.getBody().hasOneBlock()) {
          program.emitError("only functions of one block are supported");
          return signalPassFailure();
        }
    if (failed(optimize()))
      signalPassFailure();
  }

  LogicalResult optimize() {
    FailureOr<MeshOp> mesh = getMesh(getOperation());
    if (failed(mesh))
      return failure();
    if (!*mesh)
      return success(); // nothing here is parallel
    auto share = [&](func::FuncOp program) {
      numShared += eliminateCommonCollectives(program);
      return success();
    };
    auto simplify = [&](func::FuncOp program) {
      (void)share(program);
      // Constants that happen to be equal stay apart.
      GreedyRewriteConfig config;
      config.enableFolding(false)
          .enableConstantCSE(false)
          .setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
      SmallVector<Operation *> ops;
      program.walk([&](Operation *op) {
        if (isa<CollectiveOpInterface, LocalSliceOp>(op))
          ops.push_back(op);
      });
      config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
      bool changed = false;
      if (failed(applyOpPatternsGreedily(ops, patterns, config, &changed)))
        return failure();
      return changed ? share(program) : success();
    };
    if (failed(forEach([&](func::FuncOp program) {
          numHoisted += hoistFromLoops(program);
          return success();
        })) ||
        failed(forEach(simplify)))
      return failure();
    eraseUnusedEverywhere();
    // Whether a rewrite since then may have left ops without a use.
    bool changed = false;
    auto count = [&](auto &statistic, unsigned number) {
      statistic += number;
      changed |= number != 0;
      return success();
    };

    Uniformity beforeMerging(getOperation(), *mesh);
    if (failed(forEach([&](func::FuncOp program) {
          return count(numMerged, mergeReductions(program, beforeMerging));
        })))
      return failure();
    if (sequenceParallel) {
      Uniformity beforeSplitting(getOperation(), *mesh);
      if (failed(forEach([&](func::FuncOp program) -> LogicalResult {
            FailureOr<unsigned> numOwn =
                applySequenceParallelism(program, beforeSplitting);
            if (succeeded(numOwn))
              (void)count(numSplit, *numOwn);
            return numOwn;
          })) ||
          failed(forEach(simplify)))
        return failure();
    }
    if (fsdpGroups && (failed(forEach([&](func::FuncOp program) {
                         return count(numJoined, joinGathers(program));
                       })) ||
                       failed(forEach([&](func::FuncOp program) {
                         return count(numJoined, joinGradients(program));
                       }))))
      return failure();
    if (bucketBytes > 0 && failed(forEach([&](func::FuncOp program) {
          return count(numJoined, bucket(program, bucketBytes, bucketGathers));
        })))
      return failure();
    if (memoryLimit > 0 && failed(forEach([&](func::FuncOp program) {
          return count(numRematerialized, rematerialize(program, getLimit()));
        })))
      return failure();
    if (memoryLimit > 0)
      warnAboutMemory();
    if (changed || sequenceParallel)
      eraseUnusedEverywhere();
    return success();
  }

  int64_t getLimit() { return std::min<uint64_t>(memoryLimit, INT64_MAX); }

  /// Warns if the limit isn't reached although no gather is left to issue
  /// again.
  void warnAboutMemory() {
    MemoryPeak largest;
    for (ArrayRef<func::FuncOp> programs : functions)
      for (func::FuncOp program : programs)
        if (MemoryPeak peak = getMemoryPeak(program);
            peak.bytes > largest.bytes)
          largest = peak;
    if (largest.bytes > getLimit())
      emitWarning(largest.op->getLoc())
          << "memory-limit=" << getLimit()
          << " isn't reached: " << largest.bytes
          << " bytes of values are alive at once here, and issuing a gather "
             "again lowers that no further";
  }

  LogicalResult forEach(function_ref<LogicalResult(func::FuncOp)> rewrite) {
    for (ArrayRef<func::FuncOp> programs : functions)
      if (failed(rewriteInStep(programs, rewrite)))
        return failure();
    return success();
  }

  void eraseUnusedEverywhere() {
    for (ArrayRef<func::FuncOp> programs : functions)
      numUnused += eraseUnused(programs);
  }

  FrozenRewritePatternSet patterns;
  SmallVector<SmallVector<func::FuncOp>> functions;
};

} // namespace
