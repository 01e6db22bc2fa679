//===- PlanCost.h - The predicted cost of a plan ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PLANNING_PLANCOST_H
#define TP_LIB_PLANNING_PLANCOST_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "tp/Plan/Plan.h"
#include "llvm/Support/JSON.h"
#include <string>

namespace mlir::tp::planning {

struct PlanCost {
  unsigned findings = 0;     ///< of lint
  double seconds = 0;        ///< of the slowest rank
  int64_t memoryBytes = 0;   ///< of the rank that needs most
  int64_t receivedBytes = 0; ///< in collectives, by all ranks together
  int64_t collectives = 0;   ///< that each rank issues
  /// What takes most of the memory: "the parameter 'w', of 64 bytes".
  std::string largest;
};

/// A training file, as it is or with further keys.
struct TrainingText {
  std::string path; ///< empty: no training
  std::string text;
};

/// The members of a JSON report that have the predicted cost.
llvm::json::Object toJSON(const PlanCost &cost);

/// A copy of a model, and a plan for it that isn't applied yet.
struct PlannedModel {
  OwningOpRef<ModuleOp> program;
  plan::CheckedPlan plan;
};

/// Fails, with an error at its mesh, if `model` has been given a plan before.
LogicalResult checkHasNoPlan(ModuleOp model);

/// Copies `model`, with the loss of the training file `train` unless that is
/// empty, and checks `file` against it, by lint, too. Fails, with errors, if the
/// plan doesn't fit.
FailureOr<PlannedModel> checkPlanFor(ModuleOp model, plan::PlanFile file,
                                     StringRef train);

/// Compiles the program as `tp-parallelize` does, and predicts a run on
/// `machine`. Fails, with errors, if it can't be compiled.
FailureOr<PlanCost> predictPlan(PlannedModel planned, StringRef train,
                                StringRef machine);

/// Does both for the text `plan`. Fails, with errors, if it isn't a plan either.
FailureOr<PlanCost> predictPlan(ModuleOp model, StringRef plan,
                                const TrainingText &train, StringRef machine);

} // namespace mlir::tp::planning

#endif // TP_LIB_PLANNING_PLANCOST_H
