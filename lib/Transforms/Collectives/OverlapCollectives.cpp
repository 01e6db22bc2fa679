//===- OverlapCollectives.cpp - Collectives beside computation ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Collectives.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"

namespace mlir::tp {
#define GEN_PASS_DEF_OVERLAPCOLLECTIVES
#define GEN_PASS_DEF_LOWERSTARTWAIT
#include "tp/Transforms/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::collectives;

namespace {

struct OverlapCollectives
    : tp::impl::OverlapCollectivesBase<OverlapCollectives> {
  using OverlapCollectivesBase::OverlapCollectivesBase;

  void runOnOperation() override {
    auto rewrite = [&](func::FuncOp program) -> LogicalResult {
      if (chunks > 1) {
        FailureOr<unsigned> count = chunkCollectives(program, chunks);
        if (failed(count))
          return failure();
        numDecomposed += *count;
      }
      numPrefetched += prefetchParameters(program);
      numStarted += startEarly(program);
      return success();
    };
    auto functions = getPrograms(getOperation());
    if (failed(functions))
      return signalPassFailure();
    for (ArrayRef<func::FuncOp> programs : *functions)
      if (failed(rewriteInStep(programs, rewrite)))
        return signalPassFailure();
  }
};

struct LowerStartWait : tp::impl::LowerStartWaitBase<LowerStartWait> {
  void runOnOperation() override {
    SmallVector<StartOp> starts;
    getOperation()->walk([&](StartOp start) { starts.push_back(start); });
    for (StartOp start : starts) {
      CollectiveOpInterface op = start.getCollective();
      auto wait = cast<WaitOp>(*start->user_begin());
      op->moveBefore(start);
      wait.getResult().replaceAllUsesWith(op->getResult(0));
      wait.erase();
      start.erase();
    }
  }
};

} // namespace
