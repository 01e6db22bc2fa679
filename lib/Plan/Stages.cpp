//===- Stages.cpp - The stages of a plan's pipeline -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Stages.h"
#include "BalanceStages.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

bool plan::isOnEveryPath(Operation *module) {
  Operation *parent = module->getParentOp();
  while (isa<ModuleOpInterface>(parent))
    parent = parent->getParentOp();
  auto function = dyn_cast<FunctionOpInterface>(parent);
  return function && function.isPublic() &&
         function.getFunctionBody().hasOneBlock();
}

LogicalResult plan::findStages(ModuleOp model, const ModuleCalls &modules,
                               const ModuleTree &tree, CheckedPlan &plan) {
  if (!plan.file.pipeline)
    return success();
  const PipelineAxis &pipeline = *plan.file.pipeline;
  if (pipeline.isAuto)
    return balanceStages(model, modules, plan);
  llvm::DenseMap<Operation *, int64_t> places;
  model.walk<WalkOrder::PreOrder>(
      [&](ModuleOpInterface module) { places[module] = places.size(); });
  bool valid = true;
  auto fail = [&](const ModulePattern &begin, const Twine &message) {
    valid = false;
    return emitError(begin.loc) << message;
  };
  const ModulePattern *previous = nullptr;
  for (const ModulePattern &begin : pipeline.split) {
    const auto *found =
        modules.find(StringAttr::get(model.getContext(), begin.text));
    if (found == modules.end() || begin.text.empty()) {
      fail(begin, "no stage can begin at '" + begin.text + "': " +
                      tree.explainMismatch(begin.text, MatchMode::Fnmatch));
      continue;
    }
    ModuleOpInterface module = found->second.front();
    if (!isOnEveryPath(module)) {
      fail(begin, "no stage can begin at '" + begin.text +
                      "': it isn't on every path through the model")
              .attachNote(module.getLoc())
          << "it is in a branch, a loop or another function than the entry "
             "point";
    } else if (previous && places[plan.stages.back()] >= places[module]) {
      fail(begin, "the model runs '" + begin.text + "' before '" +
                      previous->text +
                      "', so its stage can't come after that one; list the "
                      "modules in the order in which the model runs them")
              .attachNote(previous->loc)
          << "'" << previous->text << "' is here";
    } else {
      plan.stages.push_back(module);
      previous = &begin;
    }
  }
  return success(valid);
}
