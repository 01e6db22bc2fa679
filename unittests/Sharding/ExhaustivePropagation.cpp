//===- ExhaustivePropagation.cpp - All placements of a program ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExhaustivePropagation.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Sharding/SplitInference.h"
#include "tp/Transforms/Utils.h"
#include <map>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::test;

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

CommunicationCost CostOptions::withVolume(CommunicationCost cost) {
  cost.volume =
      cost.bytes + latencyBytes * mesh.getNumRanks() * cost.collectives;
  cost.work = 0;
  return cost;
}

CommunicationCost CostOptions::getMove(ShardingAttr from, ShardingAttr to,
                                       RankedTensorType type,
                                       bool isParameter) {
  CommunicationCost cost = planner.getCost(from, to, type);
  if (cost.isInfinite())
    return cost;
  if (isParameter)
    cost.parameterBytes = cost.bytes;
  return withVolume(cost);
}

/// Bytes of an element of the first tensor.
static int64_t getWidth(Operation *op) {
  Type type = op->getNumOperands() ? op->getOperand(0).getType()
                                   : op->getResult(0).getType();
  return cast<RankedTensorType>(type).getElementTypeBitWidth() / 8;
}

CommunicationCost CostOptions::getOwn(ShardingRuleOpInterface op,
                                      const OpSplit &split) {
  const ShardingRule rule = op.getShardingRule();
  auto getNumParts = [&](unsigned factor) {
    return mesh.getAxesSize(split.factorAxes[factor]);
  };
  auto getLocal = [&](unsigned factor) {
    int64_t ranks = getNumParts(factor);
    return (rule.factors[factor].size + ranks - 1) / ranks;
  };
  CommunicationCost cost;
  for (unsigned factor = 0; factor < rule.factors.size(); ++factor) {
    int64_t ranks = getNumParts(factor);
    if (rule.factors[factor].kind != FactorKind::Collective || ranks == 1)
      continue;
    int64_t elements = 1;
    for (const DimFactors &dim : rule.operands.front())
      for (unsigned other : dim)
        elements *= other == factor ? 1 : getLocal(other);
    int64_t reductions = rule.factors[factor].reductions;
    cost.collectives += reductions;
    cost.bytes += 2 * (ranks - 1) * elements * getWidth(op) * reductions *
                  (mesh.getNumRanks() / ranks);
  }
  return withVolume(cost);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

ExhaustivePropagation::ExhaustivePropagation(func::FuncOp function,
                                             CostOptions options)
    : options(options) {
  MeshOp mesh = options.mesh;
  auto meshRef = FlatSymbolRefAttr::get(mesh.getSymNameAttr());
  auto orReplicated = [&](ShardingAttr sharding, Type type) {
    return sharding ? sharding
                    : ShardingAttr::getReplicated(
                          meshRef, cast<RankedTensorType>(type).getRank());
  };
  Block &block = function.getBody().front();
  for (BlockArgument argument : block.getArguments())
    addFixed({}, {addValue(argument, /*isParameter=*/false)},
             orReplicated(getArgSharding(function, argument.getArgNumber()),
                          argument.getType()));
  for (Operation &op : block.without_terminator()) {
    auto move = dyn_cast<RedistributeOp>(op);
    if (!move) {
      addOp(cast<ShardingRuleOpInterface>(op));
      continue;
    }
    unsigned input = numbers.at(move.getInput());
    addFixed({input}, {addValue(move.getResult(), values[input].isParameter)},
             move.getSharding());
  }
  for (OpOperand &operand : block.getTerminator()->getOpOperands())
    addFixed(
        {numbers.at(operand.get())}, {},
        orReplicated(getResultSharding(function, operand.getOperandNumber()),
                     operand.get().getType()));
}

unsigned ExhaustivePropagation::addValue(mlir::Value value, bool isParameter) {
  values.push_back({cast<RankedTensorType>(value.getType()), isParameter});
  return numbers[value] = values.size() - 1;
}

void ExhaustivePropagation::addStep(Step step) {
  auto getNumbers = [&](ArrayRef<ShardingAttr> of) {
    return llvm::map_to_vector(of, [&](ShardingAttr sharding) -> unsigned {
      placements.insert(sharding);
      return llvm::find(placements, sharding) - placements.begin();
    });
  };
  for (Way &way : step.ways) {
    way.needs = getNumbers(way.operands);
    way.gives = getNumbers(way.results);
  }
  for (unsigned value : step.operands)
    values[value].users.push_back(steps.size());
  steps.push_back(std::move(step));
}

void ExhaustivePropagation::addFixed(SmallVector<unsigned> operands,
                                     SmallVector<unsigned> results,
                                     ShardingAttr sharding) {
  Way way{SmallVector<ShardingAttr>(operands.size(), sharding),
          SmallVector<ShardingAttr>(results.size(), sharding)};
  addStep({std::move(operands), std::move(results), {std::move(way)}});
}

void ExhaustivePropagation::addOp(ShardingRuleOpInterface op) {
  SmallVector<ShardingAttr> fixed = getResultShardings(op);
  if (!fixed.empty() && op->getNumOperands() == 0) {
    addFixed({}, {addValue(op->getResult(0), !fixed.front().isReplicated())},
             fixed.front());
    return;
  }
  Step step;
  for (mlir::Value operand : op->getOperands())
    step.operands.push_back(numbers.at(operand));
  // What is computed from parameters alone is one.
  bool isParameter =
      !step.operands.empty() && llvm::all_of(step.operands, [&](unsigned v) {
        return values[v].isParameter;
      });
  for (mlir::Value result : op->getResults())
    step.results.push_back(addValue(result, isParameter));
  const ShardingRule rule = op.getShardingRule();
  for (const OpSplit &split : getSplits(rule)) {
    Way way;
    for (unsigned i = 0; i < rule.operands.size(); ++i)
      way.operands.push_back(getOperandSharding(rule, split, i));
    for (unsigned i = 0; i < rule.results.size(); ++i)
      way.results.push_back(tp::getResultSharding(rule, split, i));
    if (llvm::is_contained(way.operands, ShardingAttr()) ||
        llvm::is_contained(way.results, ShardingAttr()))
      continue;
    way.cost = options.getOwn(op, split);
    // Of ways with equal placements, the cheapest.
    auto same = llvm::find_if(step.ways, [&](const Way &other) {
      return other.operands == way.operands && other.results == way.results;
    });
    if (same == step.ways.end())
      step.ways.push_back(std::move(way));
    else
      same->cost = std::min(same->cost, way.cost);
  }
  SmallVector<unsigned> results = step.results;
  addStep(std::move(step));
  // The results are redistributed to the placements that the IR fixes.
  for (auto [given, result, sharding] :
       llvm::zip(results, op->getResults(), fixed))
    addFixed({given}, {addValue(result, isParameter)}, sharding);
}

std::vector<OpSplit>
ExhaustivePropagation::getSplits(const ShardingRule &rule) {
  std::vector<OpSplit> splits = {getReplicatedSplit(rule, options.mesh)};
  MeshOp mesh = options.mesh;
  for (size_t i = 0; i < mesh.getNumAxes(); ++i) {
    auto axis = AxisRefAttr::get(mesh.getContext(), mesh.getAxisName(i));
    for (size_t j = 0, e = splits.size(); j < e; ++j) {
      for (unsigned set = 0; set + rule.numOnce < rule.linearSets.size();
           ++set) {
        OpSplit split = splits[j];
        split.linearAxes.push_back({set, axis});
        splits.push_back(std::move(split));
      }
      for (unsigned factor = 0; factor < rule.factors.size(); ++factor) {
        OpSplit split = splits[j];
        if (!canSplit(rule, split, factor, axis))
          continue;
        for (size_t place = 0; place <= split.factorAxes[factor].size();
             ++place) {
          OpSplit nested = split;
          auto &own = nested.factorAxes[factor];
          own.insert(own.end() - place, axis);
          splits.push_back(std::move(nested));
        }
      }
    }
  }
  return splits;
}

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

SmallVector<unsigned> ExhaustivePropagation::getOrder() const {
  // Sources come before their first use, ends behind what they take.
  std::vector<unsigned> definitions(values.size());
  for (auto [index, step] : llvm::enumerate(steps))
    for (unsigned value : step.results)
      definitions[value] = index;
  llvm::SmallSetVector<unsigned, 32> order;
  for (auto [index, step] : llvm::enumerate(steps)) {
    if (step.operands.empty())
      continue;
    for (unsigned value : step.operands)
      order.insert(definitions[value]);
    order.insert(index);
    for (unsigned value : step.results)
      for (unsigned user : values[value].users)
        if (steps[user].results.empty())
          order.insert(user);
  }
  return order.takeVector();
}

const CommunicationCost &
ExhaustivePropagation::getMove(unsigned value, unsigned from, unsigned to) {
  auto [it, inserted] = moves.try_emplace({value, from, to});
  if (inserted)
    it->second = options.getMove(placements[from], placements[to],
                                 values[value].type, values[value].isParameter);
  return it->second;
}

ExhaustivePropagation::Outcome
ExhaustivePropagation::run(const CommunicationCost &limit) {
  // The states of a step times the ways to run the next one.
  constexpr size_t kMaxWork = 2'000'000;
  SmallVector<unsigned> order = getOrder();
  std::vector<unsigned> lastUse(values.size(), 0);
  for (auto [place, step] : llvm::enumerate(order))
    for (unsigned value : steps[step].operands)
      lastUse[value] = place;
  // A state has, for each value in use, the placement that it was given, then
  // those that it was brought to at a cost, then kEnd.
  constexpr unsigned kEnd = ~0u;
  using State = std::vector<unsigned>;
  SmallVector<unsigned> live;
  std::map<State, CommunicationCost> states = {{{}, {}}};
  for (auto [place, index] : llvm::enumerate(order)) {
    const Step &step = steps[index];
    SmallVector<unsigned> liveAfter;
    for (unsigned value : llvm::concat<const unsigned>(live, step.results))
      if (lastUse[value] > place)
        liveAfter.push_back(value);
    if (states.size() * step.ways.size() > kMaxWork)
      return Outcome::TooLarge;
    std::map<State, CommunicationCost> next;
    std::map<unsigned, std::vector<unsigned>> have;
    for (const auto &[state, before] : states)
      for (const Way &way : step.ways) {
        have.clear();
        size_t at = 0;
        for (unsigned value : live) {
          auto &list = have[value];
          for (; state[at] != kEnd; ++at)
            list.push_back(state[at]);
          ++at;
        }
        CommunicationCost cost = before + way.cost;
        for (auto [value, want] : llvm::zip_equal(step.operands, way.needs)) {
          auto &list = have[value];
          if (llvm::is_contained(list, want))
            continue;
          const CommunicationCost &move = getMove(value, list[0], want);
          if (move == CommunicationCost())
            continue;
          cost += move;
          list.insert(std::upper_bound(list.begin() + 1, list.end(), want),
                      want);
        }
        if (limit < cost)
          continue;
        for (auto [value, gives] : llvm::zip_equal(step.results, way.gives))
          have[value] = {gives};
        State after;
        for (unsigned value : liveAfter) {
          llvm::append_range(after, have[value]);
          after.push_back(kEnd);
        }
        auto [it, inserted] = next.try_emplace(std::move(after), cost);
        if (!inserted)
          it->second = std::min(it->second, cost);
      }
    states = std::move(next);
    live = std::move(liveAfter);
  }
  if (states.empty())
    return Outcome::None;
  least = states.begin()->second;
  return Outcome::Found;
}
