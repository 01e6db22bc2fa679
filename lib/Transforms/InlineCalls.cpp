//===- InlineCalls.cpp - One program for each entry point -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "tp/Transforms/Passes.h"

namespace mlir::tp {
#define GEN_PASS_DEF_INLINECALLS
#include "tp/Transforms/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {
struct InlineCalls : tp::impl::InlineCallsBase<InlineCalls> {
  InlineCalls() : pipeline(ModuleOp::getOperationName()) {
    pipeline.addPass(createInlinerPass({}, [](OpPassManager &) {}));
    pipeline.addPass(createSymbolDCEPass());
  }

  void runOnOperation() override {
    // Both passes look at every op of the module, which usually is one
    // function.
    if (llvm::none_of(
            getOperation().getOps<FunctionOpInterface>(),
            [](FunctionOpInterface function) { return function.isPrivate(); }))
      return;
    if (failed(runPipeline(pipeline, getOperation())))
      signalPassFailure();
  }

  OpPassManager pipeline;
};
} // namespace
