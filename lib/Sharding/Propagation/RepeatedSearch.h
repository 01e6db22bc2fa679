//===- RepeatedSearch.h - The search among equal layers ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model repeats its layers. If each layer takes only its own values and those
// of the previous layer, a smaller graph decides for all: it keeps the first
// two and the last two layers, and the last layer but one stands for all layers
// between them, too.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_SHARDING_PROPAGATION_REPEATEDSEARCH_H
#define TP_LIB_SHARDING_PROPAGATION_REPEATEDSEARCH_H

#include "CostProblem.h"

namespace mlir::tp::propagation {

/// What was decided for a function of equal layers, by a graph without the
/// layers in the middle.
class RepeatedDecision {
public:
  CommunicationCost getCost() const { return choice.cost; }
  CommunicationCost getLowerBound() const { return choice.lowerBound; }
  /// The number of layers that the graph hasn't.
  size_t getNumMerged() const { return folded.repetition.getNumInMiddle(); }
  /// Writes the placements of all layers to `function`. Emits an error if a
  /// move isn't possible.
  LogicalResult extract(Propagation::Function &function, MeshOp mesh) const;
  /// The decision for the nodes of a graph with all layers.
  Decision unfold() const;

private:
  friend FailureOr<std::unique_ptr<RepeatedDecision>>
  searchRepeated(func::FuncOp function, StrategySpace &space, MoveCosts &costs,
                 MeshOp mesh, const PropagationOptions &options);

  /// How a layer and the one before it were decided: indices into `kinds`, or
  /// kFront for the layer in front of those that one layer stands for.
  struct Neighbours {
    unsigned previous, own;
    auto operator<=>(const Neighbours &other) const = default;
  };
  static constexpr unsigned kFront = ~0u;

  RepeatedDecision(MeshOp mesh, StrategySpace &space, Repetition repetition)
      : graph(mesh, space), folded{std::move(repetition)} {}

  /// The places in the part of the ops that `nodes` belong to.
  SmallVector<size_t, 0> getPlaces(ArrayRef<Node> nodes, size_t part) const;
  ArrayRef<Node> getNodes(unsigned begin, unsigned end) const {
    return ArrayRef(graph.nodes).slice(begin, end - begin);
  }
  /// Whether the nodes of the layer in front of those in the middle correspond
  /// to the nodes of the layer behind them.
  bool doNodesCorrespond() const;
  void setChoice(const CostProblem &problem, MinSum::Solution solution);

  Neighbours getNeighbours(size_t layer) const {
    return {layer == 0 ? kFront : kindOf[layer - 1], kindOf[layer]};
  }
  /// The strategy of `node`, of the layer that stands for others.
  const Strategy &getStrategy(unsigned node, unsigned kind) const {
    return candidates[node]->strategies[kinds[kind][node - folded.begin]];
  }
  ShardingAttr getHave(const FlowValue &value, Neighbours layer) const;
  /// Visits the moves to the uses in a layer with these neighbours.
  void forEachMoveIn(Neighbours layer, MoveVisitor visit) const;
  /// Visits the moves to the uses outside the layers that one layer stands for.
  void forEachMoveOutside(MoveVisitor visit) const;
  /// Visits all moves, those of layers with equal neighbours once.
  void forEachMove(MoveVisitor visit) const;

  Graph graph;
  FoldedParts folded;
  Domains candidates;
  /// The choice for the graph's nodes.
  Choice choice;
  /// The different choices for the nodes of the layer that stands for others,
  /// and the one that each of these layers has.
  std::vector<std::vector<unsigned>> kinds;
  std::vector<unsigned> kindOf;
};

/// Decides for `function` as a search in a graph of all layers would. Null if
/// the function doesn't repeat a part often enough, or if the cheapest choice
/// isn't certain to be found. Emits an error if the function can't be
/// parallelised.
FailureOr<std::unique_ptr<RepeatedDecision>>
searchRepeated(func::FuncOp function, StrategySpace &space, MoveCosts &costs,
               MeshOp mesh, const PropagationOptions &options);

} // namespace mlir::tp::propagation

#endif // TP_LIB_SHARDING_PROPAGATION_REPEATEDSEARCH_H
