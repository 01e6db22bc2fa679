//===- PropagationImpl.h - The search for placements ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_SHARDING_PROPAGATION_PROPAGATIONIMPL_H
#define TP_LIB_SHARDING_PROPAGATION_PROPAGATIONIMPL_H

#include "PropagationGraph.h"
#include "StrategySpace.h"
#include "tp/Sharding/Propagation/MinSum.h"
#include "tp/Sharding/Propagation/Propagation.h"
#include <map>

namespace mlir::tp {

class FlowBound;

namespace propagation {

/// Identifies a table over the columns of a value's definition and of one use.
struct EdgeKey {
  unsigned definition, use;
  const void *type;
  int64_t weight;
  bool isParameter;
  /// The number of shared copies between them.
  unsigned copies;
  unsigned copyColumn;

  auto asTuple() const {
    return std::tuple(definition, use, type, weight, isParameter, copies,
                      copyColumn);
  }
  bool operator<(const EdgeKey &other) const {
    return asTuple() < other.asTuple();
  }
};

/// The column of a node's tensor: a node that passes values on has one column
/// for all.
inline unsigned getColumn(ArrayRef<unsigned> columns, unsigned tensor) {
  return columns[std::min<size_t>(tensor, columns.size() - 1)];
}

} // namespace propagation

class Propagation::Impl {
public:
  Impl(MeshOp mesh, PropagationOptions options)
      : options(options), mesh(mesh), space(mesh, options.redistributions),
        graph(std::make_unique<Graph>(mesh, space)),
        numRanks(mesh.getNumRanks()) {}

  LogicalResult run(ArrayRef<func::FuncOp> roots);
  SmallVector<Alternative> getAlternatives(unsigned function, Operation *op,
                                           unsigned limit);
  RedistributionPlanner &getPlanner() { return space.getPlanner(); }

  const PropagationOptions options;
  SmallVector<Function> functions;
  MinSum::Solution solution;
  size_t numMerged = 0;

private:
  using Graph = propagation::Graph;
  using Node = propagation::Node;
  using Use = propagation::Use;
  using FlowValue = propagation::FlowValue;
  using Domain = propagation::Domain;
  using Repetition = propagation::Repetition;
  using EdgeKey = propagation::EdgeKey;

  /// How values get to their uses. Values whose definitions and uses have the
  /// same candidates share one kind.
  struct FlowKind {
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
    /// The number of this kind.
    unsigned number = 0;
  };
  /// The result of removing candidates.
  struct Pruned {
    CommunicationCost lowerBound = {};
    /// A possible choice, by node; empty if none is known.
    std::vector<const Strategy *> choice = {};
  };
  /// A solution, with the candidates and variables that it refers to.
  struct Outcome {
    MinSum::Solution solution;
    std::vector<const Domain *> domains;
    std::vector<unsigned> variables;
  };
  struct Flow {
    const FlowValue *value;
    const FlowKind *kind;
    /// The first variable of the copies, which are consecutive.
    unsigned firstCopy;
  };

  /// Whether a move is priced by its lower bound or by its plan.
  enum class Price { Bound, Planned };

