//===- RepeatedSearch.cpp - The search among equal layers -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RepeatedSearch.h"
#include "Candidates.h"
#include "CostProblem.h"
#include "Repetition.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

/// The parts that stay in the smaller graph, at either end.
constexpr size_t kMargin = 2;
/// Parts are merged if there are at least this many.
constexpr size_t kMinParts = 2 * kMargin + 2;

namespace {

/// A graph without the nodes and values of the parts in the middle. Nodes and
/// values behind them keep their order.
class FoldedGraph {
public:
  /// Null if the parts' nodes don't correspond.
  static std::unique_ptr<FoldedGraph> get(const Graph &whole,
                                          const Repetition &repetition,
                                          StrategySpace &space, MeshOp mesh);

  Graph graph;
  size_t numRemoved;

  /// The last part but one, which stands for itself and the removed ones.
  RepeatedNodes getRepeated() const {
    return {nodes.begin, nodes.begin + nodes.perPart,
            static_cast<unsigned>(numRemoved + 1)};
  }
  /// Calls `give` for each node of the whole graph, in order, with its node in
  /// this graph and, for repeated nodes, the number of the part.
  void unfold(
      function_ref<void(unsigned node, std::optional<size_t> part)> give) const;

private:
  /// Consecutive numbers of which some are removed.
  struct Numbers {
    unsigned begin, perPart, end;
    bool isRemoved(unsigned number) const {
      return begin <= number && number < end;
    }
    /// The number in the smaller graph. What the removed part before the
    /// repeated one gives comes from the last part in front of the removed
    /// ones.
    unsigned fold(unsigned number) const {
      return number < begin ? number : number - (end - begin);
    }
  };

  FoldedGraph(MeshOp mesh, StrategySpace &space, size_t numRemoved,
              Numbers nodes, Numbers values)
      : graph(mesh, space), numRemoved(numRemoved), nodes(nodes),
        values(values) {}
  void addNodes(const Graph &whole);
  void addValues(const Graph &whole);

  Numbers nodes, values;
};

} // namespace

std::unique_ptr<FoldedGraph> FoldedGraph::get(const Graph &whole,
                                              const Repetition &repetition,
                                              StrategySpace &space,
                                              MeshOp mesh) {
  ArrayRef<Node> all = whole.nodes;
  auto find = [&](size_t part) -> unsigned {
    Operation *first = repetition.getOp(part, 0);
    return llvm::find_if(all,
                         [&](const Node &node) { return node.op == first; }) -
           all.begin();
  };
  size_t numRemoved = repetition.count - 2 * kMargin;
  unsigned begin = find(kMargin), end = find(kMargin + numRemoved),
           perPart = find(kMargin + 1) - begin;
  // Parts that share parameters with other code have fewer nodes.
  auto isPart = [&](unsigned from, size_t part) {
    if (from > all.size() || perPart > all.size() - from)
      return false;
    size_t place = 0;
    for (const Node &node : all.slice(from, perPart)) {
      while (node.op && place < repetition.period &&
             repetition.getOp(part, place) != node.op)
        ++place;
      if (place == repetition.period)
        return false;
    }
    return true;
  };
  if (end != begin + numRemoved * perPart || begin < perPart ||
      !isPart(begin - perPart, kMargin - 1) ||
      !isPart(end, kMargin + numRemoved))
    return nullptr;
  // Values of the parts and behind them follow those of the nodes before them.
  auto findValue = [&](unsigned node) -> unsigned {
    return llvm::find_if(
               whole.values,
               [&](const FlowValue &value) { return value.node >= node; }) -
           whole.values.begin();
  };
  Numbers nodes{begin, perPart, end};
  Numbers values{findValue(begin),
                 findValue(begin + perPart) - findValue(begin), findValue(end)};
  std::unique_ptr<FoldedGraph> folded(
      new FoldedGraph(mesh, space, numRemoved, nodes, values));
  folded->addNodes(whole);
  folded->addValues(whole);
  folded->graph.numOps = whole.numOps;
  Instance &instance = folded->graph.instances.emplace_back();
  instance.function = whole.instances.front().function;
  for (BlockArgument argument : instance.function.getArguments())
    if (auto it = whole.instances.front().values.find(argument);
        it != whole.instances.front().values.end())
      instance.values.insert(*it);
  folded->graph.followBatch();
  return folded;
}

