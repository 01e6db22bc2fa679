//===- Lint.cpp - what may be wrong with a plan ---------------------------===//

#include "tp/Plan/Lint.h"
#include "Flow.h"
#include "Lint.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

/// PyTorch's loss_parallel refuses logits that come split along anything else
/// than their classes, and so do we: what was meant is unclear.
static LogicalResult
checkLosses(const FlowContext &context,
            const llvm::DenseMap<Operation *, KnownLayout> &logits) {
  bool valid = true;
  for (const LossLayout &loss : context.plan.losses) {
    KnownLayout known = logits.lookup(loss.op);
    if (loss.group != context.groupIndex || !known.placement ||
        known.placement->isReplicate() ||
        *known.placement == loss.logits.placement)
      continue;
    valid = false;
    InFlightDiagnostic error =
        emitError(loss.logits.loc)
        << "loss_parallel needs logits split along their classes, "
        << loss.logits.placement.str() << ", but they come as "
        << known.placement->str();
    if (known.origin)
      error.attachNote(known.origin->loc)
          << "by " << known.origin->argument << " here";
  }
  return success(valid);
}

LogicalResult plan::lintPlan(CheckedPlan &plan, ModuleOp model) {
  bool valid = true;
  checkReplicatedParameters(plan, model);
  for (unsigned group = 0; group < plan.groups.size(); ++group) {
    FlowContext context{plan, group};
    std::unique_ptr<FlowCheck> checks[] = {
        createDeclaredLayoutCheck(context), createForcedGatherCheck(context),
        createHeadCheck(context), createPackedWeightCheck(context)};
    SmallVector<FlowCheck *> pointers;
    for (std::unique_ptr<FlowCheck> &check : checks)
      pointers.push_back(check.get());
    valid &= succeeded(
        checkLosses(context, followPlacements(context, model, pointers)));
  }
  return success(valid);
}