  LogicalResult makeGraph();
  bool solve(int64_t priority);
  bool solve(int64_t priority, bool isExhaustive);
  bool solvePriced();
  bool settle(ArrayRef<const Domain *> among);
  void chooseDomains(int64_t priority, bool isExhaustive);
  bool makeProblem(size_t maxCopyEntries);
  void keepOnly(function_ref<const Strategy &(unsigned node)> choose);
  Outcome takeOutcome();
  void putBack(Outcome outcome);
  void priceAsPlanned();
  void search();
  Pruned prune();
  /// What is counted: the communication, with no parameters allowed to move;
  /// the bytes of parameters that move; or both together.
  enum class Counted { Volume, Parameters, Both };
  double getScalar(CommunicationCost cost, Counted counted) const;
  std::unique_ptr<FlowBound> makeBound(Counted counted);
  void addFlow(const FlowValue &value, Counted counted, FlowBound &bound,
               std::vector<std::optional<unsigned>> &moves);
  bool isSteady(ArrayRef<Flow> flows) const;
  void unfold();
  void extractParts(Function &function);
  /// Visits the uses that need another placement than the value has; in
  /// repeated parts, once for each part.
  void forEachMove(function_ref<void(const FlowValue &value, const Use &use,
                                     ShardingAttr have, ShardingAttr want)>
                       visit) const;
  const Domain *getPossible(const Node &node, const Domain *domain);
  const FlowKind &getFlowKind(const FlowValue &value);
  FlowKind makeFlowKind(const FlowValue &value);
  Flow addCopies(const FlowValue &value);
  void addUses(const Flow &flow);
  TableId getEdgeTable(const FlowValue &value, unsigned definition,
                       unsigned use, unsigned copies, unsigned copyColumn);
  CommunicationCost getCost(const FlowValue &value, ShardingAttr from,
                            ShardingAttr to, Price price = Price::Bound);
  CommunicationCost getCostAt(unsigned node, const Strategy &strategy,
                              Price price);
  void addVolume(CommunicationCost &cost) const {
    cost.volume =
        cost.bytes + options.latencyBytes * numRanks * cost.collectives;
  }
  void spend(uint64_t costs) { budget -= std::min(budget, costs); }
  LogicalResult extract();
  /// The part in the graph that also stands for the missing parts.
  static constexpr unsigned kRepeated = Graph::kMargin;
  size_t getNumMissing() const {
    return repetition->count - 2 * Graph::kMargin;
  }
  unsigned getRepeatedBegin() const { return graph->partNodes[kRepeated]; }
  bool isRepeated(unsigned node) const {
    return node >= getRepeatedBegin() && node < graph->partNodes[kRepeated + 1];
  }
  unsigned getValue(size_t part, unsigned node) const {
    return solution.partValues[solution.parts[part]]
                              [variables[node] - variables[getRepeatedBegin()]];
  }
  DenseMap<Operation *, size_t> getPlaces() const;
  LogicalResult checkReachable(const FlowValue &value, const Use &use,
                               ShardingAttr from, ShardingAttr to);

  ShardingAttr getSharding(const FlowValue &value) const {
    return space.getColumn(propagation::getColumn(
        domains[value.node]->results,
        value.result))[solution.values[variables[value.node]]];
  }
  ShardingAttr getSharding(const FlowValue &value, size_t part) const;
  ShardingAttr getNeeded(const Use &use) const {
    return space.getColumn(propagation::getColumn(
        domains[use.node]->operands,
        use.operand))[solution.values[variables[use.node]]];
  }

  MeshOp mesh;
  propagation::StrategySpace space;
  std::unique_ptr<Graph> graph;
  /// The repeated parts, of which the graph has only the first and last ones.
  std::optional<Repetition> repetition;
  int64_t numRanks;
  /// Whether some value has fewer copies than its uses could share.
  bool isSharingCut = false;
  /// Whether the solution is the cheapest one by the known prices.
  bool isExact = false;
  /// The largest table of a value, its copies and a use.
  size_t maxCopyEntries = 0;
  /// How many costs the search may still look at.
  uint64_t budget = 0;
  std::unique_ptr<MinSum> problem;
  SmallVector<func::FuncOp> roots;
  /// Whether all strategies were considered.
  bool isExhaustive = false;
  /// By node.
  std::vector<const Domain *> domains;
  std::vector<unsigned> variables;
  /// Each node's strategy, and its strategy in the previous round.
  std::vector<const Strategy *> decided, decidedBefore;
  std::map<EdgeKey, TableId> edgeTables;
  /// Numbers of flow kinds, by the candidates that makeFlowKind depends on.
  ListInterner flowNumbers;
  std::deque<FlowKind> flowKinds;
  /// By domain, and the columns and types of the values that flow to it.
  ListInterner possibleNumbers;
  std::vector<const Domain *> possible;
  /// The instance that each function represents.
  SmallVector<unsigned> instanceOf;
  /// Nodes by instance and op; filled on the first call of getAlternatives.
  DenseMap<std::pair<unsigned, Operation *>, unsigned> nodeOfOp;
};

} // namespace mlir::tp

#endif // TP_LIB_SHARDING_PROPAGATION_PROPAGATIONIMPL_H
