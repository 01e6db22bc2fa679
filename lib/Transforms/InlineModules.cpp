//===- InlineModules.cpp - Flatten the module tree ------------------------===//

#include "tp/Dialect/NN/NN.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"

namespace mlir::tp {
#define GEN_PASS_DEF_INLINEMODULES
#include "tp/Transforms/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

static void inlineModule(nn::ModuleOp module) {
  StringAttr fqn = module.getFqnAttr();
  Block *body = module.getBodyBlock();
  for (Operation &op : body->without_terminator())
    if (!op.hasAttr(kFqnAttr) && !isa<RedistributeOp>(op))
      op.setAttr(kFqnAttr, fqn);
  for (auto [argument, input] :
       llvm::zip(body->getArguments(), module.getInputs()))
    argument.replaceAllUsesWith(input);
  module.replaceAllUsesWith(body->getTerminator()->getOperands());
  module->getBlock()->getOperations().splice(
      module->getIterator(), body->getOperations(), body->begin(),
      std::prev(body->end()));
  module.erase();
}

void tp::inlineModules(Operation *root) {
  // Post-order: the innermost module names its ops first.
  root->walk<WalkOrder::PostOrder>(
      [](nn::ModuleOp module) { inlineModule(module); });
}

void tp::removeStopGradients(Operation *root) {
  root->walk([](nn::StopGradientOp op) {
    op.replaceAllUsesWith(op.getInput());
    op.erase();
  });
}

namespace {
struct InlineModules : tp::impl::InlineModulesBase<InlineModules> {
  void runOnOperation() override { inlineModules(getOperation()); }
};
} // namespace
