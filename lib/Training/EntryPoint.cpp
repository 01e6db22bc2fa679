//===- EntryPoint.cpp - The function that is trained ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TrainingStep.h"
#include "tp/Transforms/Utils.h"

using namespace mlir;
using namespace mlir::tp;

FailureOr<func::FuncOp> tp::findEntryPoint(ModuleOp module) {
  FailureOr<SmallVector<func::FuncOp>> roots = getRoots(module);
  if (failed(roots))
    return failure();
  for (func::FuncOp root : *roots) {
    if (roots->size() != 1 && root.getName() != "main")
      continue;
    if (!root.getBody().hasOneBlock())
      return root.emitError("'@")
             << root.getName()
             << "' has several blocks; straight-line code is differentiated";
    return root;
  }
  return module.emitError(
      roots->empty() ? "there is no function to differentiate"
                     : "there are several entry points, and none of them is "
                       "'@main', to differentiate");
}

void tp::setResults(func::FuncOp function, ArrayRef<Value> results,
                    ArrayRef<Attribute> attrs) {
  Builder b(function.getContext());
  function.getBody().front().getTerminator()->setOperands(results);
  function.setType(b.getFunctionType(function.getArgumentTypes(),
                                     TypeRange(ValueRange(results))));
  function.setResAttrsAttr(b.getArrayAttr(attrs));
}
