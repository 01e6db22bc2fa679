//===- Alternatives.cpp - Other choices for one node ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Alternatives.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

using Alternative = Propagation::Alternative;

/// The cost of `node` and of the moves of its operands and results, if it has
/// `strategy` and all other nodes have what was decided. Uses that need the
/// same placement share a move.
static CommunicationCost
getCost(const Graph &graph, const Choice &choice, const MoveCosts &costs,
        unsigned node, const Strategy &strategy,
        function_ref<CommunicationCost(const FlowValue &, ShardingAttr from,
                                       ShardingAttr to)>
            getMove) {
  auto getStrategy = [&](unsigned other) -> const Strategy & {
    return other == node ? strategy : choice.get(other);
  };
  CommunicationCost cost = costs.getOwn(graph.nodes[node], strategy);
  llvm::SmallSetVector<unsigned, 8> values(llvm::from_range,
                                           graph.nodes[node].operands);
  values.insert_range(graph.nodes[node].results);
  values.remove(kNoValue);
  for (unsigned index : values) {
    const FlowValue &value = graph.values[index];
    auto current = getForTensor<ShardingAttr>(getStrategy(value.node).results,
                                              value.result);
    llvm::SmallSetVector<ShardingAttr, 4> needed;
    for (const Use &use : value.uses)
      if (use.node != value.node)
        needed.insert(getForTensor<ShardingAttr>(getStrategy(use.node).operands,
                                                 use.operand));
    for (ShardingAttr required : needed)
      cost += getMove(value, current, required);
  }
  return cost;
}

SmallVector<Alternative>
propagation::getAlternatives(const Graph &graph, const Decision &decision,
                             MoveCosts &costs, unsigned node, unsigned limit) {
  auto getKnown = [&](const Strategy &strategy) {
    return getCost(graph, decision.choice, costs, node, strategy,
                   [&](auto &value, ShardingAttr from, ShardingAttr to) {
                     return costs.get(value, from, to);
                   });
  };
  auto getPlanned = [&](const Strategy &strategy) {
    return getCost(graph, decision.choice, costs, node, strategy,
                   [&](auto &value, ShardingAttr from, ShardingAttr to) {
                     return costs.getPlanned(value, from, to);
                   });
  };
  const Strategy &chosen = decision.choice.get(node);
  CommunicationCost cost = getPlanned(chosen);
  std::vector<std::pair<CommunicationCost, const Strategy *>> others;
  for (const Strategy &strategy : decision.candidates[node]->strategies)
    if (strategy.operands != chosen.operands ||
        strategy.results != chosen.results)
      others.push_back({getKnown(strategy), &strategy});
  llvm::stable_sort(others, llvm::less_first());
  // Once there are enough alternatives, plans only those that may cost less
  // than one of them.
  SmallVector<Alternative> alternatives;
  for (auto [bound, strategy] : others) {
    if (bound.isInfinite() || (alternatives.size() == limit &&
                               !(bound - cost < alternatives.back().delta)))
      break;
    CommunicationCost exact = getPlanned(*strategy);
    Alternative alternative = {
        llvm::to_vector_of<ShardingAttr, 0>(strategy->operands),
        llvm::to_vector_of<ShardingAttr, 0>(strategy->results), exact - cost};
    alternatives.insert(
        llvm::upper_bound(alternatives, alternative,
                          [](const Alternative &a, const Alternative &b) {
                            return a.delta < b.delta;
                          }),
        std::move(alternative));
    if (alternatives.size() > limit)
      alternatives.pop_back();
  }
  return alternatives;
}
