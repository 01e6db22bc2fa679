//===- Hoist.cpp - Loop-invariant collectives -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A collective whose operand is the same in each iteration is issued once,
// before the loop, and so are the pure ops that lead to it. This is safe even
// if the loop runs no iteration: all ranks reach the loop alike
// (tp-verify-collectives), so all of them issue the collective. It costs as
// much as in one iteration.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::collectives;

/// Whether a collective in the same block depends on the result of `op`.
static bool leadsToCollective(Operation *op) {
  return llvm::any_of(op->getUsers(), [&](Operation *user) {
    return user->getBlock() == op->getBlock() &&
           (isa<CollectiveOpInterface>(user) ||
            (isPure(user) && user->getNumResults() == 1 &&
             leadsToCollective(user)));
  });
}

unsigned collectives::hoistFromLoops(func::FuncOp program) {
  unsigned numHoisted = 0;
  program.walk([&](LoopLikeOpInterface loop) {
    // Ops that only some iterations or branches run aren't directly in the
    // loop's region.
    moveLoopInvariantCode(
        loop.getLoopRegions(),
        [&](Value value, Region *) {
          return loop.isDefinedOutsideOfLoop(value);
        },
        [&](Operation *op, Region *) {
          return isa<CollectiveOpInterface>(op) ||
                 (isPure(op) && leadsToCollective(op));
        },
        [&](Operation *op, Region *) {
          if (isa<CollectiveOpInterface>(op)) {
            remarkRewrite(op, "Hoisted", "issued once, before the loop");
            ++numHoisted;
          }
          loop.moveOutOfLoop(op);
        });
  });
  return numHoisted;
}
