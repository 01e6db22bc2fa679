//===- PrintPlan.cpp - Effect of a plan on a model ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Advice/Lint/Lint.h"
#include "tp/Advice/Passes.h"
#include "tp/Advice/Print/PlanPrinter.h"
#include "tp/Plan/Plan.h"

namespace mlir::tp {
#define GEN_PASS_DEF_PRINTPLAN
#include "tp/Advice/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

class PrintPlanPass final : public tp::impl::PrintPlanBase<PrintPlanPass> {
public:
  using PrintPlanBase::PrintPlanBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    ModuleOp model = getOperation();
    if (planPath.empty()) {
      emitError(model.getLoc(), "tp-print-plan needs the option plan=FILE");
      return signalPassFailure();
    }
    FailureOr<plan::CheckedPlan> checked = plan::loadPlan(planPath, model);
    if (failed(checked) || failed(plan::lintPlan(*checked, model)) ||
        failed(plan::emitFindings(checked->findings, strict)))
      return signalPassFailure();
    switch (format) {
    case PlanFormat::Text:
      return plan::printText(*checked, model, llvm::outs());
    case PlanFormat::Json:
      return plan::printJson(*checked, model, llvm::outs());
    case PlanFormat::Python:
      return plan::printPython(*checked, model, llvm::outs());
    }
  }
};

} // namespace
