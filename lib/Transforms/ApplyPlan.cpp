//===- ApplyPlan.cpp - Application of a plan to a model -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PlanWriter.h"
#include "tp/Advice/Lint/Lint.h"
#include "tp/Transforms/Passes.h"

namespace mlir::tp {
#define GEN_PASS_DEF_APPLYPLAN
#include "tp/Transforms/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

class ApplyPlanPass final : public tp::impl::ApplyPlanBase<ApplyPlanPass> {
public:
  using ApplyPlanBase::ApplyPlanBase;

  void runOnOperation() override {
    ModuleOp model = getOperation();
    if (planPath.empty()) {
      emitError(model.getLoc(), "tp-apply-plan needs the option plan=FILE");
      return signalPassFailure();
    }
    for (auto mesh : model.getOps<MeshOp>()) {
      InFlightDiagnostic error =
          emitError(model.getLoc(), "the model has been given a plan before");
      error.attachNote(mesh.getLoc()) << "its mesh is declared here";
      return signalPassFailure();
    }
    FailureOr<plan::CheckedPlan> checked = plan::loadPlan(planPath, model);
    if (failed(checked) || failed(plan::lintPlan(*checked, model)) ||
        failed(plan::emitFindings(checked->findings, strict)))
      return signalPassFailure();
    FailureOr<WrittenPlan> written = writePlan(*checked, model);
    if (failed(written))
      return signalPassFailure();
    numParameters += written->parameters;
    numRedistributions += written->redistributions;
  }
};

} // namespace
