//===- SplitBatch.cpp - A pipeline's microbatches -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TrainingStep.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Training/Passes.h"
#include "tp/Transforms/Utils.h"

namespace mlir::tp {
#define GEN_PASS_DEF_SPLITBATCH
#include "tp/Training/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {
struct SplitBatch : tp::impl::SplitBatchBase<SplitBatch> {
  void runOnOperation() override {
    PipelineOp pipeline = getPipeline(getOperation());
    if (!pipeline)
      return;
    FailureOr<func::FuncOp> function = findEntryPoint(getOperation());
    if (failed(function))
      return signalPassFailure();
    inlineModules(*function);
    if (failed(splitBatch(*function, pipeline.getMicrobatches())))
      signalPassFailure();
  }
};
} // namespace
