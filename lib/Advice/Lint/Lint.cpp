//===- Lint.cpp - Likely mistakes in a plan -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Advice/Lint/Lint.h"
#include "PlacementFlow.h"
#include "Plan/ReplicatedParameters.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

/// Like PyTorch's loss_parallel, refuses logits that are split along anything
/// but their classes, because the intention is unclear. Over the other mesh
/// dimensions, the logits must not be Partial, and the target must have their
/// placement.
static LogicalResult
checkLosses(const FlowContext &context,
            const llvm::DenseMap<Operation *, LossOperands> &operands) {
  bool valid = true;
  for (const LossLayout &loss : context.plan.losses) {
    LossOperands known = operands.lookup(loss.op);
    auto check = [&](const KnownLayout &layout, bool isAllowed,
                     const Twine &need) {
      Layout placement = layout.getPlacement();
      if (!placement || isAllowed || !valid)
        return;
      valid = false;
      InFlightDiagnostic error = emitError(loss.logits.loc)
                                 << "loss_parallel needs " << need
                                 << placement->str();
      if (layout.origin)
        error.attachNote(layout.origin->loc)
            << "by " << layout.origin->argument << " here";
    };
    Layout logits = known.logits.getPlacement();
    Layout target = known.target.getPlacement();
    std::string over = " over '" + context.getGroup().name + "'";
    if (loss.group == context.groupIndex) {
      Placement split = Placement::shard(known.classDim);
      check(known.logits, logits && (logits->isReplicate() || *logits == split),
            "logits split along their classes, " + split.str() +
                ", but they come as ");
      check(known.target, target && target->isReplicate(),
            "a target that is replicated" + over + ", but it comes as ");
      continue;
    }
    check(known.logits, logits && !logits->isPartial(),
          "logits that are Shard or Replicate" + over + ", but they come as ");
    if (!logits || logits->isPartial() || logits->isSegmented())
      continue;
    Placement expected = *logits;
    if (expected.isShard() && expected.dim > known.classDim)
      --expected.dim;
    check(known.target, target == expected,
          "a target that is placed as the logits are" + over + ", " +
              expected.str() + ", but it comes as ");
  }
  return success(valid);
}

LogicalResult plan::lintPlan(CheckedPlan &plan, ModuleOp model) {
  bool valid = true;
  checkReplicatedParameters(plan, model);
  for (unsigned group = 0; group < plan.groups.size(); ++group) {
    FlowContext context(plan, group, model.getContext());
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
