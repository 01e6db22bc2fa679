//===- PropagationParts.cpp - What was decided for parts that repeat ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PropagationImpl.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

/// Whether the part before the missing parts and the part after them have the
/// same strategies and pass values on alike; then all parts between them do,
/// too.
bool Propagation::Impl::isSteady(ArrayRef<Flow> flows) const {
  unsigned before = graph->partNodes[kRepeated - 1],
           begin = graph->partNodes[kRepeated],
           end = graph->partNodes[kRepeated + 1];
  if (end - begin != begin - before)
    return false;
  for (unsigned node = before; node < begin; ++node)
    if (domains[node] != domains[node + (begin - before)] ||
        variables[node] + (variables[begin] - variables[before]) !=
            variables[node + (begin - before)])
      return false;
  auto getFlows = [&](unsigned from, unsigned to) {
    auto getFirst = [&](unsigned node) {
      return llvm::partition_point(
          flows, [&](const Flow &flow) { return flow.value->node < node; });
    };
    return llvm::make_range(getFirst(from), getFirst(to));
  };
  return llvm::equal(
      getFlows(before, begin), getFlows(begin, end),
      [](const Flow &a, const Flow &b) { return a.kind == b.kind; });
}

/// The placement of `value` as seen from repeated part `part`: a value of that
/// part, of the part before it, or one from outside the parts.
ShardingAttr Propagation::Impl::getSharding(const FlowValue &value,
                                            size_t part) const {
  unsigned before = graph->partNodes[kRepeated - 1], begin = getRepeatedBegin();
  unsigned choice = solution.values[variables[value.node]];
  if (value.node >= begin)
    choice = getValue(part, value.node);
  else if (value.node >= before && part > 0)
    choice = getValue(part - 1, value.node + (begin - before));
  return space.getColumn(
      getColumn(domains[value.node]->results, value.result))[choice];
}

void Propagation::Impl::forEachMove(
    function_ref<void(const FlowValue &value, const Use &use, ShardingAttr have,
                      ShardingAttr want)>
        visit) const {
  auto visitUnlessSame = [&](const FlowValue &value, const Use &use,
                             ShardingAttr have, ShardingAttr want) {
    if (have != want)
      visit(value, use, have, want);
  };
  for (const FlowValue &value : graph->values)
    for (const Use &use : value.uses)
      // Repeated parts are visited below: they may take values of a missing
      // part.
      if (!repetition || !isRepeated(use.node))
        visitUnlessSame(value, use, getSharding(value), getNeeded(use));
  if (!repetition)
    return;
  size_t numMissing = getNumMissing();
  DenseMap<Operation *, size_t> placeOf = getPlaces();
  for (const FlowValue &value : graph->values)
    for (const Use &use : value.uses) {
      if (!isRepeated(use.node))
        continue;
      ArrayRef<ShardingAttr> column =
          space.getColumn(getColumn(domains[use.node]->operands, use.operand));
      for (size_t part = 0; part <= numMissing; ++part) {
        Use here = use;
        if (use.at)
          here.at = &repetition
                         ->getOp(Graph::kMargin + part,
                                 placeOf.at(use.at->getOwner()))
                         ->getOpOperand(use.at->getOperandNumber());
        visitUnlessSame(value, here, getSharding(value, part),
                        column[getValue(part, use.node)]);
      }
    }
}

/// The places of the ops of the part that also stands for the missing ones.
DenseMap<Operation *, size_t> Propagation::Impl::getPlaces() const {
  DenseMap<Operation *, size_t> places;
  for (size_t place = 0; place < repetition->period; ++place)
    places[repetition->getOp(Graph::kMargin + getNumMissing(), place)] = place;
  return places;
}

/// Sets the placements of the missing parts' results, as they were decided.
void Propagation::Impl::extractParts(Function &function) {
  DenseMap<Operation *, size_t> placeOf = getPlaces();
  function.shardings.reserve(repetition->ops.size());
  for (const FlowValue &value : graph->values) {
    if (!isRepeated(value.node))
      continue;
    Operation *op = graph->nodes[value.node].op;
    OpResult result =
        value.value ? cast<OpResult>(value.value) : op->getResult(value.result);
    auto &given = value.value ? function.shardings : function.given;
    for (size_t part = 0; part <= getNumMissing(); ++part)
      given[repetition
                ->getOp(Graph::kMargin + part, placeOf.at(result.getOwner()))
                ->getResult(result.getResultNumber())] =
          getSharding(value, part);
  }
}

