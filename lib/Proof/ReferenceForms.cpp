//===- ReferenceForms.cpp - A model written in other ways -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramForms.h"
#include "mlir/Pass/PassManager.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Training/Passes.h"
#include "tp/Transforms/ExpertDispatch.h"
#include "tp/Transforms/Utils.h"

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

/// The ways in which ranks may divide the tokens of experts: each mesh dimension
/// may split the experts. Those that split an argument's dimension beside it may
/// split the batch, and those that split other dimensions the sequence.
static SmallVector<TokenBlocks>
getTokenBlocks(MeshOp mesh, ArrayRef<func::FuncOp> programs) {
  SmallVector<TokenBlocks> all;
  auto add = [&](TokenBlocks blocks) {
    if (!llvm::is_contained(all, blocks))
      all.push_back(blocks);
  };
  for (auto [number, size] : llvm::enumerate(mesh.getAxisSizes())) {
    StringRef name = mesh.getAxisName(number);
    auto isOwn = [&](AxisRefAttr axis) { return axis.getName() == name; };
    add({1, size, 1});
    for (func::FuncOp program : programs)
      for (unsigned i = 0; i < program.getNumArguments(); ++i) {
        ShardingAttr sharding = getArgSharding(program, i);
        if (!sharding)
          continue;
        TokenBlocks blocks = {1, size, 1};
        bool isSplit = false;
        for (AxisListAttr list : sharding.getDims()) {
          SmallVector<AxisRefAttr> others(list.getAxes());
          llvm::erase_if(others, isOwn);
          bool isBatch = others.size() < list.getAxes().size();
          isSplit |= isBatch;
          (isBatch ? blocks.major : blocks.minor) *= mesh.getAxesSize(others);
        }
        if (!isSplit)
          continue;
        add(blocks);
        add({blocks.major, size, 1});
      }
  }
  return all;
}

std::vector<OwningOpRef<ModuleOp>>
tp::divideExperts(ModuleOp model, MeshOp mesh, ArrayRef<func::FuncOp> programs,
                  StringRef train) {
  std::vector<OwningOpRef<ModuleOp>> forms;
  bool hasExperts =
      model.walk([](nn::GroupedMatmulOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
  if (!hasExperts)
    return forms;
  // Experts that can't be divided aren't an error of the programs.
  ScopedDiagnosticHandler silence(model.getContext(),
                                  [](Diagnostic &) { return success(); });
  for (const TokenBlocks &blocks : getTokenBlocks(mesh, programs)) {
    OwningOpRef<ModuleOp> form = cloneWithLoss(model, train);
    if (form && succeeded(dispatchExperts(*form, blocks)))
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
