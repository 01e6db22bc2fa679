//===- DeclaredLayouts.cpp - Wrong declarations of layouts ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch only sees one rank's tensor and trusts the layout that a style
// declares for it. A wrong declaration gives wrong numbers in PyTorch, and a
// hidden redistribution here.
//
//===----------------------------------------------------------------------===//

#include "PlacementFlow.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

namespace {

class DeclaredLayoutCheck final : public FlowCheck {
public:
  explicit DeclaredLayoutCheck(FlowContext &context) : context(context) {}

  void visitDeclared(Value value, const KnownLayout &known,
                     const LayoutStep &step, const Twine &tensor) override {
    if (known.sharding ==
            context.getSharding(step.placement, value.getType()) ||
        context.getGroup().size == 1)
      return;
    Placement comes = *known.getPlacement();
    bool gathered = comes.isShard() && step.placement.isReplicate();
    Finding finding{gathered ? "hidden-gather" : "declared-layout", step.loc,
                    "", "", ""};
    finding.message = tensor.str() + " is declared " + step.placement.str() +
                      ", but comes as " + comes.str();
    if (known.origin)
      finding.message += " from " + known.origin->argument + " at " +
                         printPlace(known.origin->loc);
    int64_t bytes = getReceivedBytes(comes, step.placement, value.getType(),
                                     context.getGroup().size);
    finding.cost =
        (bytes ? "each rank receives " + printBytes(bytes) + " here"
               : std::string("nothing here")) +
        "; PyTorch trusts the declaration, so with local tensors its result "
        "differs";
    finding.edit = "declare " + comes.str();
    if (known.origin)
      finding.edit += ", or ask for " + step.placement.str() + " at " +
                      printPlace(known.origin->loc);
    context.add(std::move(finding));
  }

private:
  FlowContext &context;
};

} // namespace

std::unique_ptr<FlowCheck>
plan::createDeclaredLayoutCheck(FlowContext &context) {
  return std::make_unique<DeclaredLayoutCheck>(context);
}
