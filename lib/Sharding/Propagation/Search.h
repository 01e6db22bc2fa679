//===- Search.h - The search for the cheapest choice ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_SHARDING_PROPAGATION_SEARCH_H
#define TP_LIB_SHARDING_PROPAGATION_SEARCH_H

#include "CostProblem.h"

namespace mlir::tp::propagation {

/// Chooses a candidate for each node of a graph.
class Search {
public:
  Search(Graph &graph, StrategySpace &space, MoveCosts &costs,
         const PropagationOptions &options)
      : graph(graph), space(space), costs(costs), options(options) {}

  /// Decides with the constraints up to `priority`. If `before`, the choice for
  /// the previous priority, isn't null, the new choice extends it.
  Decision run(int64_t priority, const Choice *before);

private:
  struct Attempt {
    Choice choice;
    /// Whether it is the cheapest one by the known costs.
    bool isExact;
  };

  Choice choose(const Domains &candidates);
  Attempt chooseByKnownCosts(const Domains &candidates);
  Choice chooseBounded(const Domains &candidates);
  Choice solve(Domains domains, bool *isSharingCut = nullptr);

  Graph &graph;
  StrategySpace &space;
  MoveCosts &costs;
  const PropagationOptions &options;
};

} // namespace mlir::tp::propagation

#endif // TP_LIB_SHARDING_PROPAGATION_SEARCH_H
