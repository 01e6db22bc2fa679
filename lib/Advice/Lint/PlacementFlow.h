//===- PlacementFlow.h - how placements flow through a model ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Follows what a plan says at module boundaries and of parameters through the
// ops in between, by their sharding rules, over the mesh dimensions of one of
// the plan's groups. Nothing is decided on the way: where placements don't fit
// together, or none is known, lint's checks are told, or nothing is said.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_ADVICE_LINT_PLACEMENTFLOW_H
#define TP_LIB_ADVICE_LINT_PLACEMENTFLOW_H

#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "tp/Plan/Plan.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::tp::plan {

/// A dimension, or a factor, and the number of blocks that it is split in.
struct SplitPart {
  unsigned index;
  int64_t ranks;

  bool operator==(const SplitPart &other) const = default;
};

/// Where a dimension that is split was taken apart such that the ranks split
/// more than its major part: more ranks than heads, of which there may be one.
struct TakenApart {
  OpOperand *operand;
  int64_t dim, majorSize;
  StringRef module;
};

/// What is known of where a value lives.
struct KnownLayout {
  /// Nothing where it isn't known, or where ranks split several dimensions.
  Layout placement;
  /// The layout step that it comes from, and the module that this is about;
  /// null when it comes from a parameter.
  const LayoutStep *origin = nullptr;
  nn::ModuleOp originModule = {};
  /// The dimensions that are split, major first, all of the ranks together;
  /// none where `placement` isn't a Shard in one piece.
  SmallVector<SplitPart, 1> parts = {};
  /// Only where ranks split several dimensions, or the columns of one head.
  std::optional<TakenApart> apart = {};

  /// Whether it is split in blocks.
  bool isSplit() const { return !parts.empty(); }
  /// "Shard(1)", "split along dimensions 1 and 2".
  std::string describe() const;
};

/// What is known of the operands of a cross entropy.
struct LossOperands {
  KnownLayout logits, target;
  /// The classes' dimension, of the tensor that `logits` is about: what the
  /// logits are flattened from, where it is known of that alone.
  int64_t classDim = 1;
};

/// One concern of lint. It is told what the flow meets, in the order of the
/// program, and adds findings.
class FlowCheck {
public:
  virtual ~FlowCheck();

  /// `value` comes as `known` to a place where `step` declares how it comes.
  /// `tensor` is what a message calls it.
  virtual void visitDeclared(Value value, const KnownLayout &known,
                             const LayoutStep &step, const Twine &tensor) {}
  /// `operand` is a Shard; its op is inside of `module`.
  virtual void visitShard(OpOperand &operand, const KnownLayout &known,
                          StringRef module) {}
  /// `operand` is split along `dim`, which its op needs whole.
  virtual void visitWhole(OpOperand &operand, const KnownLayout &known,
                          unsigned dim, StringRef module) {}
  /// A dimension is taken apart, and the ranks that split it can't split the
  /// parts, or do, which what comes next can't take. `known` is of the tensor
  /// that was taken apart, or of one that comes of it.
  virtual void visitTakenApart(const TakenApart &apart,
                               const KnownLayout &known) {}
  /// Two operands are split along dimensions that don't correspond; `operand`
  /// is the smaller one.
  virtual void visitConflict(OpOperand &operand, const KnownLayout &known,
                             StringRef module) {}
  /// The flow is at its end.
  virtual void finish() {}
};

/// What checks need to know of the group and where findings go.
struct FlowContext {
  CheckedPlan &plan;
  unsigned groupIndex;

  const MeshGroup &getGroup() const { return plan.groups[groupIndex]; }
  void add(Finding finding) { plan.findings.push_back(std::move(finding)); }
};

/// Follows the placements through all functions of `model`, telling `checks`.
/// Returns what is known of each cross entropy.
llvm::DenseMap<Operation *, LossOperands>
followPlacements(FlowContext &context, ModuleOp model,
                 ArrayRef<FlowCheck *> checks);

/// Bytes that a rank receives when a tensor of type `type` goes from one
/// placement to another along `ranks` ranks, with the usual collectives.
int64_t getReceivedBytes(const Placement &from, const Placement &to, Type type,
                         int64_t ranks);

/// "plan.yaml:4:3", of the place of `step`.
std::string printPlace(FileLineColLoc loc);

std::unique_ptr<FlowCheck> createDeclaredLayoutCheck(FlowContext &context);
std::unique_ptr<FlowCheck> createForcedGatherCheck(FlowContext &context);
std::unique_ptr<FlowCheck> createHeadCheck(FlowContext &context);
std::unique_ptr<FlowCheck> createPackedWeightCheck(FlowContext &context);

} // namespace mlir::tp::plan

#endif // TP_LIB_ADVICE_LINT_PLACEMENTFLOW_H
