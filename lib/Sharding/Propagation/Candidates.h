//===- Candidates.h - The candidates of a graph's nodes ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_SHARDING_PROPAGATION_CANDIDATES_H
#define TP_LIB_SHARDING_PROPAGATION_CANDIDATES_H

#include "MoveCosts.h"

namespace mlir::tp::propagation {

class CostProblem;

/// The possible strategies of all nodes, after `graph` was spread with
/// `priority`. If `before` isn't null, only those that extend the choice for
/// the previous priority.
Domains getCandidates(const Graph &graph, StrategySpace &space,
                      MoveCosts &costs, int64_t priority, bool isExhaustive,
                      const Choice *before = nullptr);

/// A part of the candidates.
struct Pruned {
  Domains domains;
  /// No choice costs less.
  CommunicationCost lowerBound;
  /// A possible choice, by node; empty if none is known.
  std::vector<const Strategy *> choice;
};

/// Keeps only the candidates of `problem` that a cheapest choice may have.
Pruned prune(const Graph &graph, StrategySpace &space, MoveCosts &costs,
             CostProblem &problem);

} // namespace mlir::tp::propagation

#endif // TP_LIB_SHARDING_PROPAGATION_CANDIDATES_H
