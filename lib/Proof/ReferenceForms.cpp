//===- ReferenceForms.cpp - A model written in other ways -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramForms.h"
#include "mlir/Pass/PassManager.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Training/Passes.h"
#include "tp/Transforms/ExpertDispatch.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::tp;

static bool hasLoss(ModuleOp model) {
  return llvm::any_of(model.getOps<func::FuncOp>(), [](func::FuncOp function) {
    return llvm::any_of(llvm::seq(function.getNumResults()), [&](unsigned i) {
      return function.getResultAttr(i, kLossAttr) != nullptr;
    });
  });
}

/// A copy of `model` with the loss that the training file `train` asks for. Null
/// if the file has errors.
static OwningOpRef<ModuleOp> cloneWithLoss(ModuleOp model, StringRef train) {
  OwningOpRef<ModuleOp> copy(model.clone());
  if (!train.empty() && !hasLoss(*copy)) {
    PassManager pm(model.getContext());
    pm.addPass(createAddLoss({train.str()}));
    if (failed(pm.run(*copy)))
      return {};
  }
  return copy;
}

std::vector<OwningOpRef<ModuleOp>> tp::setContextMethods(ModuleOp model,
                                                         StringRef train) {
  std::vector<OwningOpRef<ModuleOp>> forms;
  for (ContextMethod method : {ContextMethod::Cheapest, ContextMethod::Ring}) {
    OwningOpRef<ModuleOp> form = cloneWithLoss(model, train);
    if (!form)
      continue;
    bool changed = false;
    form->walk([&](AttentionOpInterface op) {
      bool mayBeRing = op.getNumRows() == op.getNumColumns();
      op.setContextMethod(mayBeRing ? method : ContextMethod::Cheapest);
      changed |= mayBeRing || method == ContextMethod::Cheapest;
    });
    keepTokenDims(*form);
    if (changed)
      forms.push_back(std::move(form));
  }
  return forms;
}

std::vector<OwningOpRef<ModuleOp>>
tp::divideExperts(ModuleOp model, MeshOp mesh, StringRef train) {
  std::vector<OwningOpRef<ModuleOp>> forms;
  bool hasExperts =
      model.walk([](nn::GroupedMatmulOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
  if (!hasExperts)
    return forms;
  // Experts that can't be divided aren't an error of the programs.
  ScopedDiagnosticHandler silence(model.getContext(),
                                  [](Diagnostic &) { return success(); });
  llvm::SmallSetVector<int64_t, 4> sizes(llvm::from_range, mesh.getAxisSizes());
  for (int64_t numParts : sizes) {
    OwningOpRef<ModuleOp> form = cloneWithLoss(model, train);
    if (form && succeeded(dispatchExperts(*form, numParts)))
      forms.push_back(std::move(form));
  }
  return forms;
}

OwningOpRef<ModuleOp> tp::markSplitLosses(ModuleOp model, StringRef train) {
  OwningOpRef<ModuleOp> marked = cloneWithLoss(model, train);
  if (!marked)
    return {};
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
