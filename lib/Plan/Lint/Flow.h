//===- Flow.h - how a plan's placements flow through a model ----*- C++ -*-===//
//
// Follows what a plan says at module boundaries and of parameters through the
// ops in between, by their sharding rules, over the mesh dimensions of one of
// the plan's groups. Nothing is decided on the way: where placements don't fit
// together, or none is known, lint's checks are told, or nothing is said.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PLAN_LINT_FLOW_H
#define TP_LIB_PLAN_LINT_FLOW_H

#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "tp/Plan/Plan.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::tp::plan {

/// What is known of where a value lives.
struct KnownLayout {
  Layout placement;
  /// The layout step that it comes from, unless it comes from a parameter.
  const LayoutStep *origin = nullptr;

  /// Whether it is split along a dimension, in one piece.
  bool isSplit() const {
    return placement && placement->isShard() && !placement->isSegmented();
  }
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
  /// `operand` is split; its op is inside of `module`.
  virtual void visitSplit(OpOperand &operand, const KnownLayout &known,
                          StringRef module) {}
  /// `operand` is split along a dimension that its op needs whole.
  virtual void visitWhole(OpOperand &operand, const KnownLayout &known,
                          StringRef module) {}
  /// The op takes dimension `dim` of `operand` apart, and its major part, of
  /// size `majorSize`, isn't divided by the ranks that split the dimension.
  virtual void visitMajorPart(OpOperand &operand, const KnownLayout &known,
                              int64_t majorSize, StringRef module) {}
  /// Two operands are split along dimensions that don't correspond; `operand`
  /// is the smaller one.
  virtual void visitConflict(OpOperand &operand, const KnownLayout &known,
                             StringRef module) {}
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

#endif // TP_LIB_PLAN_LINT_FLOW_H
