//===- ForcedGathers.cpp - Splits that the next op can't take -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PlacementFlow.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

namespace {

class ForcedGatherCheck final : public FlowCheck {
public:
  explicit ForcedGatherCheck(FlowContext &context) : context(context) {}

  void visitWhole(OpOperand &operand, const KnownLayout &known, unsigned dim,
                  StringRef module) override {
    // A slice along a split dimension is left to the check of packed weights.
    if (!isa<nn::SliceOp>(operand.getOwner()))
      add(operand, known, module,
          "needs all of dimension " + Twine(dim) + " of its operand, which is");
  }

  void visitConflict(OpOperand &operand, const KnownLayout &known,
                     StringRef module) override {
    add(operand, known, module,
        "has operands that are split differently; one of them is");
  }

private:
  void add(OpOperand &operand, const KnownLayout &known, StringRef module,
           const Twine &what) {
    if (!known.origin || context.getGroup().size == 1)
      return;
    Type type = operand.get().getType();
    int64_t bytes =
        getReceivedBytes(known.getPlacement().value_or(Placement::shard(0)),
                         Placement::replicate(), type, context.getGroup().size);
    context.add({"forced-gather", known.origin->loc,
                 ("'" + operand.getOwner()->getName().getStringRef() + "' in " +
                  describeModule(module) + " " + what + " " + known.describe() +
                  " because of " + known.origin->argument)
                     .str(),
                 "each rank receives up to " + printBytes(bytes),
                 isa<nn::CrossEntropyOp>(operand.getOwner())
                     ? "write loss_parallel: true in the plan"
                     : "ask for another output layout here, such as "
                       "Replicate, or don't split the modules in between"});
  }

  FlowContext &context;
};

} // namespace

std::unique_ptr<FlowCheck> plan::createForcedGatherCheck(FlowContext &context) {
  return std::make_unique<ForcedGatherCheck>(context);
}
