//===- RepeatedSearch.cpp - The search among equal layers -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RepeatedSearch.h"
#include "Candidates.h"
#include <map>
#include <set>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

/// The layers that aren't elided, at either end.
constexpr size_t kMargin = 2;
/// Layers are elided if there are at least this many.
constexpr size_t kMinLayers = 2 * kMargin + 2;

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

FailureOr<std::unique_ptr<RepeatedDecision>>
propagation::searchRepeated(func::FuncOp function, StrategySpace &space,
                            MoveCosts &costs, MeshOp mesh,
                            const PropagationOptions &options) {
  std::unique_ptr<RepeatedDecision> none;
  if (!options.elidesLayers ||
      options.strategy != PropagationStrategy::Optimal ||
      !function.getBody().hasOneBlock())
    return none;
  auto repetition = findRepetition(
      function.getBody().front(), kMinLayers, kMargin,
      [&](Operation *op) { return space.getPlainRule(op).has_value(); });
  if (!repetition)
    return none;
  std::unique_ptr<RepeatedDecision> decision(
      new RepeatedDecision(mesh, space, std::move(*repetition)));
  Graph &graph = decision->graph;
  const ElidedLayers &elided = decision->elided;
  if (failed(graph.addRoot(function, &decision->elided)))
    return failure();
  SmallVector<int64_t> priorities = graph.getPriorities();
  if (priorities.size() != 1 || !decision->doNodesCorrespond())
    return none;
  graph.followBatch();
  graph.spread(priorities.front(),
               /*seedsSegments=*/options.objective != nullptr);
  const Domains &candidates = decision->candidates =
      getCandidates(graph, space, costs, priorities.front(),
                    options.isExhaustive(graph.numOps));
  if (failed(graph.verifyAlternatives([&](unsigned node) -> const Strategy & {
        return candidates[node]->strategies.front();
      })))
    return failure();
  costs.resetBudget();
  do {
    CostProblem problem(
        graph, candidates, space, costs, options.maxEntries,
        {elided.begin, elided.end,
         static_cast<unsigned>(elided.repetition.getNumInMiddle() + 1)});
    // If the layers before and behind the elided ones are alike, so are all
    // layers between them.
    if (problem.isSharingCut() ||
        !problem.areAlike(elided.before, elided.begin))
      return none;
    auto solution = problem.solveRepeated(options.maxEntries);
    if (!solution)
      return none;
    decision->setChoice(problem, std::move(*solution));
    if (costs.planMoves(
            [&](MoveVisitor visit) { decision->forEachMove(visit); },
            candidates))
      return decision;
  } while (costs.getBudget() > 0);
  // Layers that choose differently can't be planned one by one.
  return none;
}

SmallVector<size_t, 0> RepeatedDecision::getOffsets(ArrayRef<Node> nodes,
                                                    size_t layer) const {
  SmallVector<size_t, 0> offsets;
  size_t offset = 0;
  for (const Node &node : nodes) {
    while (node.op && elided.repetition.getOp(layer, offset) != node.op)
      ++offset;
    offsets.push_back(offset);
  }
  return offsets;
}

bool RepeatedDecision::doNodesCorrespond() const {
  const auto &[layers, before, begin, end] = elided;
  // Layers that share parameters with other code have fewer nodes.
  return getOffsets(getNodes(before, begin), layers.margin - 1) ==
         getOffsets(getNodes(begin, end), layers.count - layers.margin);
}

