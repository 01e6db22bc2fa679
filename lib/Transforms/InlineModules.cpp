//===- InlineModules.cpp - Removal of module regions ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/Fsdp.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::tp {
#define GEN_PASS_DEF_INLINEMODULES
#include "tp/Transforms/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

/// The modules in `module` have been inlined.
static void moveBody(ModuleOpInterface module) {
  StringAttr fqn = module.getFqnAttr();
  Block *body = module.getBodyBlock();
  for (Operation &op : body->without_terminator())
    if (!op.hasAttr(kFqnAttr) && !isa<RedistributeOp>(op))
      op.setAttr(kFqnAttr, fqn);
  for (auto [argument, input] :
       llvm::zip(body->getArguments(), module.getInputs()))
    argument.replaceAllUsesWith(input);
  module->replaceAllUsesWith(body->getTerminator()->getOperands());
  module->getBlock()->getOperations().splice(
      module->getIterator(), body->getOperations(), body->begin(),
      std::prev(body->end()));
  module.erase();
}

/// Replaces gathers of `parameter` by the first one to the same placement.
static void shareGathers(ParameterOpInterface parameter) {
  DenseMap<Attribute, RedistributeOp> gathered;
  SmallVector<RedistributeOp> all;
  for (Operation *user : parameter->getUsers())
    if (auto gather = dyn_cast<RedistributeOp>(user);
        gather && gather->getBlock() == parameter->getBlock())
      all.push_back(gather);
  llvm::sort(all, [](RedistributeOp a, RedistributeOp b) {
    return a->isBeforeInBlock(b);
  });
  for (RedistributeOp gather : all) {
    RedistributeOp &first = gathered[gather.getSharding()];
    if (!first) {
      first = gather;
      continue;
    }
    gather.replaceAllUsesWith(first.getResult());
    gather.erase();
  }
}

void tp::shareParameters(Block &block, bool onlyFsdp) {
  llvm::MapVector<StringAttr, ParameterOpInterface> first;
  for (auto parameter :
       llvm::make_early_inc_range(block.getOps<ParameterOpInterface>())) {
    if (onlyFsdp && !parameter->hasAttr(kFsdpGroupAttr))
      continue;
    ParameterOpInterface &known = first[parameter.getFqnAttr()];
    if (!known) {
      known = parameter;
      continue;
    }
    parameter.getResult().replaceAllUsesWith(known.getResult());
    parameter.erase();
  }
  for (auto &[fqn, parameter] : first)
    if (parameter->hasAttr(kFsdpGroupAttr))
      shareGathers(parameter);
}

void tp::inlineModule(ModuleOpInterface module) {
  // Post-order: the innermost module names its ops first.
  module->walk<WalkOrder::PostOrder>(
      [](ModuleOpInterface inner) { moveBody(inner); });
}

void tp::inlineModules(Operation *root) {
  assert(!isa<ModuleOpInterface>(root) && "the root would be erased");
  root->walk<WalkOrder::PostOrder>(
      [](ModuleOpInterface module) { moveBody(module); });
  root->walk([](FunctionOpInterface function) {
    if (!function.isExternal())
      shareParameters(function.getFunctionBody().front(), /*onlyFsdp=*/true);
  });
}

namespace {
struct InlineModules : tp::impl::InlineModulesBase<InlineModules> {
  void runOnOperation() override { inlineModules(getOperation()); }
};
} // namespace
