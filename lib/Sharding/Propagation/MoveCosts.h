//===- MoveCosts.h - Costs of redistributions -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Making plans takes long, so a move costs its lower bound until a choice has
// it. From then on, it costs what its plan costs. A search ends when all moves
// of its choice are planned, or when its budget is spent.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_SHARDING_PROPAGATION_MOVECOSTS_H
#define TP_LIB_SHARDING_PROPAGATION_MOVECOSTS_H

#include "Choice.h"
#include "tp/Sharding/Propagation/Propagation.h"

namespace mlir::tp::propagation {

class MoveCosts {
public:
  MoveCosts(MeshOp mesh, StrategySpace &space,
            const PropagationOptions &options)
      : space(space), numRanks(mesh.getNumRanks()), options(options) {}

  /// The known cost of moving `value`: that of the plan if there is one.
  CommunicationCost get(const FlowValue &value, ShardingAttr from,
                        ShardingAttr to) {
    return get(value, from, to, &RedistributionPlanner::getBound);
  }
  /// The cost of the plan.
  CommunicationCost getPlanned(const FlowValue &value, ShardingAttr from,
                               ShardingAttr to) {
    return get(value, from, to, &RedistributionPlanner::getCost);
  }
  /// Whether ops with the same candidates may cost differently.
  bool dependOnOps() const { return options.objective; }
  /// The cost of running `node` by `strategy`.
  CommunicationCost getOwn(const Node &node, const Strategy &strategy) const;

  /// Plans all moves that `forEachMove` visits. Returns whether all of their
  /// costs were known already. If a move costs more than was known, also plans
  /// the cheapest moves that may replace it, according to the candidates in
  /// `among` (none if `among` is empty).
  bool planMoves(function_ref<void(MoveVisitor)> forEachMove,
                 const Domains &among);
  bool planMoves(const Graph &graph, const Choice &choice,
                 const Domains &among) {
    return planMoves(
        [&](MoveVisitor visit) { choice.forEachMove(graph, visit); }, among);
  }

  /// How many costs the search may still look at.
  void resetBudget() { budget = options.searchBudget; }
  void spend(uint64_t costs) { budget -= std::min(budget, costs); }
  uint64_t getBudget() const { return budget; }

private:
  using Price = CommunicationCost (RedistributionPlanner::*)(ShardingAttr,
                                                             ShardingAttr,
                                                             RankedTensorType);
  CommunicationCost get(const FlowValue &value, ShardingAttr from,
                        ShardingAttr to, Price price);
  CommunicationCost withVolume(CommunicationCost cost) const {
    cost.volume =
        cost.bytes + options.latencyBytes * numRanks * cost.collectives;
    return cost;
  }

  StrategySpace &space;
  int64_t numRanks;
  const PropagationOptions &options;
  uint64_t budget = 0;
};

} // namespace mlir::tp::propagation

#endif // TP_LIB_SHARDING_PROPAGATION_MOVECOSTS_H
