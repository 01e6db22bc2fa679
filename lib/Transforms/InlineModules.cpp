//===- InlineModules.cpp - Flatten the module tree ------------------------===//

#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/Fsdp.h"
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

/// Where modules share a parameter that FSDP splits, it is read, and gathered,
/// once for all of them.
static void shareParameters(Block &block) {
  DenseMap<StringAttr, nn::ParameterOp> first;
  DenseMap<std::pair<Value, Attribute>, RedistributeOp> gathered;
  for (auto parameter :
       llvm::make_early_inc_range(block.getOps<nn::ParameterOp>())) {
    if (!parameter->hasAttr(kFsdpGroupAttr))
      continue;
    nn::ParameterOp &known = first[parameter.getFqnAttr()];
    if (!known)
      known = parameter;
    for (Operation *user : llvm::make_early_inc_range(parameter->getUsers())) {
      auto gather = dyn_cast<RedistributeOp>(user);
      if (!gather || gather->getBlock() != &block)
        continue;
      RedistributeOp &other = gathered[{known, gather.getSharding()}];
      if (!other) {
        other = gather;
        continue;
      }
      gather.replaceAllUsesWith(other.getResult());
      gather.erase();
    }
    if (known == parameter)
      continue;
    parameter.replaceAllUsesWith(known.getResult());
    parameter.erase();
  }
}

void tp::inlineModules(Operation *root) {
  // Post-order: the innermost module names its ops first.
  root->walk<WalkOrder::PostOrder>(
      [](nn::ModuleOp module) { inlineModule(module); });
  root->walk([](FunctionOpInterface function) {
    if (!function.isExternal())
      shareParameters(function.getFunctionBody().front());
  });
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
