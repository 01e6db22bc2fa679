//===- Plan.h - A plan, checked against a model -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_PLAN_PLAN_H
#define TP_PLAN_PLAN_H

#include "mlir/IR/BuiltinOps.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Plan/Finding.h"
#include "tp/Plan/PlanFile.h"
#include "tp/Plan/Style.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::tp::plan {

/// The layouts that one entry asks for at the boundary of one call of a module.
struct ModuleLayouts {
  ModuleOpInterface module;
  /// The FQN of `module`, which outlives its inlining.
  StringAttr fqn;
  /// Index into CheckedPlan::groups.
  unsigned group;
  const PlanEntry *entry;
  /// One list of steps per tensor input, and per output.
  BoundarySteps inputs, outputs;
  /// As in ModuleRequests.
  std::optional<std::string> python;
};

/// A placement that a parameter has over some mesh dimensions.
struct ParameterLayout {
  AxisPlacement over;
  const PlanEntry *entry;
  FileLineColLoc loc;
};

/// A cross entropy whose logits are split along their classes.
struct LossLayout {
  nn::CrossEntropyOp op;
  unsigned group;
  LayoutStep logits;
};

/// The work of a stage of a pipeline, or of a part of it.
struct StageLoad {
  /// Predicted for the forward pass.
  double seconds = 0;
  /// Of parameters, on the rank that holds most.
  int64_t bytes = 0;
};

/// A plan that fits the model: every pattern is matched, and every placement
/// fits the shape of its tensor.
struct CheckedPlan {
  /// The file's contents; each `entry` points into it.
  PlanFile file;
  /// The mesh dimensions of each of the file's groups.
  std::vector<MeshGroup> groups;
  /// By FQN; tied parameters have one entry.
  llvm::MapVector<StringAttr, std::vector<ParameterLayout>> parameters;
  std::vector<ModuleLayouts> modules;
  std::vector<LossLayout> losses;
  /// The module that begins each stage of the pipeline after the first, in the
  /// order in which the model runs them.
  std::vector<ModuleOpInterface> stages;
  /// By stage; empty unless the file has `split: auto`.
  std::vector<StageLoad> stageLoads;
  /// The batch dimension of each input that has one; empty without data
  /// parallelism.
  llvm::DenseMap<Value, int64_t> batchDims;
  /// The sequence dimension of each input that has one; empty without context
  /// parallelism.
  llvm::DenseMap<Value, int64_t> sequenceDims;
  /// The FQNs of parameters that have the weights of all experts, along
  /// dimension 0; empty without expert parallelism.
  llvm::DenseSet<StringAttr> expertParameters;
  /// For each parameter that FSDP may split: the FQN of the module whose
  /// parameters are gathered and reduced together with it; empty for the root.
  /// In a model without blocks, the groups are buckets: the first one counts as
  /// the root's, and each further one has the FQN of its first parameter.
  llvm::DenseMap<StringAttr, StringAttr> fsdpGroups;
  /// The findings that don't depend on the placements of values.
  std::vector<Finding> findings;

  /// The placements of the parameter `fqn`, over different mesh dimensions.
  SmallVector<AxisPlacement> getPlacements(StringAttr fqn) const;
  /// The bytes of `parameter` on the rank that holds most.
  int64_t getBytesPerRank(ParameterOpInterface parameter) const;
  /// Whether `group` uses all dimensions of the mesh.
  bool coversMesh(unsigned group) const {
    return groups[group].axes.size() == file.mesh.size();
  }
};

/// Reads the plan at `path` and checks it against the model that `model` holds.
/// Emits an error at the plan's line and column for each problem, and fails if
/// there was one.
FailureOr<CheckedPlan> loadPlan(StringRef path, ModuleOp model);

/// The second half of loadPlan: checks `plan.file`.
LogicalResult checkPlan(ModuleOp model, CheckedPlan &plan);

} // namespace mlir::tp::plan

#endif // TP_PLAN_PLAN_H
