//===- ExposeAssignments.cpp - Training steps as functions ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramForms.h"
#include "tp/Dialect/NN/NN.h"

using namespace mlir;
using namespace mlir::tp;

SmallVector<Assignment> tp::exposeAssignments(func::FuncOp function) {
  SmallVector<Assignment> assignments;
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return assignments;
  Block &block = function.getBody().front();
  DenseMap<StringAttr, nn::ParameterOp> parameters;
  SmallVector<nn::AssignOp> assigns;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto again = dyn_cast<nn::RecomputeOp>(op)) {
      again.replaceAllUsesWith(again.getInput());
      again.erase();
    } else if (auto parameter = dyn_cast<nn::ParameterOp>(op)) {
      parameters[parameter.getFqnAttr()] = parameter;
    } else if (auto assign = dyn_cast<nn::AssignOp>(op)) {
      assigns.push_back(assign);
    }
  }
  llvm::sort(assigns, [](nn::AssignOp a, nn::AssignOp b) {
    return a.getFqn() < b.getFqn();
  });
  for (nn::AssignOp assign : assigns) {
    assignments.push_back({assign.getFqnAttr(), assign.getInitAttr()});
    Value value = assign.getValue();
    NamedAttrList attrs;
    Operation *placed = assign; // if nothing reads the parameter
    if (nn::ParameterOp parameter = parameters.lookup(assign.getFqnAttr()))
      placed = parameter;
    for (StringRef name :
         {StringRef(kShardingAttr), StringRef(kGlobalTypeAttr)})
      if (Attribute attr = placed->getAttr(name))
        attrs.set(name, attr);
    block.getTerminator()->insertOperands(
        block.getTerminator()->getNumOperands(), value);
    (void)function.insertResult(function.getNumResults(), value.getType(),
                                attrs.getDictionary(function.getContext()));
    assign.erase();
  }
  return assignments;
}
