//===- CandidatePruning.cpp - Candidates that no cheapest choice has ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Candidates.h"
#include "CostProblem.h"
#include "tp/Sharding/Propagation/FlowBound.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

using Cost = FlowBound::Cost;

/// The weight of a byte of parameters, if parameters have to move.
constexpr Cost kParameterWeight = 64;

namespace {

/// What is counted: the communication, with no parameters allowed to move; the
/// bytes of parameters that move; or both together.
enum class Counted { Volume, Parameters, Both };

class Bounding {
public:
  Bounding(const Graph &graph, StrategySpace &space, MoveCosts &costs,
           CostProblem &problem)
      : graph(graph), space(space), costs(costs), problem(problem),
        domains(problem.getDomains()) {}

  /// Bounds the sum of the counted costs; null if sums might be rounded.
  std::unique_ptr<FlowBound> run(Counted counted);

private:
  void addFlow(const FlowValue &value, Counted counted, FlowBound &bound,
               std::vector<std::optional<unsigned>> &moves);

  const Graph &graph;
  StrategySpace &space;
  MoveCosts &costs;
  CostProblem &problem;
  const Domains &domains;
};

} // namespace

static Cost getScalar(CommunicationCost cost, Counted counted) {
  if (cost.isInfinite() ||
      (counted == Counted::Volume && cost.parameterBytes > 0))
    return FlowBound::kInfinite;
  Cost parameters = cost.parameterBytes, volume = cost.volume;
  switch (counted) {
  case Counted::Volume:
    return volume;
  case Counted::Parameters:
    return parameters;
  case Counted::Both:
    return volume + kParameterWeight * parameters;
  }
  llvm_unreachable("all are there");
}

void Bounding::addFlow(const FlowValue &value, Counted counted,
                       FlowBound &bound,
                       std::vector<std::optional<unsigned>> &moves) {
  const FlowKind &kind = problem.getFlowKind(value);
  if (kind.uses.empty())
    return;
  llvm::SmallMapVector<ShardingAttr, unsigned, 16> had, wanted;
  auto getPort = [&](unsigned node, unsigned column, auto &states) {
    auto numbers = llvm::map_to_vector(
        space.getDistinct(column), [&](ShardingAttr placement) {
          return states.try_emplace(placement, states.size()).first->second;
        });
    FlowBound::Port port = {node, {}};
    for (unsigned index : space.getIndices(column))
      port.states.push_back(numbers[index]);
    return port;
  };
  auto definition = getPort(value.node, getColumn(domains, value), had);
  std::vector<FlowBound::Port> uses;
  for (unsigned index : kind.uses) {
    const Use &use = value.uses[index];
    uses.push_back(getPort(use.node, getColumn(domains, use), wanted));
  }
  if (kind.number >= moves.size())
    moves.resize(kind.number + 1);
  std::optional<unsigned> &known = moves[kind.number];
  if (!known) {
    std::vector<Cost> scalars;
    for (auto &[from, index] : had)
      for (auto &[to, other] : wanted)
        scalars.push_back(getScalar(costs.get(value, from, to), counted));
    known = bound.addMoves(had.size(), wanted.size(), scalars);
  }
  bound.addValue(*known, std::move(definition), std::move(uses));
}

std::unique_ptr<FlowBound> Bounding::run(Counted counted) {
  auto bound = std::make_unique<FlowBound>();
  for (auto [node, domain] : llvm::zip_equal(graph.nodes, domains)) {
    std::vector<Cost> own;
    for (const Strategy &strategy : domain->strategies)
      own.push_back(getScalar(costs.getOwn(node, strategy), counted));
    bound->addVariable(std::move(own));
  }
  std::vector<std::optional<unsigned>> moves;
  for (const FlowValue &value : graph.values)
    addFlow(value, counted, *bound, moves);
  if (!bound->isExact())
    return nullptr;
  bound->run(costs.getBudget());
  costs.spend(bound->getNumEntries());
  return bound;
}

/// If parameters needn't move, no cheapest choice moves any. Otherwise all
/// cheapest choices move as few bytes of parameters as possible. Once that
/// number is known exactly, it is a constant that can be counted with the rest.
Pruned propagation::prune(const Graph &graph, StrategySpace &space,
                          MoveCosts &costs, CostProblem &problem) {
  Pruned pruned{problem.getDomains(), {}, {}};
  Bounding bounding(graph, space, costs, problem);
  Cost parameterBytes = 0, counted = 0;
  auto bound = bounding.run(Counted::Volume);
  if (bound && bound->getCost() == FlowBound::kInfinite) {
    auto parameters = bounding.run(Counted::Parameters);
    if (!parameters || parameters->getCost() == FlowBound::kInfinite ||
        parameters->getLowerBound() < parameters->getCost())
      return pruned;
    parameterBytes = parameters->getCost();
    counted = kParameterWeight * parameterBytes;
    bound = bounding.run(Counted::Both);
    if (!bound || bound->getCost() == FlowBound::kInfinite ||
        parameters->evaluate(bound->getValues()) > parameterBytes)
      return pruned;
  }
  if (!bound)
    return pruned;
  pruned.lowerBound.parameterBytes = static_cast<int64_t>(parameterBytes);
  pruned.lowerBound.volume =
      std::max<int64_t>(bound->getLowerBound() - counted, 0);
  for (auto [index, value] : llvm::enumerate(bound->getValues()))
    pruned.choice.push_back(&pruned.domains[index]->strategies[value]);
  for (auto [index, domain] : llvm::enumerate(pruned.domains)) {
    llvm::BitVector kept = bound->getKept(index);
    if (!kept.all())
      domain = space.getPart(domain, kept);
  }
  return pruned;
}