void FoldedGraph::addNodes(const Graph &whole) {
  for (auto [index, node] : llvm::enumerate(whole.nodes)) {
    if (nodes.isRemoved(index))
      continue;
    Node &kept = graph.nodes.emplace_back(node);
    for (unsigned &value : llvm::concat<unsigned>(kept.operands, kept.results))
      if (value != kNoValue)
        value = values.fold(value);
  }
}

void FoldedGraph::addValues(const Graph &whole) {
  auto addUses = [&](FlowValue &to, const FlowValue &from) {
    for (Use use : from.uses)
      if (!nodes.isRemoved(use.node)) {
        use.node = nodes.fold(use.node);
        to.uses.push_back(use);
      }
  };
  for (auto [index, value] : llvm::enumerate(whole.values)) {
    if (values.isRemoved(index)) {
      // Only the last removed part has uses in the repeated part.
      if (index + values.perPart >= values.end)
        addUses(graph.values[values.fold(index)], value);
      continue;
    }
    FlowValue &kept = graph.values.emplace_back(value);
    kept.node = nodes.fold(value.node);
    kept.uses.clear();
    addUses(kept, value);
  }
}

void FoldedGraph::unfold(
    function_ref<void(unsigned node, std::optional<size_t> part)> give) const {
  for (unsigned node = 0; node < nodes.begin; ++node)
    give(node, std::nullopt);
  for (size_t part = 0; part <= numRemoved; ++part)
    for (unsigned place = 0; place < nodes.perPart; ++place)
      give(nodes.begin + place, part);
  for (unsigned node = nodes.begin + nodes.perPart; node < graph.nodes.size();
       ++node)
    give(node, std::nullopt);
}

std::optional<RepeatedDecision>
propagation::searchRepeated(const Graph &graph, StrategySpace &space,
                            MoveCosts &costs, MeshOp mesh,
                            const PropagationOptions &options) {
  if (!options.mergesRepeated || graph.instances.size() != 1 ||
      options.strategy != PropagationStrategy::Optimal)
    return std::nullopt;
  func::FuncOp function = graph.instances.front().function;
  auto repetition = findRepetition(
      function.getBody().front(), kMinParts, kMargin,
      [&](Operation *op) { return space.getPlainRule(op).has_value(); });
  SmallVector<int64_t> priorities = graph.getPriorities();
  if (!repetition || priorities.size() != 1)
    return std::nullopt;
  auto folded = FoldedGraph::get(graph, *repetition, space, mesh);
  if (!folded)
    return std::nullopt;
  folded->graph.spread(priorities.front());
  const Domains candidates =
      getCandidates(folded->graph, space, costs, priorities.front(),
                    graph.numOps <= options.exhaustiveOps);
  const RepeatedNodes repeated = folded->getRepeated();
  RepeatedDecision decision;
  decision.numMerged = folded->numRemoved;
  decision.candidates.reserve(graph.nodes.size());
  folded->unfold([&](unsigned node, std::optional<size_t>) {
    decision.candidates.push_back(candidates[node]);
  });
  decision.choice.domains = decision.candidates;
  costs.resetBudget();
  do {
    CostProblem problem(folded->graph, candidates, space, costs,
                        options.maxEntries, repeated);
    // If the part before the removed parts and the part behind them are alike,
    // so are all parts between them.
    unsigned perPart = repeated.end - repeated.begin;
    if (problem.isSharingCut() ||
        !problem.areAlike(repeated.begin - perPart, repeated.begin))
      return std::nullopt;
    auto solution = problem.solveRepeated(options.maxEntries);
    if (!solution)
      return std::nullopt;
    Choice &choice = decision.choice;
    choice.indices.clear();
    choice.indices.reserve(graph.nodes.size());
    folded->unfold([&](unsigned node, std::optional<size_t> part) {
      unsigned variable = problem.getVariable(node);
      choice.indices.push_back(
          part
              ? solution
                    ->partValues[solution->parts[*part]]
                                [variable - problem.getVariable(repeated.begin)]
              : solution->values[variable]);
    });
    choice.cost = solution->cost;
    choice.lowerBound = solution->lowerBound;
    if (costs.planMoves(graph, choice, decision.candidates))
      return decision;
  } while (costs.getBudget() > 0);
  // Parts that choose differently can't be planned one by one.
  return std::nullopt;
}
