//===- Plan.h - a plan, checked against a model -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_PLAN_PLAN_H
#define TP_PLAN_PLAN_H

#include "mlir/IR/BuiltinOps.h"
#include "tp/Plan/Finding.h"
#include "tp/Plan/PlanFile.h"
#include "tp/Plan/Style.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::tp::plan {

/// What happens at the boundary of one call of a module, by one entry.
struct ModuleLayouts {
  nn::ModuleOp module;
  /// Of `module`, for when it is inlined.
  StringAttr fqn;
  /// Index into CheckedPlan::groups.
  unsigned group;
  const PlanEntry *entry;
  /// One list of steps per tensor input, and per output.
  BoundarySteps inputs, outputs;
  /// As ModuleRequests has it.
  std::optional<std::string> python;
};

/// A placement that a parameter has over some mesh dimensions.
struct ParameterLayout {
  AxisPlacement over;
  const PlanEntry *entry;
  FileLineColLoc loc;
};

/// A cross entropy whose logits come split along their classes.
struct LossLayout {
  nn::CrossEntropyOp op;
  unsigned group;
  LayoutStep logits;
};

/// A plan that the model can be parallelized by: every pattern matched, every
/// placement fits the shape of its tensor.
struct CheckedPlan {
  /// What the file says; `entry`s point into it.
  PlanFile file;
  /// The mesh dimensions of each of the file's groups.
  std::vector<MeshGroup> groups;
  /// By FQN; tied parameters come once.
  llvm::MapVector<StringAttr, std::vector<ParameterLayout>> parameters;
  std::vector<ModuleLayouts> modules;
  std::vector<LossLayout> losses;
  /// The dimension that is the batch, of the inputs that have it; none without
  /// data parallelism.
  llvm::DenseMap<Value, int64_t> batchDims;
  /// Of each parameter that fsdp may split: the FQN of the module with whose
  /// parameters it is gathered, and reduced; empty for the root. Where a model
  /// has no blocks, the FQN of its bucket's first parameter.
  llvm::DenseMap<StringAttr, StringAttr> fsdpGroups;
  /// What can be said before the placements of values are known.
  std::vector<Finding> findings;

  /// The placements of the parameter `fqn`, over different mesh dimensions.
  SmallVector<AxisPlacement> getPlacements(StringAttr fqn) const;
  /// Whether `group` is about all dimensions of the mesh.
  bool coversMesh(unsigned group) const {
    return groups[group].axes.size() == file.mesh.size();
  }
};

/// Reads the plan at `path` and checks it against the model that `model` holds.
/// Emits an error at the plan's line and column for each problem, and fails
/// when there was any.
FailureOr<CheckedPlan> loadPlan(StringRef path, ModuleOp model);

/// The second half of loadPlan: checks `plan.file`.
LogicalResult checkPlan(ModuleOp model, CheckedPlan &plan);

} // namespace mlir::tp::plan

#endif // TP_PLAN_PLAN_H
