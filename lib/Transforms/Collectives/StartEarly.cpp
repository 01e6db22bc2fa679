//===- StartEarly.cpp - Collectives and computation side by side ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A collective is split into its start, which moves up to where the operand is
// computed, and its wait, which moves down to the first use. Starts never move
// past each other, because all ranks share their order. If nothing would run
// between start and wait, the collective isn't split.
//
// A collective keeps its operand alive until it is waited for. Collectives
// whose results are smaller than their operands, such as the reductions of
// gradients, would keep all gradients alive until the parameters are updated.
// So each of these is waited for before the next one starts.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "tp/Dialect/TP/Elements.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::collectives;

/// Whether `op`, or an op in it, may issue collectives, so that no collective
/// may move past it.
static bool isBarrier(Operation &op) {
  return op
      .walk([](Operation *inner) {
        return isa<CollectiveOpInterface, CallOpInterface>(inner)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether the result of the collective is smaller than its operand.
static bool frees(CollectiveOpInterface op) {
  return getTensorBytes(op->getOperand(0).getType()) >
         getTensorBytes(op->getResult(0).getType());
}

/// Whether `op` waits for a collective that frees memory.
static bool waitsToFree(Operation &op) {
  auto wait = dyn_cast<WaitOp>(op);
  auto start = wait ? wait.getPending().getDefiningOp<StartOp>() : StartOp();
  return start && frees(start.getCollective());
}

/// Whether `op` gathers a parameter.
static bool isOfParameters(CollectiveOpInterface op) {
  llvm::SmallSetVector<Operation *, 8> ops;
  return isa<AllGatherOp>(op.getOperation()) &&
         collectOfParameters(op->getOperand(0), ops);
}

/// The earliest op before which the collective may start. Gathers of parameters
/// stay where they were prefetched to: they could start at any time, but take
/// memory from then on.
static Operation *getEarliest(CollectiveOpInterface op) {
  Operation *earliest = op;
  if (isOfParameters(op))
    return earliest;
  bool isFreeing = frees(op);
  for (Operation *before = op->getPrevNode(); before;
       before = before->getPrevNode()) {
    if (isBarrier(*before) || (isFreeing && waitsToFree(*before)) ||
        llvm::any_of(op->getOperands(), [&](Value operand) {
          return operand.getDefiningOp() == before;
        }))
      break;
    earliest = before;
  }
  return earliest;
}

/// The first op of the block that uses the collective's result.
static Operation *getFirstUser(CollectiveOpInterface op) {
  Operation *first = op->getBlock()->getTerminator();
  for (Operation *user : op->getUsers()) {
    Operation *ancestor = getAncestor(op->getBlock(), user);
    if (ancestor->isBeforeInBlock(first))
      first = ancestor;
  }
  return first;
}

/// The op before which the collective is waited for.
static Operation *getLatest(CollectiveOpInterface op) {
  Operation *firstUser = getFirstUser(op);
  if (!frees(op))
    return firstUser;
  for (Operation *next = op->getNextNode(); next != firstUser;
       next = next->getNextNode())
    if (auto collective = dyn_cast<CollectiveOpInterface>(next);
        collective && frees(collective))
      return getEarliest(collective);
  return firstUser;
}

/// Whether anything is computed from `begin` on and before `end`.
static bool computesBetween(Operation *begin, Operation *end, Operation *op) {
  for (Operation *other = begin; other != end; other = other->getNextNode())
    if (other != op && !isa<StartOp, WaitOp>(other))
      return true;
  return false;
}

unsigned collectives::startEarly(func::FuncOp program) {
  unsigned numStarted = 0;
  for (CollectiveOpInterface op : getCollectives(program)) {
    if (isa<StartOp>(op->getParentOp()))
      continue;
    Operation *earliest = getEarliest(op);
    Operation *latest = getLatest(op);
    if (!computesBetween(earliest, latest, op))
      continue;
    ++numStarted;
    remarkRewrite(op, "StartEarly", "started early and waited for late");
    OpBuilder builder(earliest);
    Value result = op->getResult(0);
    auto type = cast<RankedTensorType>(result.getType());
    auto start = StartOp::create(builder, op.getLoc(),
                                 PendingType::get(builder.getContext(), type));
    builder.setInsertionPoint(latest);
    auto wait = WaitOp::create(builder, op.getLoc(), type, start);
    result.replaceAllUsesWith(wait);
    Block &body = start.getBody().emplaceBlock();
    op->moveBefore(&body, body.end());
    builder.setInsertionPointToEnd(&body);
    YieldOp::create(builder, op.getLoc(), result);
  }
  return numStarted;
}
