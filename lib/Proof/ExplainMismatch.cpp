//===- ExplainMismatch.cpp - Reasons why a program is not proven ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramMatcher.h"
#include "SplitSearch.h"

using namespace mlir;
using namespace mlir::tp;

/// The first op in the function's order that `values` depend on and that
/// `isWanted` accepts.
Operation *ProgramMatcher::findFirst(func::FuncOp function, ValueRange values,
                                     function_ref<bool(Operation *)> isWanted) {
  DenseSet<Operation *> slice;
  SmallVector<Value> worklist(values);
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val().getDefiningOp();
    if (!op || !slice.insert(op).second)
      continue;
    llvm::append_range(worklist, op->getOperands());
    llvm::append_range(worklist, ValueNumbering::getCaptured(op));
  }
  for (Operation &op : function.getBody().front())
    if (slice.contains(&op) && isWanted(&op))
      return &op;
  return nullptr;
}

/// The first op that `wrong` depends on and that isn't matched.
std::optional<Mismatch> ProgramMatcher::findCulprit(Value wrong) {
  Operation *op =
      findFirst(programs.front().function, wrong, [&](Operation *op) {
        return llvm::none_of(op->getResults(), [&](Value result) {
          return byNumber.contains(firstNumbers[result]) ||
                 helpers.contains(firstNumbers[result]);
        });
      });
  return op ? std::optional<Mismatch>(explain(op)) : std::nullopt;
}

Mismatch ProgramMatcher::explain(Operation *op) {
  Mismatch mismatch{op, 0, "", nullptr};
  if (BlockAlgebra::isMovement(op)) {
    for (const Replica *replica :
         byNumber.lookup(firstNumbers[op->getOperand(0)])) {
      mismatch.reference = reference.get(replica->value).value.getDefiningOp();
      RankedTensorType global = reference.getType(replica->value);
      if (succeeded(
              algebra.apply(op, global, replica->sharding, mismatch.reason)))
        mismatch.reason = "its result has another type than the ranks' blocks";
      return mismatch;
    }
    mismatch.reason = "its operand isn't a block of any value of the reference";
    return mismatch;
  }
  // The op of the reference that `op` may correspond to: one of the same kind
  // that uses one of the same values, preferably with the same location.
  Operation *similar = nullptr;
  for (Value operand : op->getOperands())
    for (const Replica *replica : byNumber.lookup(firstNumbers[operand]))
      for (Operation *user : reference.get(replica->value).users)
        if (user->getName() == op->getName() &&
            (!similar || user->getLoc() == op->getLoc()))
          similar = user;
  mismatch.reference = similar;
  mismatch.reason =
      "no op of the reference computes this on each rank's blocks";
  if (!similar)
    return mismatch;
  if (similar->getNumOperands() != op->getNumOperands())
    return mismatch;
  // The placements of operands that are blocks of the reference op's operands.
  SmallVector<ShardingAttr> shardings;
  for (auto [own, theirs] :
       llvm::zip_equal(op->getOperands(), similar->getOperands()))
    for (const Replica *replica : byNumber.lookup(firstNumbers[own]))
      if (replica->value == reference.getId(theirs)) {
        shardings.push_back(replica->sharding);
        break;
      }
  auto ruleOp = dyn_cast<ShardingRuleOpInterface>(similar);
  if (!ruleOp || shardings.size() != op->getNumOperands()) {
    mismatch.reason =
        "its operands aren't blocks of the operands of the reference's op";
    return mismatch;
  }
  std::string why;
  if (findSplits(ruleOp, mesh, algebra, shardings, {}, why).empty())
    mismatch.reason = why;
  else {
    mismatch.reason = "for operands placed ";
    for (auto [index, sharding] : llvm::enumerate(shardings))
      mismatch.reason += (index ? ", " : "") + printPlacements(sharding, mesh);
    mismatch.reason += ", the reference's op must be computed differently";
  }
  return mismatch;
}
