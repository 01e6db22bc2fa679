//===- RepeatedSearch.cpp - The search among equal layers -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RepeatedSearch.h"
#include "Candidates.h"
#include <map>
#include <set>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

/// The parts that stay in the smaller graph, at either end.
constexpr size_t kMargin = 2;
/// Parts are merged if there are at least this many.
constexpr size_t kMinParts = 2 * kMargin + 2;

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

FailureOr<std::unique_ptr<RepeatedDecision>>
propagation::searchRepeated(func::FuncOp function, StrategySpace &space,
                            MoveCosts &costs, MeshOp mesh,
                            const PropagationOptions &options) {
  std::unique_ptr<RepeatedDecision> none;
  if (!options.mergesRepeated ||
      options.strategy != PropagationStrategy::Optimal ||
      !function.getBody().hasOneBlock())
    return none;
  auto repetition = findRepetition(
      function.getBody().front(), kMinParts, kMargin,
      [&](Operation *op) { return space.getPlainRule(op).has_value(); });
  if (!repetition)
    return none;
  std::unique_ptr<RepeatedDecision> decision(
      new RepeatedDecision(mesh, space, std::move(*repetition)));
  Graph &graph = decision->graph;
  const FoldedParts &folded = decision->folded;
  if (failed(graph.addRoot(function, &decision->folded)))
    return failure();
  SmallVector<int64_t> priorities = graph.getPriorities();
  if (priorities.size() != 1 || !decision->doNodesCorrespond())
    return none;
  graph.followBatch();
  graph.spread(priorities.front());
  const Domains &candidates = decision->candidates =
      getCandidates(graph, space, costs, priorities.front(),
                    graph.numOps <= options.exhaustiveOps);
  costs.resetBudget();
  do {
    CostProblem problem(
        graph, candidates, space, costs, options.maxEntries,
        {folded.begin, folded.end,
         static_cast<unsigned>(folded.repetition.getNumInMiddle() + 1)});
    // If the part before the removed parts and the part behind them are alike,
    // so are all parts between them.
    if (problem.isSharingCut() ||
        !problem.areAlike(folded.before, folded.begin))
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
  // Parts that choose differently can't be planned one by one.
  return none;
}

SmallVector<size_t, 0> RepeatedDecision::getPlaces(ArrayRef<Node> nodes,
                                                   size_t part) const {
  SmallVector<size_t, 0> places;
  size_t place = 0;
  for (const Node &node : nodes) {
    while (node.op && folded.repetition.getOp(part, place) != node.op)
      ++place;
    places.push_back(place);
  }
  return places;
}

bool RepeatedDecision::doNodesCorrespond() const {
  const auto &[parts, before, begin, end] = folded;
  // Parts that share parameters with other code have fewer nodes.
  return getPlaces(getNodes(before, begin), parts.margin - 1) ==
         getPlaces(getNodes(begin, end), parts.count - parts.margin);
}

void RepeatedDecision::setChoice(const CostProblem &problem,
                                 MinSum::Solution solution) {
  choice = problem.getChoice(solution);
  kinds.clear();
  for (const std::vector<unsigned> &values : solution.partValues) {
    std::vector<unsigned> &kind = kinds.emplace_back();
    for (unsigned node = folded.begin; node < folded.end; ++node)
      kind.push_back(values[problem.getVariable(node) -
                            problem.getVariable(folded.begin)]);
  }
  kindOf = std::move(solution.parts);
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

ShardingAttr RepeatedDecision::getHave(const FlowValue &value,
                                       Neighbours layer) const {
  const auto &[parts, before, begin, end] = folded;
  bool isOwn = begin <= value.node && value.node < end;
  bool isPrevious = before <= value.node && value.node < begin;
  const Strategy &strategy =
      isOwn ? getStrategy(value.node, layer.own)
      : isPrevious && layer.previous != kFront
          ? getStrategy(value.node + (begin - before), layer.previous)
          : choice.get(value.node);
  return getForTensor<ShardingAttr>(strategy.results, value.result);
}

void RepeatedDecision::forEachMoveIn(Neighbours layer,
                                     MoveVisitor visit) const {
  for (unsigned node = folded.begin; node < folded.end; ++node) {
    const Strategy &strategy = getStrategy(node, layer.own);
    for (auto [operand, index] : llvm::enumerate(graph.nodes[node].operands)) {
      if (index == kNoValue)
        continue;
      const FlowValue &value = graph.values[index];
      ShardingAttr have = getHave(value, layer);
      auto need = getForTensor<ShardingAttr>(strategy.operands, operand);
      if (have == need)
        continue;
      for (const Use &use : value.uses)
        if (use.node == node && use.operand == operand)
          visit(value, use, have, need);
    }
  }
}

void RepeatedDecision::forEachMoveOutside(MoveVisitor visit) const {
  choice.forEachMove(graph, [&](const FlowValue &value, const Use &use,
                                ShardingAttr have, ShardingAttr need) {
    if (use.node < folded.begin || use.node >= folded.end)
      visit(value, use, have, need);
  });
}

void RepeatedDecision::forEachMove(MoveVisitor visit) const {
  forEachMoveOutside(visit);
  std::set<Neighbours> visited;
  for (size_t layer = 0; layer < kindOf.size(); ++layer)
    if (visited.insert(getNeighbours(layer)).second)
      forEachMoveIn(getNeighbours(layer), visit);
}

//===----------------------------------------------------------------------===//
// The decision for all layers
//===----------------------------------------------------------------------===//

namespace {
/// A placement of an operand or a result of the op at a place of a layer.
struct PlacedTensor {
  size_t place;
  unsigned index;
  ShardingAttr sharding;
};
struct PlacedLayer {
  SmallVector<PlacedTensor, 0> have, given, needed;
};
} // namespace

LogicalResult RepeatedDecision::extract(Propagation::Function &function,
                                        MeshOp mesh) const {
  const Repetition &parts = folded.repetition;
  const Instance &instance = graph.instances.front();
  function.op = instance.function;
  bool areReachable = true;
  auto verify = [&](const FlowValue &value, const Use &use, ShardingAttr have,
                    ShardingAttr need) {
    Operation *op = use.at ? use.at->getOwner() : graph.nodes[value.node].op;
    areReachable =
        areReachable && succeeded(verifyRedistribution(have, need, mesh, [&]() {
          return op->emitError();
        }));
  };
  for (auto [value, id] : instance.values)
    function.shardings[value] = choice.getHave(graph.values[id]);
  for (const FlowValue &value : graph.values)
    if (!value.value)
      function.given[graph.nodes[value.node].op->getResult(value.result)] =
          choice.getHave(value);
  forEachMoveOutside([&](const FlowValue &value, const Use &use,
                         ShardingAttr have, ShardingAttr need) {
    verify(value, use, have, need);
    if (use.at)
      function.needed[use.at] = need;
  });

  ArrayRef<Node> nodes = getNodes(folded.begin, folded.end);
  SmallVector<size_t, 0> places = getPlaces(nodes, parts.count - parts.margin);
  auto getLayer = [&](Neighbours layer) {
    PlacedLayer placed;
    for (auto [node, place] : llvm::zip_equal(nodes, places))
      for (unsigned index : node.results) {
        if (index == kNoValue)
          continue;
        const FlowValue &value = graph.values[index];
        ShardingAttr have = getHave(value, layer);
        if (value.value)
          placed.have.push_back(
              {place, cast<OpResult>(value.value).getResultNumber(), have});
        else
          placed.given.push_back({place, value.result, have});
      }
    forEachMoveIn(layer, [&](const FlowValue &value, const Use &use,
                             ShardingAttr have, ShardingAttr need) {
      verify(value, use, have, need);
      if (use.at)
        placed.needed.push_back({places[use.node - folded.begin],
                                 use.at->getOperandNumber(), need});
    });
    return placed;
  };
  std::map<Neighbours, PlacedLayer> layers;
  function.shardings.reserve(instance.values.size() +
                             kindOf.size() * nodes.size());
  for (size_t layer = 0; layer < kindOf.size(); ++layer) {
    auto [it, isNew] = layers.try_emplace(getNeighbours(layer));
    if (isNew)
      it->second = getLayer(it->first);
    auto getOp = [&](const PlacedTensor &tensor) {
      return parts.getOp(parts.margin + layer, tensor.place);
    };
    for (const PlacedTensor &have : it->second.have)
      function.shardings[getOp(have)->getResult(have.index)] = have.sharding;
    for (const PlacedTensor &given : it->second.given)
      function.given[getOp(given)->getResult(given.index)] = given.sharding;
    for (const PlacedTensor &needed : it->second.needed)
      function.needed[&getOp(needed)->getOpOperand(needed.index)] =
          needed.sharding;
  }
  return success(areReachable);
}

Decision RepeatedDecision::unfold() const {
  Decision decision;
  std::vector<unsigned> indices;
  auto add = [&](unsigned begin, unsigned end, ArrayRef<unsigned> chosen) {
    decision.candidates.insert(decision.candidates.end(),
                               candidates.begin() + begin,
                               candidates.begin() + end);
    indices.insert(indices.end(), chosen.begin(), chosen.end());
  };
  ArrayRef<unsigned> own = choice.indices;
  add(0, folded.begin, own.take_front(folded.begin));
  for (unsigned kind : kindOf)
    add(folded.begin, folded.end, kinds[kind]);
  add(folded.end, graph.nodes.size(), own.drop_front(folded.end));
  decision.choice = {decision.candidates, std::move(indices), choice.cost,
                     choice.lowerBound};
  return decision;
}
