//===- PropagationBound.cpp - Candidates that no cheapest choice has ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PropagationImpl.h"
#include "tp/Sharding/Propagation/FlowBound.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

using Cost = FlowBound::Cost;

/// The weight of a byte of parameters, if parameters have to move.
constexpr Cost kParameterWeight = 64;

Cost Propagation::Impl::getScalar(CommunicationCost cost,
                                  Counted counted) const {
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

void Propagation::Impl::addFlow(const FlowValue &value, Counted counted,
                                FlowBound &bound,
                                std::vector<std::optional<unsigned>> &moves) {
  const FlowKind &kind = getFlowKind(value);
  if (kind.uses.empty())
    return;
  llvm::SmallMapVector<ShardingAttr, unsigned, 16> had, wanted;
  auto getPort = [&](unsigned node, ArrayRef<unsigned> columns, unsigned tensor,
                     auto &places) {
    unsigned column = getColumn(columns, tensor);
    auto numbers = llvm::map_to_vector(
        space.getDistinct(column), [&](ShardingAttr placement) {
          return places.try_emplace(placement, places.size()).first->second;
        });
    FlowBound::Port port = {node, {}};
    for (unsigned index : space.getIndices(column))
      port.places.push_back(numbers[index]);
    return port;
  };
  auto definition =
      getPort(value.node, domains[value.node]->results, value.result, had);
  std::vector<FlowBound::Port> uses;
  for (unsigned index : kind.uses) {
    const Use &use = value.uses[index];
    uses.push_back(
        getPort(use.node, domains[use.node]->operands, use.operand, wanted));
  }
  if (kind.number >= moves.size())
    moves.resize(kind.number + 1);
  std::optional<unsigned> &known = moves[kind.number];
  if (!known) {
    std::vector<Cost> costs;
    for (auto &[from, index] : had)
      for (auto &[to, other] : wanted)
        costs.push_back(getScalar(getCost(value, from, to), counted));
    known = bound.addMoves(had.size(), wanted.size(), costs);
  }
  bound.addValue(*known, std::move(definition), std::move(uses));
}

/// Bounds the sum of the counted costs; null if sums might be rounded.
std::unique_ptr<FlowBound> Propagation::Impl::makeBound(Counted counted) {
  auto bound = std::make_unique<FlowBound>();
  for (const Domain *domain : domains) {
    std::vector<Cost> costs;
    for (const Strategy &strategy : domain->strategies) {
      CommunicationCost cost = strategy.cost;
      addVolume(cost);
      costs.push_back(getScalar(cost, counted));
    }
    bound->addVariable(std::move(costs));
  }
  std::vector<std::optional<unsigned>> moves;
  for (const FlowValue &value : graph->values)
    addFlow(value, counted, *bound, moves);
  if (!bound->isExact())
    return nullptr;
  bound->run(budget);
  spend(bound->getNumEntries());
  return bound;
}

/// Keeps only the candidates that a cheapest choice may have. If parameters
/// needn't move, no cheapest choice moves any. Otherwise all cheapest choices
/// move as few bytes of parameters as possible. Once that number is known
/// exactly, it is a constant that can be counted with the rest.
Propagation::Impl::Pruned Propagation::Impl::prune() {
  Pruned pruned;
  Cost parameterBytes = 0, counted = 0;
  auto bound = makeBound(Counted::Volume);
  if (bound && bound->getCost() == FlowBound::kInfinite) {
    auto parameters = makeBound(Counted::Parameters);
    if (!parameters || parameters->getCost() == FlowBound::kInfinite ||
        parameters->getLowerBound() < parameters->getCost())
      return pruned;
    parameterBytes = parameters->getCost();
    counted = kParameterWeight * parameterBytes;
    bound = makeBound(Counted::Both);
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
    pruned.choice.push_back(&domains[index]->strategies[value]);
  for (auto [index, domain] : llvm::enumerate(domains)) {
    llvm::BitVector kept = bound->getKept(index);
    if (!kept.all())
      domain = space.getPart(domain, kept);
  }
  return pruned;
}
