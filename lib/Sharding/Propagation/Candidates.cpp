//===- Candidates.cpp - The candidates of a graph's nodes -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Candidates.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

namespace {

/// Removes impossible strategies: those that need a placement that an operand
/// can't get (for example, a Partial of a whole value). Nodes are visited in
/// order.
class PossibleCandidates {
public:
  PossibleCandidates(const Graph &graph, StrategySpace &space, MoveCosts &costs)
      : graph(graph), space(space), costs(costs) {}

  /// Adds the possible strategies in `domain`, or all if none is possible.
  void add(const Node &node, const Domain *domain) {
    domains.push_back(
        domain->strategies.size() == 1 ? domain : getPossible(node, domain));
  }

  Domains domains;

private:
  const Domain *getPossible(const Node &node, const Domain *domain);
  llvm::BitVector findPossible(const Node &node, const Domain &domain);
  /// The column of what gives `value`; nullopt for a scalar, and for a value
  /// that flows back around a loop: it may have any placement.
  std::optional<unsigned> getGiven(unsigned value) const {
    if (value == kNoValue || graph.values[value].node >= domains.size())
      return std::nullopt;
    return getColumn(domains, graph.values[value]);
  }

  const Graph &graph;
  StrategySpace &space;
  MoveCosts &costs;
  /// Indexed by domain, and the columns and types of the values that flow to
  /// it.
  ListInterner numbers;
  Domains possible;
};

} // namespace

const Domain *PossibleCandidates::getPossible(const Node &node,
                                              const Domain *domain) {
  WordList key = {toWord(domain)};
  for (unsigned value : node.operands)
    if (auto column = getGiven(value))
      key.append(
          {toWord(graph.values[value].type.getAsOpaquePointer()), *column});
    else
      key.push_back(0);
  auto [number, isNew] = numbers.insert(key);
  if (isNew) {
    llvm::BitVector kept = findPossible(node, *domain);
    possible.push_back(kept.any() && !kept.all() ? space.getPart(domain, kept)
                                                 : domain);
  }
  return possible[number];
}

llvm::BitVector PossibleCandidates::findPossible(const Node &node,
                                                 const Domain &domain) {
  llvm::BitVector kept(domain.strategies.size(), true);
  for (auto [operand, value] : llvm::enumerate(node.operands)) {
    auto given = getGiven(value);
    if (!given)
      continue;
    unsigned needed = getForTensor<unsigned>(domain.operands, operand);
    auto isPossible =
        llvm::map_to_vector(space.getDistinct(needed), [&](ShardingAttr need) {
          return llvm::any_of(
              space.getDistinct(*given), [&](ShardingAttr have) {
                return !costs.get(graph.values[value], have, need).isInfinite();
              });
        });
    for (auto [strategy, index] : llvm::enumerate(space.getIndices(needed)))
      if (!isPossible[index])
        kept.reset(strategy);
  }
  return kept;
}

Domains propagation::getCandidates(const Graph &graph, StrategySpace &space,
                                   MoveCosts &costs, int64_t priority,
                                   bool isExhaustive, const Choice *before) {
  PossibleCandidates possible(graph, space, costs);
  for (auto [index, node] : llvm::enumerate(graph.nodes))
    possible.add(node, graph.getDomain(node, isExhaustive, priority,
                                       before ? &before->get(index) : nullptr));
  return std::move(possible.domains);
}
