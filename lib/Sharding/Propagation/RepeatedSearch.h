//===- RepeatedSearch.h - The search among equal layers ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Searches a graph that has only the first two and the last two layers of a
// Repetition. The second-to-last layer represents the elided ones.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_SHARDING_PROPAGATION_REPEATEDSEARCH_H
#define TP_LIB_SHARDING_PROPAGATION_REPEATEDSEARCH_H

#include "CostProblem.h"

namespace mlir::tp::propagation {

/// The decision for a function of equal layers, by a graph without the elided
/// ones.
class RepeatedDecision {
public:
  CommunicationCost getCost() const { return choice.cost; }
  CommunicationCost getLowerBound() const { return choice.lowerBound; }
  /// The number of elided layers.
  size_t getNumElidedLayers() const {
    return elided.repetition.getNumInMiddle();
  }
  /// Writes the placements of all layers to `function`. Emits an error if a
  /// move isn't possible.
  LogicalResult extract(Propagation::Function &function, MeshOp mesh) const;
  /// The decision for the nodes of a graph with all layers.
  Decision getWhole() const;

private:
  friend FailureOr<std::unique_ptr<RepeatedDecision>>
  searchRepeated(func::FuncOp function, StrategySpace &space, MoveCosts &costs,
                 MeshOp mesh, const PropagationOptions &options);

  /// The kinds of a layer and of the one before it: indices into `kinds`. The
  /// layer before the represented ones has the kind kFront.
  struct Neighbors {
    unsigned previous, own;
    auto operator<=>(const Neighbors &other) const = default;
  };
  static constexpr unsigned kFront = ~0u;

  RepeatedDecision(MeshOp mesh, StrategySpace &space, Repetition repetition)
      : graph(mesh, space), elided{std::move(repetition)} {}

  /// The offsets in the layer of the ops that `nodes` belong to.
  SmallVector<size_t, 0> getOffsets(ArrayRef<Node> nodes, size_t layer) const;
  ArrayRef<Node> getNodes(unsigned begin, unsigned end) const {
    return ArrayRef(graph.nodes).slice(begin, end - begin);
  }
  /// Whether the nodes of the layer before the elided ones correspond to the
  /// nodes of the layer behind them.
  bool doNodesCorrespond() const;
  void setChoice(const CostProblem &problem, MinSum::Solution solution);

  Neighbors getNeighbors(size_t layer) const {
    return {layer == 0 ? kFront : kindOf[layer - 1], kindOf[layer]};
  }
  /// The strategy of `node`, of the layer that represents others.
  const Strategy &getStrategy(unsigned node, unsigned kind) const {
    return candidates[node]->strategies[kinds[kind][node - elided.begin]];
  }
  ShardingAttr getCurrentSharding(const FlowValue &value,
                                  Neighbors layer) const;
  /// Visits the moves to the uses in a layer with these neighbors.
  void forEachMoveIn(Neighbors layer, MoveVisitor visit) const;
  /// Visits the moves to the uses outside the represented layers.
  void forEachMoveOutside(MoveVisitor visit) const;
  /// Visits all moves, those of layers with equal neighbors once.
  void forEachMove(MoveVisitor visit) const;

  Graph graph;
  ElidedLayers elided;
  Domains candidates;
  /// The choice for the graph's nodes.
  Choice choice;
  /// The distinct choices for the nodes of the layer that represents others,
  /// and the choice of each represented layer.
  std::vector<std::vector<unsigned>> kinds;
  std::vector<unsigned> kindOf;
};

/// Decides for `function` as a search in a graph of all layers would. Null if
/// the function doesn't repeat a layer often enough, or if the cheapest choice
/// isn't certain to be found. Emits an error if the function can't be
/// parallelized.
FailureOr<std::unique_ptr<RepeatedDecision>>
searchRepeated(func::FuncOp function, StrategySpace &space, MoveCosts &costs,
               MeshOp mesh, const PropagationOptions &options);

} // namespace mlir::tp::propagation

#endif // TP_LIB_SHARDING_PROPAGATION_REPEATEDSEARCH_H
