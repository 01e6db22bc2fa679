//===- CostProblem.h - Min-sum problem of a graph ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each node is a variable whose values are the node's candidates. A value that
// several uses need in the same placement is moved there once, so copies of it
// are variables, too.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_SHARDING_PROPAGATION_COSTPROBLEM_H
#define TP_LIB_SHARDING_PROPAGATION_COSTPROBLEM_H

#include "MoveCosts.h"
#include "tp/Sharding/Propagation/MinSum.h"
#include <map>

namespace mlir::tp::propagation {

/// How a value gets to its uses. Values whose definitions and uses have the
/// same candidates share one kind.
struct FlowKind {
  unsigned number;
  /// The uses that may need another placement than the value has, and the
  /// tables of the costs.
  SmallVector<unsigned> uses;
  SmallVector<TableId> tables;
  /// Copies in placements that several uses share: the number of variables,
  /// the number of values of each, and their costs.
  unsigned numCopies = 0, numWanted = 0;
  TableId copyTable = 0;
  /// Whether more could be shared.
  bool isCut = false;
};

/// The nodes of a layer that represents `count` equal layers in a row.
struct RepeatedLayer {
  unsigned begin = ~0u, end = ~0u, count = 1;
};

class CostProblem {
public:
  /// No table of a value, its copies and a use gets more than `maxCopyEntries`
  /// entries; values then have fewer copies.
  CostProblem(const Graph &graph, Domains domains, StrategySpace &space,
              MoveCosts &costs, size_t maxCopyEntries,
              RepeatedLayer repeated = {});

  /// As MinSum's functions of the same names.
  Choice solveGreedily() { return getChoice(sum.solveGreedily()); }
  Choice solve(size_t maxEntries) { return getChoice(sum.solve(maxEntries)); }
  std::optional<Choice> solveExactly(size_t maxEntries);
  std::optional<MinSum::Solution> solveRepeated(size_t maxEntries) {
    return sum.solveRepeated(maxEntries);
  }

  /// The values of the nodes' variables.
  Choice getChoice(const MinSum::Solution &solution) const;

  const Domains &getDomains() const { return domains; }
  unsigned getVariable(unsigned node) const { return variables[node]; }
  const FlowKind &getFlowKind(const FlowValue &value);
  /// Whether some value has fewer copies than its uses could share. Shared
  /// moves may then be counted twice.
  bool isSharingCut() const { return isCut; }
  /// Whether the nodes [a, b) have the same candidates as those from `b` on,
  /// and pass values on alike.
  bool areAlike(unsigned a, unsigned b) const;

private:
  /// Identifies a table over the columns of a value's definition and of one
  /// use: these columns, the value's type, weight and whether it is a
  /// parameter, the number of shared copies, and their column.
  using EdgeKey = std::tuple<unsigned, unsigned, const void *, int64_t, bool,
                             unsigned, unsigned>;
  struct Flow {
    const FlowValue *value;
    const FlowKind *kind;
    /// The first variable of the copies, which are consecutive.
    unsigned firstCopy;
  };

  FlowKind makeFlowKind(const FlowValue &value);
  Flow addCopies(const FlowValue &value);
  void addUses(const Flow &flow);
  TableId getEdgeTable(const FlowValue &value, unsigned definition,
                       unsigned use, unsigned copies, unsigned copyColumn);

  StrategySpace &space;
  MoveCosts &costs;
  size_t maxCopyEntries;
  Domains domains;
  MinSum sum;
  /// Indexed by node.
  std::vector<unsigned> variables;
  std::vector<Flow> flows;
  bool isCut = false;
  std::map<EdgeKey, TableId> edgeTables;
  /// Numbers of flow kinds, by the candidates that makeFlowKind depends on.
  ListInterner flowNumbers;
  std::deque<FlowKind> flowKinds;
};

} // namespace mlir::tp::propagation

#endif // TP_LIB_SHARDING_PROPAGATION_COSTPROBLEM_H
