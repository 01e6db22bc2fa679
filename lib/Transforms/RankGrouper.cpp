//===- RankGrouper.cpp - Ranks that share a program -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RankGrouper.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Transforms/Utils.h"

using namespace mlir;
using namespace mlir::tp;

void RankGrouper::add(Type type, ShardingAttr sharding) {
  if (!added.insert({type, sharding}).second)
    return;
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (sharding && tensor)
    classes.splitByBlock(tensor.getShape(), sharding);
}

ShardingAttr RankGrouper::getSharding(Value value) {
  if (auto result = dyn_cast<OpResult>(value)) {
    auto all = getResultShardings(result.getOwner());
    return all.empty() ? ShardingAttr() : all[result.getResultNumber()];
  }
  auto argument = cast<BlockArgument>(value);
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto function = dyn_cast<func::FuncOp>(parent))
    return getArgSharding(function, argument.getArgNumber());
  auto regions = dyn_cast<RegionBranchOpInterface>(parent);
  if (!regions)
    return {};
  // An argument is placed like the value that enters the region.
  SmallVector<RegionSuccessor> successors;
  regions.getSuccessorRegions(RegionBranchPoint::parent(), successors);
  for (RegionSuccessor successor : successors)
    for (auto [operand, input] :
         llvm::zip(regions.getEntrySuccessorOperands(successor),
                   successor.getSuccessorInputs()))
      if (input == value)
        return getSharding(operand);
  return {};
}

LogicalResult RankGrouper::add(func::FuncOp function) {
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    add(type, getArgSharding(function, i));
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    add(type, getResultSharding(function, i));
  auto visited = function.walk([&](Operation *op) {
    SmallVector<ShardingAttr> shardings = getResultShardings(op);
    for (auto [result, sharding] : llvm::zip(op->getResults(), shardings))
      add(result.getType(), sharding);
    auto redistribute = dyn_cast<RedistributeOp>(op);
    if (!redistribute)
      return WalkResult::advance();
    ShardingAttr from = getSharding(redistribute.getInput());
    if (!from)
      return WalkResult::advance(); // diagnosed later
    auto plan =
        planner.plan(from, redistribute.getSharding(), redistribute.getType(),
                     [&]() { return redistribute.emitError(); });
    if (failed(plan))
      return WalkResult::interrupt();
    for (const RedistributionStep &step : (*plan)->steps)
      add((*plan)->getViewed(redistribute.getType()), step.result);
    return WalkResult::advance();
  });
  return failure(visited.wasInterrupted());
}

SmallVector<SmallVector<int64_t>> RankGrouper::getGroups() {
  return classes.getRanks();
}
