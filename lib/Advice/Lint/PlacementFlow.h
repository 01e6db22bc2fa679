//===- PlacementFlow.h - Flow of placements through a model -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Follows the placements that a plan gives module boundaries and parameters
// through the ops in between, by their sharding rules, over the mesh dimensions
// of one of the plan's groups. The flow decides nothing itself. It tells lint's
// checks where placements don't fit together, and stops where none is known.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_ADVICE_LINT_PLACEMENTFLOW_H
#define TP_LIB_ADVICE_LINT_PLACEMENTFLOW_H

#include "mlir/IR/OwningOpRef.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "tp/Plan/Plan.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::tp::plan {

/// A reshape that divides a split dimension such that the ranks split more than
/// its major part, because there are more ranks than heads. There may be one
/// head only.
struct TakenApart {
  OpOperand *operand;
  int64_t dim, majorSize;
  StringRef module;
};

/// What is known about a value's placement.
struct KnownLayout {
  /// Over FlowContext::mesh; null if it isn't known.
  ShardingAttr sharding;
  /// The layout step that it comes from, and the module of that step; null if
  /// it comes from a parameter.
  const LayoutStep *origin = nullptr;
  ModuleOpInterface originModule = {};
  /// The tensor that the step places.
  RankedTensorType originType = {};
  /// Only set if ranks split several dimensions, or the columns of one head.
  std::optional<TakenApart> apart = {};

  /// As a plan writes it; nullopt if it isn't known, or if ranks split several
  /// dimensions.
  Layout getPlacement() const;
  /// The dimensions that are split.
  SmallVector<unsigned, 1> getSplitDims() const;
  /// "Shard(1)", "split along dimensions 1 and 2".
  std::string describe() const;
};

/// What is known about the operands of a cross entropy.
struct LossOperands {
  KnownLayout logits, target;
  /// The dimension of the classes in the tensor that `logits` describes. This
  /// is the tensor that the logits are flattened from, unless the flattened
  /// ones are a plain Shard, Replicate or Partial.
  int64_t classDim = 1;
};

/// One check of lint. The flow calls it in program order, and it adds findings.
class FlowCheck {
public:
  virtual ~FlowCheck();

  /// `value` has the placement `known` where `step` declares a placement of it.
  /// `tensor` is its name in messages.
  virtual void visitDeclared(Value value, const KnownLayout &known,
                             const LayoutStep &step, const Twine &tensor) {}
  /// `operand` is a Shard; its op is inside `module`.
  virtual void visitShard(OpOperand &operand, const KnownLayout &known,
                          StringRef module) {}
  /// `operand` is split along `dim`, which its op needs whole.
  virtual void visitWhole(OpOperand &operand, const KnownLayout &known,
                          unsigned dim, StringRef module) {}
  /// A split dimension is divided by a reshape, and the ranks either can't
  /// split its parts, or do and a later op can't take that split. `known` is
  /// the layout of the reshaped tensor or of one derived from it.
  virtual void visitTakenApart(const TakenApart &apart,
                               const KnownLayout &known) {}
  /// Two operands are split along dimensions that don't correspond; `operand`
  /// is the smaller one.
  virtual void visitConflict(OpOperand &operand, const KnownLayout &known,
                             StringRef module) {}
  /// Called at the end of the flow.
  virtual void finish() {}
};

/// What checks need: the plan, which also takes findings, and the group.
struct FlowContext {
  FlowContext(CheckedPlan &plan, unsigned groupIndex, MLIRContext *context);

  const MeshGroup &getGroup() const { return plan.groups[groupIndex]; }
  void add(Finding finding) { plan.findings.push_back(std::move(finding)); }
  /// `placement` of a tensor of type `type` over `mesh`.
  ShardingAttr getSharding(const Placement &placement, Type type) const;

  CheckedPlan &plan;
  unsigned groupIndex;
  /// Has the mesh dimensions of the group as one; not part of the program.
  OwningOpRef<MeshOp> mesh;
};

/// Follows the placements through all functions of `model`, and calls `checks`.
/// Returns what is known about each cross entropy.
llvm::DenseMap<Operation *, LossOperands>
followPlacements(FlowContext &context, ModuleOp model,
                 ArrayRef<FlowCheck *> checks);

/// Bytes that a rank receives when a tensor of type `type` goes from one
/// placement to another along `ranks` ranks, with the usual collectives.
int64_t getReceivedBytes(const Placement &from, const Placement &to, Type type,
                         int64_t ranks);

/// The location as "plan.yaml:4:3".
std::string printPlace(FileLineColLoc loc);

std::unique_ptr<FlowCheck> createDeclaredLayoutCheck(FlowContext &context);
std::unique_ptr<FlowCheck> createForcedGatherCheck(FlowContext &context);
std::unique_ptr<FlowCheck> createHeadCheck(FlowContext &context);
std::unique_ptr<FlowCheck> createPackedWeightCheck(FlowContext &context);

} // namespace mlir::tp::plan

#endif // TP_LIB_ADVICE_LINT_PLACEMENTFLOW_H
