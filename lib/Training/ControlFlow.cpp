//===- ControlFlow.cpp - Loop unrolling before differentiation ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TrainingStep.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "tp/Training/Differentiate.h"

using namespace mlir;
using namespace mlir::tp;

LogicalResult tp::prepareControlFlow(func::FuncOp function,
                                     bool hasComputeType) {
  Block &block = function.getBody().front();
  SmallVector<nn::ParameterOp> inside;
  SmallVector<scf::ForOp> loops; // inner ones first
  function.walk([&](Operation *op) {
    if (auto parameter = dyn_cast<nn::ParameterOp>(op);
        parameter && op->getBlock() != &block)
      inside.push_back(parameter);
    if (auto loop = dyn_cast<scf::ForOp>(op))
      loops.push_back(loop);
  });
  for (nn::ParameterOp parameter : inside)
    parameter->moveBefore(&block, block.begin());
  for (scf::ForOp loop : loops) {
    std::optional<APInt> count = loop.getStaticTripCount();
    if (count && count->sle(kMaxIterations))
      (void)loopUnrollFull(loop);
  }
  bool isWrong = false;
  if (hasComputeType)
    function.walk([&](Operation *op) {
      if (op == function || op->getNumRegions() == 0 || isa<scf::IfOp>(op))
        return;
      isWrong = true;
      op->emitError("'") << op->getName()
                         << "' can't be computed in another type; leave "
                            "'compute' out of the training file";
    });
  return failure(isWrong);
}
