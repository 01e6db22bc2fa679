//===- GradientForms.cpp - Forms that only gradients need -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/Interfaces/GradientOpInterface.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"

namespace mlir::tp {
#define GEN_PASS_DEF_DROPGRADIENTFORMS
#include "tp/Transforms/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

/// Erases `op` and the ops that only it used.
static void eraseWithOperands(Operation *op) {
  SmallVector<Value> operands(op->getOperands());
  op->erase();
  for (Value operand : operands)
    if (Operation *before = operand.getDefiningOp();
        before && isOpTriviallyDead(before))
      eraseWithOperands(before);
}

void tp::dropGradientForms(Operation *root) {
  root->walk([](GradientOpInterface op) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    if (Value form = op.buildUndifferentiated(b)) {
      op->getResult(0).replaceAllUsesWith(form);
      eraseWithOperands(op);
    }
  });
}

namespace {
struct DropGradientForms : tp::impl::DropGradientFormsBase<DropGradientForms> {
  void runOnOperation() override { dropGradientForms(getOperation()); }
};
} // namespace
