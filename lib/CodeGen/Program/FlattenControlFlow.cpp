//===- FlattenControlFlow.cpp - Straight-line code ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "tp/CodeGen/Passes.h"
#include "tp/Dialect/TP/TP.h"

namespace mlir::tp {
#define GEN_PASS_DEF_FLATTENCONTROLFLOW
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

/// More iterations than these are taken for a mistake.
constexpr int64_t kMaxIterations = 4096;

class FlattenControlFlow
    : public tp::impl::FlattenControlFlowBase<FlattenControlFlow> {
  void runOnOperation() override {
    numIterations = 0;
    isFlattened = false;
    for (Block &block : getOperation().getBody())
      if (failed(flatten(block)))
        return signalPassFailure();
    if (!isFlattened)
      return;
    OpPassManager cleanUp(func::FuncOp::getOperationName());
    cleanUp.addPass(createCanonicalizerPass());
    cleanUp.addPass(createCSEPass());
    if (failed(runPipeline(cleanUp, getOperation())))
      signalPassFailure();
  }

  /// Flattens the loops and branches in `block`, innermost first.
  LogicalResult flatten(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto call = dyn_cast<CallOpInterface>(op)) {
        auto callee = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
        InFlightDiagnostic diagnostic = op.emitError("a call");
        if (callee)
          diagnostic << " of '" << callee << "'";
        return diagnostic
               << " can't be compiled: a program is one function, and "
                  "recursive, external and indirect calls can't be inlined";
      }
      if (!isa<scf::SCFDialect>(op.getDialect()) ||
          op.hasTrait<OpTrait::IsTerminator>())
        continue;
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          if (failed(flatten(inner)))
            return failure();
      isFlattened = true;
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        if (failed(unroll(loop)))
          return failure();
      } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
        if (failed(runBoth(branch)))
          return failure();
      } else {
        return op.emitError("'")
               << op.getName()
               << "' can't be compiled: a program is straight-line code, made "
                  "of 'scf.for' with constant bounds and of 'scf.if'";
      }
    }
    return success();
  }

  LogicalResult unroll(scf::ForOp loop) {
    std::optional<APInt> count = loop.getStaticTripCount();
    if (!count)
      return loop.emitError(
          "'scf.for' can't be compiled: a program is straight-line code, and "
          "how often the loop runs isn't known; its bounds must be constants");
    numIterations += count->getLimitedValue(kMaxIterations + 1);
    if (numIterations > kMaxIterations)
      return loop.emitError("'scf.for' can't be compiled: a program is "
                            "straight-line code, and unrolling it makes more "
                            "than ")
             << kMaxIterations << " iterations";
    return loopUnrollFull(loop);
  }

  LogicalResult runBoth(scf::IfOp branch) {
    for (Region &region : branch->getRegions())
      for (Operation &op : region.getOps())
        // Collectives may run in both branches, because all ranks run them.
        if (!isa<CollectiveOpInterface, StartOp, WaitOp>(op) && !isPure(&op)) {
          InFlightDiagnostic diagnostic =
              branch.emitError("'scf.if' can't be compiled: a program is "
                               "straight-line code, which runs both branches");
          diagnostic.attachNote(op.getLoc())
              << "'" << op.getName()
              << "' mustn't run where the condition doesn't hold";
          return diagnostic;
        }
    IRRewriter rewriter(branch);
    SmallVector<Value> values[2];
    for (auto [region, given] : llvm::zip(branch->getRegions(), values)) {
      if (region.empty())
        continue;
      Operation *yield = region.front().getTerminator();
      llvm::append_range(given, yield->getOperands());
      rewriter.eraseOp(yield);
      rewriter.inlineBlockBefore(&region.front(), branch);
    }
    SmallVector<Value> selected;
    for (auto [ifTrue, ifFalse] : llvm::zip_equal(values[0], values[1]))
      selected.push_back(arith::SelectOp::create(
          rewriter, branch.getLoc(), branch.getCondition(), ifTrue, ifFalse));
    rewriter.replaceOp(branch, selected);
    return success();
  }

  int64_t numIterations = 0;
  bool isFlattened = false;
};

} // namespace
