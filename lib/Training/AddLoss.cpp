//===- AddLoss.cpp - Loss after a model -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TrainingStep.h"
#include "tp/Training/Passes.h"

namespace mlir::tp {
#define GEN_PASS_DEF_ADDLOSS
#include "tp/Training/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {
class AddLoss : public tp::impl::AddLossBase<AddLoss> {
public:
  using AddLossBase::AddLossBase;

private:
  void runOnOperation() override {
    if (train.empty()) {
      emitError(getOperation().getLoc(), "tp-add-loss needs the option "
                                         "train=FILE");
      return signalPassFailure();
    }
    FailureOr<TrainingConfig> config = readTrainingFile(train, &getContext());
    if (failed(config))
      return signalPassFailure();
    FailureOr<func::FuncOp> function = findEntryPoint(getOperation());
    if (failed(function) || failed(addLoss(*function, config->loss)))
      return signalPassFailure();
  }
};
} // namespace
