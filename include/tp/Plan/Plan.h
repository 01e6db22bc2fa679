//===- Plan.h - a plan, checked against a model -----------------*- C++ -*-===//

#ifndef TP_PLAN_PLAN_H
#define TP_PLAN_PLAN_H

#include "mlir/IR/BuiltinOps.h"
#include "tp/Plan/PlanFile.h"
#include "tp/Plan/Style.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::tp::plan {

/// What happens at the boundary of one call of a module.
struct ModuleLayouts {
  nn::ModuleOp module;
  /// One list of steps per tensor input, and per output.
  BoundarySteps inputs, outputs;
};

/// A plan that the model can be parallelized by: every pattern matched, every
/// placement fits the shape of its tensor.
struct CheckedPlan {
  std::vector<MeshAxis> mesh;
  /// The mesh dimension that all placements are about.
  std::string axis;
  /// By FQN; tied parameters come once.
  llvm::MapVector<StringAttr, Placement> parameters;
  std::vector<ModuleLayouts> modules;
};

/// Reads the plan at `path` and checks it against the model that `model` holds.
/// Emits an error at the plan's line and column for each problem, and fails
/// when there was any.
FailureOr<CheckedPlan> loadPlan(StringRef path, ModuleOp model);

/// The second half of loadPlan.
LogicalResult checkPlan(const PlanFile &file, ModuleOp model,
                        CheckedPlan &plan);

} // namespace mlir::tp::plan

#endif // TP_PLAN_PLAN_H
