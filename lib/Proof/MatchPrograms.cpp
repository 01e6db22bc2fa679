//===- MatchPrograms.cpp - The programs, op by op -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramMatcher.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Sharding/Uniformity.h"
#include "tp/Transforms/Utils.h"

using namespace mlir;
using namespace mlir::tp;

std::optional<Mismatch> ProgramMatcher::matchFirst() {
  func::FuncOp function = programs.front().function;
  Block &block = function.getBody().front();
  for (Operation &op : block.without_terminator())
    if (auto mismatch = matchOp(&op))
      return mismatch;
  return matchReturn(block.getTerminator());
}

std::optional<Mismatch> ProgramMatcher::matchOp(Operation *op) {
  Number first = numberNext(op, firstNumbers, numDraws);
  for (OpResult result : op->getResults()) {
    firstNumbers[result] = first + result.getResultNumber();
    computed.insert(first + result.getResultNumber());
  }
  if (auto parameter = dyn_cast<nn::ParameterOp>(op)) {
    if (auto mismatch = addParameter(parameter))
      return mismatch;
  } else if (BlockAlgebra::isMovement(op)) {
    Number operand = firstNumbers.lookup(op->getOperand(0));
    movements[operand].push_back(op);
    SmallVector<const Replica *, 2> known = byNumber.lookup(operand);
    for (const Replica *replica : known)
      move(op, *replica);
  } else if (hasFollowedRegions(op)) {
    if (auto mismatch = matchRegions(cast<RegionBranchOpInterface>(op)))
      return mismatch;
  }
  for (OpResult result : op->getResults()) {
    auto it = expected.find(firstNumbers[result]);
    if (it == expected.end())
      continue;
    SmallVector<Replica, 1> list = std::move(it->second);
    expected.erase(it);
    for (Replica &replica : list)
      add(std::move(replica));
  }
  drain();
  if (SumOrders::isSum(op) && !byNumber.contains(first))
    unknownSums.push_back(op);
  if (isOfView(op))
    followViews(op->getResult(0));
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  if (!collective)
    return checkEffects(op, 0);
  auto it = counterparts.find(firstNumbers[op->getResult(0)]);
  if (it == counterparts.end() && followViews(op->getResult(0)))
    it = counterparts.find(firstNumbers[op->getResult(0)]);
  while (it == counterparts.end() && regroup())
    it = counterparts.find(firstNumbers[op->getResult(0)]);
  if (it == counterparts.end()) {
    auto culprit = findCulprit(op->getResult(0));
    return culprit ? *culprit : explain(op);
  }
  issued.push_back(it->second);
  firstCollectives.push_back(collective);
  return std::nullopt;
}

/// Only collectives may have effects besides their results.
std::optional<Mismatch> ProgramMatcher::checkEffects(Operation *op,
                                                     unsigned program) {
  // The ops in followed regions are checked one by one.
  if (matchedRegionOps.contains(op) || onlyMakesResults(op))
    return std::nullopt;
  return Mismatch{op, program,
                  op->getNumRegions()
                      ? "besides computing its results it has effects, such as "
                        "collectives, that the reference doesn't have"
                      : "it has an effect that the reference doesn't have",
                  nullptr};
}

std::optional<Mismatch> ProgramMatcher::matchReturn(Operation *op) {
  func::FuncOp function = programs.front().function;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    ReferenceGraph::Id wanted = reference.getResults()[index];
    RankedTensorType global = reference.getType(wanted);
    ShardingAttr sharding = getResultSharding(function, index);
    std::string what = "result " + std::to_string(index);
    const Replica *other = nullptr;
    Alternatives found;
    do {
      for (const Replica *replica : byNumber.lookup(firstNumbers[operand])) {
        if (replica->value != wanted)
          continue;
        other = replica;
        if (algebra.isSame(global, replica->sharding, sharding))
          found.push_back(replica->numbers);
      }
    } while (found.empty() && regroup());
    if (!found.empty()) {
      returned.push_back(std::move(found));
      continue;
    }
    Operation *value = reference.get(wanted).value.getDefiningOp();
    if (other)
      return Mismatch{op, 0,
                      what + " is returned as " +
                          printPlacements(other->sharding, mesh) +
                          " and declared " + printPlacements(sharding, mesh),
                      value};
    if (auto culprit = findCulprit(operand))
      return culprit;
    return Mismatch{
        op, 0, what + " is the value of another of the reference's ops", value};
  }
  return std::nullopt;
}
