//===- Prefetch.cpp - Parameters one module ahead -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A parameter can be gathered at any time, but takes memory from then on. So
// parameters are gathered one module ahead: when a module's parameters are
// first used, the gathers of the next module with gathers are issued. The
// gathers then run while the module computes. In the backward pass they run
// even before the reductions of the module's gradients, which would otherwise
// come first. No more than two modules' parameters are gathered at once. This
// is the order of PyTorch's FSDP.
//
// Gathers keep their order. Consecutive gathers with the same FQN belong to one
// module.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "tp/Interfaces/ShapeOpInterfaces.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::collectives;

namespace {
/// The gathers of one module's parameters, and the ops that they depend on, in
/// order.
struct Unit {
  StringRef fqn;
  SmallVector<AllGatherOp> gathers;
  llvm::SmallSetVector<Operation *, 8> ops;
};
} // namespace

/// The first op that uses a gathered parameter, apart from the ops that cut a
/// joined gather's result into parameters.
static Operation *getFirstUser(const Unit &unit) {
  Operation *first = nullptr;
  SmallVector<Operation *> worklist(unit.gathers.begin(), unit.gathers.end());
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    for (Operation *user : op->getUsers()) {
      if (isa<ReshapeOpInterface, SliceOpInterface, TransposeOpInterface>(
              user) &&
          user->getBlock() == op->getBlock()) {
        worklist.push_back(user);
        continue;
      }
      Operation *ancestor = getAncestor(unit.gathers.front()->getBlock(), user);
      if (!first || ancestor->isBeforeInBlock(first))
        first = ancestor;
    }
  }
  return first;
}

unsigned collectives::prefetchParameters(func::FuncOp program) {
  SmallVector<Unit> units;
  for (auto gather : program.getBody().front().getOps<AllGatherOp>()) {
    llvm::SmallSetVector<Operation *, 8> ops;
    if (!collectOfParameters(gather.getInput(), ops))
      continue;
    ops.insert(gather);
    StringRef fqn =
        cast<CollectiveOpInterface>(gather.getOperation()).getOriginFqn();
    if (units.empty() || units.back().fqn != fqn)
      units.push_back({fqn, {}, {}});
    units.back().gathers.push_back(gather);
    units.back().ops.insert_range(ops);
  }
  unsigned numMoved = 0;
  for (auto [unit, next] : llvm::zip(units, llvm::drop_begin(units))) {
    Operation *use = getFirstUser(unit);
    if (!use || !use->isBeforeInBlock(next.gathers.front()))
      continue;
    numMoved += next.gathers.size();
    for (Operation *op : next.ops)
      if (use->isBeforeInBlock(op))
        op->moveBefore(use);
  }
  return numMoved;
}