void RepeatedDecision::setChoice(const CostProblem &problem,
                                 MinSum::Solution solution) {
  choice = problem.getChoice(solution);
  kinds.clear();
  for (const std::vector<unsigned> &values : solution.layerValues) {
    std::vector<unsigned> &kind = kinds.emplace_back();
    for (unsigned node = elided.begin; node < elided.end; ++node)
      kind.push_back(values[problem.getVariable(node) -
                            problem.getVariable(elided.begin)]);
  }
  kindOf = std::move(solution.layers);
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

ShardingAttr RepeatedDecision::getCurrentSharding(const FlowValue &value,
                                                  Neighbors layer) const {
  const auto &[layers, before, begin, end] = elided;
  bool isOwn = begin <= value.node && value.node < end;
  bool isPrevious = before <= value.node && value.node < begin;
  const Strategy &strategy =
      isOwn ? getStrategy(value.node, layer.own)
      : isPrevious && layer.previous != kFront
          ? getStrategy(value.node + (begin - before), layer.previous)
          : choice.get(value.node);
  return getForTensor<ShardingAttr>(strategy.results, value.result);
}

void RepeatedDecision::forEachMoveIn(Neighbors layer, MoveVisitor visit) const {
  for (unsigned node = elided.begin; node < elided.end; ++node) {
    const Strategy &strategy = getStrategy(node, layer.own);
    for (auto [operand, index] : llvm::enumerate(graph.nodes[node].operands)) {
      if (index == kNoValue)
        continue;
      const FlowValue &value = graph.values[index];
      ShardingAttr current = getCurrentSharding(value, layer);
      auto required = getForTensor<ShardingAttr>(strategy.operands, operand);
      if (current == required)
        continue;
      for (const Use &use : value.uses)
        if (use.node == node && use.operand == operand)
          visit(value, use, current, required);
    }
  }
}

void RepeatedDecision::forEachMoveOutside(MoveVisitor visit) const {
  choice.forEachMove(graph, [&](const FlowValue &value, const Use &use,
                                ShardingAttr current, ShardingAttr required) {
    if (use.node < elided.begin || use.node >= elided.end)
      visit(value, use, current, required);
  });
}

void RepeatedDecision::forEachMove(MoveVisitor visit) const {
  forEachMoveOutside(visit);
  std::set<Neighbors> visited;
  for (size_t layer = 0; layer < kindOf.size(); ++layer)
    if (visited.insert(getNeighbors(layer)).second)
      forEachMoveIn(getNeighbors(layer), visit);
}

//===----------------------------------------------------------------------===//
// The decision for all layers
//===----------------------------------------------------------------------===//

namespace {
/// A placement of an operand or a result of the op at an offset of a layer.
struct PlacedTensor {
  size_t offset;
  unsigned index;
  ShardingAttr sharding;
};
struct PlacedLayer {
  SmallVector<PlacedTensor, 0> current, given, needed;
};
} // namespace

LogicalResult RepeatedDecision::extract(Propagation::Function &function,
                                        MeshOp mesh) const {
  const Repetition &layers = elided.repetition;
  const Instance &instance = graph.instances.front();
  function.op = instance.function;
  bool areReachable = true;
  auto verify = [&](const FlowValue &value, const Use &use,
                    ShardingAttr current, ShardingAttr required) {
    Operation *op = use.at ? use.at->getOwner() : graph.nodes[value.node].op;
    areReachable =
        areReachable &&
        succeeded(verifyRedistribution(current, required, mesh,
                                       [&]() { return op->emitError(); }));
  };
  for (auto [value, id] : instance.values)
    function.shardings[value] = choice.getCurrentSharding(graph.values[id]);
  for (const FlowValue &value : graph.values)
    if (!value.value)
      function.given[graph.nodes[value.node].op->getResult(value.result)] =
          choice.getCurrentSharding(value);
  forEachMoveOutside([&](const FlowValue &value, const Use &use,
                         ShardingAttr current, ShardingAttr required) {
    verify(value, use, current, required);
    if (use.at)
      function.needed[use.at] = required;
  });

  ArrayRef<Node> nodes = getNodes(elided.begin, elided.end);
  SmallVector<size_t, 0> offsets =
      getOffsets(nodes, layers.count - layers.margin);
  auto getLayer = [&](Neighbors layer) {
    PlacedLayer placed;
    for (auto [node, offset] : llvm::zip_equal(nodes, offsets))
      for (unsigned index : node.results) {
        if (index == kNoValue)
          continue;
        const FlowValue &value = graph.values[index];
        ShardingAttr current = getCurrentSharding(value, layer);
        if (value.value)
          placed.current.push_back(
              {offset, cast<OpResult>(value.value).getResultNumber(), current});
        else
          placed.given.push_back({offset, value.result, current});
      }
    forEachMoveIn(layer, [&](const FlowValue &value, const Use &use,
                             ShardingAttr current, ShardingAttr required) {
      verify(value, use, current, required);
      if (use.at)
        placed.needed.push_back({offsets[use.node - elided.begin],
                                 use.at->getOperandNumber(), required});
    });
    return placed;
  };
  std::map<Neighbors, PlacedLayer> placedLayers;
  function.shardings.reserve(instance.values.size() +
                             kindOf.size() * nodes.size());
  for (size_t layer = 0; layer < kindOf.size(); ++layer) {
    auto [it, isNew] = placedLayers.try_emplace(getNeighbors(layer));
    if (isNew)
      it->second = getLayer(it->first);
    auto getOp = [&](const PlacedTensor &tensor) {
      return layers.getOp(layers.margin + layer, tensor.offset);
    };
    for (const PlacedTensor &current : it->second.current)
      function.shardings[getOp(current)->getResult(current.index)] =
          current.sharding;
    for (const PlacedTensor &given : it->second.given)
      function.given[getOp(given)->getResult(given.index)] = given.sharding;
    for (const PlacedTensor &needed : it->second.needed)
      function.needed[&getOp(needed)->getOpOperand(needed.index)] =
          needed.sharding;
  }
  return success(areReachable);
}

Decision RepeatedDecision::getWhole() const {
  Decision decision;
  std::vector<unsigned> indices;
  auto add = [&](unsigned begin, unsigned end, ArrayRef<unsigned> chosen) {
    decision.candidates.insert(decision.candidates.end(),
                               candidates.begin() + begin,
                               candidates.begin() + end);
    indices.insert(indices.end(), chosen.begin(), chosen.end());
  };
  ArrayRef<unsigned> own = choice.indices;
  add(0, elided.begin, own.take_front(elided.begin));
  for (unsigned kind : kindOf)
    add(elided.begin, elided.end, kinds[kind]);
  add(elided.end, graph.nodes.size(), own.drop_front(elided.end));
  decision.choice = {decision.candidates, std::move(indices), choice.cost,
                     choice.lowerBound};
  return decision;
}