/// Rebuilds the graph with all parts, and all candidates including those that
/// the search removed. Keeps what was decided.
void Propagation::Impl::unfold() {
  std::vector<const Strategy *> strategies = std::move(decided);
  if (repetition) {
    unsigned begin = graph->partNodes[kRepeated],
             end = graph->partNodes[kRepeated + 1];
    std::vector<const Strategy *> parts;
    for (size_t part = 0; part < getNumMissing(); ++part)
      for (unsigned node = begin; node < end; ++node)
        parts.push_back(&domains[node]->strategies[getValue(part, node)]);
    strategies.insert(strategies.begin() + begin, parts.begin(), parts.end());
    repetition.reset();
    [[maybe_unused]] LogicalResult made = makeGraph();
    assert(succeeded(made) && "the graph was made before, in part");
  }
  decided = std::move(strategies);
  int64_t priority = graph->getPriorities().back();
  graph->spread(priority);
  chooseDomains(priority, isExhaustive);
  for (auto [index, node] : llvm::enumerate(graph->nodes))
    if (node.op)
      nodeOfOp.try_emplace({node.instance, node.op}, index);
}

/// The cost of `node` and of the moves of its operands and results, if it has
/// `strategy` and all other nodes have what was decided. Uses that need the
/// same placement share a move.
CommunicationCost Propagation::Impl::getCostAt(unsigned node,
                                               const Strategy &strategy,
                                               Price price) {
  auto getStrategy = [&](unsigned other) -> const Strategy & {
    return other == node ? strategy : *decided[other];
  };
  auto get = [](ArrayRef<ShardingAttr> list, unsigned tensor) {
    return list[std::min<size_t>(tensor, list.size() - 1)];
  };
  CommunicationCost cost = strategy.cost;
  addVolume(cost);
  llvm::SmallSetVector<unsigned, 8> values(llvm::from_range,
                                           graph->nodes[node].operands);
  values.insert_range(graph->nodes[node].results);
  values.remove(kNoValue);
  for (unsigned index : values) {
    const FlowValue &value = graph->values[index];
    ShardingAttr have = get(getStrategy(value.node).results, value.result);
    llvm::SmallSetVector<ShardingAttr, 4> wanted;
    for (const Use &use : value.uses)
      if (use.node != value.node)
        wanted.insert(get(getStrategy(use.node).operands, use.operand));
    for (ShardingAttr want : wanted)
      cost += getCost(value, have, want, price);
  }
  return cost;
}

SmallVector<Propagation::Alternative>
Propagation::Impl::getAlternatives(unsigned function, Operation *op,
                                   unsigned limit) {
  if (limit == 0)
    return {};
  if (nodeOfOp.empty())
    unfold();
  auto found = nodeOfOp.find({instanceOf[function], op});
  if (found == nodeOfOp.end())
    return {};
  unsigned node = found->second;
  const Strategy &chosen = *decided[node];
  CommunicationCost cost = getCostAt(node, chosen, Price::Planned);
  std::vector<std::pair<CommunicationCost, const Strategy *>> others;
  for (const Strategy &strategy : domains[node]->strategies)
    if (strategy.operands != chosen.operands ||
        strategy.results != chosen.results)
      others.push_back({getCostAt(node, strategy, Price::Bound), &strategy});
  llvm::stable_sort(others, llvm::less_first());
  // Once there are enough alternatives, plans only those that may cost less
  // than one of them.
  SmallVector<Alternative> alternatives;
  for (auto [bound, strategy] : others) {
    if (bound.isInfinite() || (alternatives.size() == limit &&
                               !(bound - cost < alternatives.back().delta)))
      break;
    CommunicationCost exact = getCostAt(node, *strategy, Price::Planned);
    Alternative alternative = {
        llvm::to_vector_of<ShardingAttr, 0>(strategy->operands),
        llvm::to_vector_of<ShardingAttr, 0>(strategy->results), exact - cost};
    alternatives.insert(
        llvm::upper_bound(alternatives, alternative,
                          [](const Alternative &a, const Alternative &b) {
                            return a.delta < b.delta;
                          }),
        std::move(alternative));
    if (alternatives.size() > limit)
      alternatives.pop_back();
  }
  return alternatives;
}
