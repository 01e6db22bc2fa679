//===- ReferenceForms.cpp - A model written in other ways -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramForms.h"
#include "mlir/Pass/PassManager.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Training/Passes.h"

using namespace mlir;
using namespace mlir::tp;

static bool hasLoss(ModuleOp model) {
  return llvm::any_of(model.getOps<func::FuncOp>(), [](func::FuncOp function) {
    return llvm::any_of(llvm::seq(function.getNumResults()), [&](unsigned i) {
      return function.getResultAttr(i, kLossAttr) != nullptr;
    });
  });
}

OwningOpRef<ModuleOp> tp::markSplitLosses(ModuleOp model, StringRef train) {
  OwningOpRef<ModuleOp> marked(model.clone());
  if (!train.empty() && !hasLoss(*marked)) {
    PassManager pm(model.getContext());
    pm.addPass(createAddLoss({train.str()}));
    if (failed(pm.run(*marked)))
      return {};
  }
  bool changed = false;
  marked->walk([&](nn::CrossEntropyOp loss) {
    // With label smoothing, a target isn't a single class.
    if (loss.getLossParallel() || !loss.getLabelSmoothing().isZero())
      return;
    loss.setLossParallel(true);
    changed = true;
  });
  return changed ? std::move(marked) : OwningOpRef<ModuleOp>();
}
