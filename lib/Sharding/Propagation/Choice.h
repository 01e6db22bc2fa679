//===- Choice.h - One candidate for each node -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_SHARDING_PROPAGATION_CHOICE_H
#define TP_LIB_SHARDING_PROPAGATION_CHOICE_H

#include "PropagationGraph.h"

namespace mlir::tp::propagation {

/// The candidates of each node.
using Domains = std::vector<const Domain *>;

/// The element of `list` for a node's tensor: a node that passes values on has
/// one for all of them.
template <typename T>
T getForTensor(ArrayRef<T> list, unsigned tensor) {
  return list[std::min<size_t>(tensor, list.size() - 1)];
}

/// The columns of a value's definition, and of a use.
inline unsigned getColumn(const Domains &domains, const FlowValue &value) {
  return getForTensor<unsigned>(domains[value.node]->results, value.result);
}
inline unsigned getColumn(const Domains &domains, const Use &use) {
  return getForTensor<unsigned>(domains[use.node]->operands, use.operand);
}

/// Takes a use that requires another sharding than its value has.
using MoveVisitor =
    function_ref<void(const FlowValue &value, const Use &use,
                      ShardingAttr current, ShardingAttr required)>;

struct Choice {
  Domains domains;
  /// The index of each node's candidate in the node's domain.
  std::vector<unsigned> indices;
  /// The cost, and a lower bound for every choice from the same candidates.
  CommunicationCost cost, lowerBound;

  const Strategy &get(unsigned node) const {
    return domains[node]->strategies[indices[node]];
  }
  ShardingAttr getCurrentSharding(const FlowValue &value) const {
    return getForTensor<ShardingAttr>(get(value.node).results, value.result);
  }
  ShardingAttr getRequiredSharding(const Use &use) const {
    return getForTensor<ShardingAttr>(get(use.node).operands, use.operand);
  }
  /// Visits the uses that require another sharding than their value has.
  void forEachMove(const Graph &graph, MoveVisitor visit) const {
    for (const FlowValue &value : graph.values) {
      ShardingAttr current = getCurrentSharding(value);
      for (const Use &use : value.uses)
        if (ShardingAttr required = getRequiredSharding(use);
            current != required)
          visit(value, use, current, required);
    }
  }
};

/// What a search decided: all candidates, and the choice among them.
struct Decision {
  Domains candidates;
  Choice choice;
};

} // namespace mlir::tp::propagation

#endif // TP_LIB_SHARDING_PROPAGATION_CHOICE_H
