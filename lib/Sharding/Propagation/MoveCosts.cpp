//===- MoveCosts.cpp - Costs of redistributions ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "MoveCosts.h"
#include "tp/Sharding/Propagation/TimeObjective.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

/// Looking up a cost takes as long as this many entries of tables.
constexpr uint64_t kLookup = 16;
/// A placement that a plan's search looks at takes as long as this many
/// entries.
constexpr uint64_t kState = 100;
/// The most alternatives of a move that are planned along with it.
constexpr size_t kMaxOthers = 1024;

CommunicationCost MoveCosts::get(const FlowValue &value, ShardingAttr from,
                                 ShardingAttr to, Price price) {
  if (from == to)
    return {};
  spend(kLookup);
  RedistributionPlanner &planner = space.getPlanner();
  uint64_t numStates = planner.getNumStates();
  CommunicationCost cost = (planner.*price)(from, to, value.type);
  spend((planner.getNumStates() - numStates) * kState);
  cost = cost * value.weight;
  // Even a slice is some work.
  cost.work += 1;
  cost = withVolume(cost);
  if (value.isParameter && !cost.isInfinite())
    cost.parameterBytes = cost.bytes;
  return cost;
}

CommunicationCost MoveCosts::getOwn(const Node &node,
                                    const Strategy &strategy) const {
  CommunicationCost cost = withVolume(strategy.cost);
  if (options.objective && !cost.isInfinite())
    cost.volume += options.objective->getVolume(node.op, strategy);
  return cost;
}

bool MoveCosts::planMoves(function_ref<void(MoveVisitor)> forEachMove,
                          const Domains &among) {
  bool wereKnown = true;
  forEachMove([&](const FlowValue &value, const Use &use, ShardingAttr current,
                  ShardingAttr required) {
    CommunicationCost known = get(value, current, required),
                      cost = getPlanned(value, current, required);
    if (cost == known)
      return;
    wereKnown = false;
    if (among.empty())
      return;
    using Move = std::pair<ShardingAttr, ShardingAttr>;
    std::vector<std::pair<CommunicationCost, Move>> others;
    for (ShardingAttr from : space.getDistinct(getColumn(among, value)))
      for (ShardingAttr to : space.getDistinct(getColumn(among, use)))
        if (auto least = get(value, from, to); least < cost)
          others.push_back({least, {from, to}});
    llvm::stable_sort(others, llvm::less_first());
    if (others.size() > kMaxOthers)
      others.resize(kMaxOthers);
    for (auto &[least, move] : others)
      if (budget > 0)
        getPlanned(value, move.first, move.second);
  });
  return wereKnown;
}
