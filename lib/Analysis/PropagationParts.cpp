//===- PropagationParts.cpp - What was decided for parts that repeat ------===//

#include "PropagationImpl.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

/// Whether the part before the missing ones and the one after them have the
/// same strategies, and pass values on alike: then all those between them do.
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

/// What the parts that aren't there do, by what was decided for them.
LogicalResult Propagation::Impl::extractParts(Function &function) {
  unsigned before = graph->partNodes[kRepeated - 1],
           begin = graph->partNodes[kRepeated],
           end = graph->partNodes[kRepeated + 1];
  size_t numMissing = getNumMissing(), period = repetition->period;
  DenseMap<Operation *, size_t> placeOf;
  for (size_t place = 0; place < period; ++place)
    placeOf[repetition->getOp(Graph::kMargin + numMissing, place)] = place;
  // The values of the part that stands for all, and what it takes.
  struct Given {
    const FlowValue *value;
    size_t place;
    unsigned result;
  };
  struct Taken {
    const FlowValue *value;
    Use use;
    size_t place;
    unsigned operand;
  };
  SmallVector<Given> givens;
  SmallVector<Taken> takens;
  llvm::SmallSetVector<unsigned, 16> sources;
  for (unsigned node = begin; node < end; ++node) {
    for (unsigned value : graph->nodes[node].operands)
      if (value != kNoValue)
        sources.insert(value);
    for (unsigned index : graph->nodes[node].results) {
      if (index == kNoValue)
        continue;
      const FlowValue &value = graph->values[index];
      OpResult result = value.value
                            ? cast<OpResult>(value.value)
                            : graph->nodes[node].op->getResult(value.result);
      givens.push_back(
          {&value, placeOf.at(result.getOwner()), result.getResultNumber()});
    }
  }
  for (unsigned source : sources)
    for (const Use &use : graph->values[source].uses)
      if (isRepeated(use.node))
        takens.push_back({&graph->values[source], use,
                          use.at ? placeOf.at(use.at->getOwner()) : 0,
                          use.at ? use.at->getOperandNumber() : 0});
  auto getValue = [&](size_t part, unsigned node) {
    return solution
        .partValues[solution.parts[part]][variables[node] - variables[begin]];
  };
  function.shardings.reserve(repetition->ops.size());
  for (size_t part = 0; part <= numMissing; ++part) {
    auto getOp = [&](size_t place) {
      return repetition->getOp(Graph::kMargin + part, place);
    };
    auto getGiven = [&](const FlowValue &value) {
      unsigned column = getColumn(domains[value.node]->results, value.result);
      unsigned choice = solution.values[variables[value.node]];
      if (value.node >= begin)
        choice = getValue(part, value.node);
      else if (value.node >= before && part > 0)
        choice = getValue(part - 1, value.node + (begin - before));
      return space.getColumn(column)[choice];
    };
    for (auto [value, place, result] : givens)
      (value->value ? function.shardings
                    : function.given)[getOp(place)->getResult(result)] =
          getGiven(*value);
    for (auto &[value, use, place, operand] : takens) {
      ShardingAttr have = getGiven(*value);
      ShardingAttr want = space.getColumn(getColumn(
          domains[use.node]->operands, use.operand))[getValue(part, use.node)];
      if (have == want)
        continue;
      Use here = use;
      if (use.at)
        here.at = &getOp(place)->getOpOperand(operand);
      if (failed(checkReachable(*value, here, have, want)))
        return failure();
      if (here.at)
        function.needed[here.at] = want;
    }
  }
  return success();
}

/// Makes the graph and the problem with all parts, and takes over what was
/// decided.
void Propagation::Impl::unfold() {
  std::vector<unsigned> values;
  std::vector<const Strategy *> strategies;
  unsigned begin = graph->partNodes[kRepeated],
           end = graph->partNodes[kRepeated + 1];
  unsigned first = variables[begin],
           last = first + solution.partValues.front().size();
  auto addNodes = [&](unsigned from, unsigned to, auto getValue) {
    for (unsigned node = from; node < to; ++node)
      strategies.push_back(
          &domains[node]->strategies[getValue(variables[node])]);
  };
  auto getWhole = [&](unsigned variable) { return solution.values[variable]; };
  values.assign(solution.values.begin(), solution.values.begin() + first);
  addNodes(0, begin, getWhole);
  for (unsigned part : solution.parts) {
    const std::vector<unsigned> &partValues = solution.partValues[part];
    llvm::append_range(values, partValues);
    addNodes(begin, end,
             [&](unsigned variable) { return partValues[variable - first]; });
  }
  values.insert(values.end(), solution.values.begin() + last,
                solution.values.end());
  addNodes(end, graph->nodes.size(), getWhole);

  repetition.reset();
  decided.clear();
  [[maybe_unused]] LogicalResult made = makeGraph();
  assert(succeeded(made) && "the graph was made before, in part");
  int64_t priority = graph->getPriorities().front();
  graph->spread(priority);
  chooseDomains(priority, isExhaustive);
  makeProblem(options.maxEntries);
  bool isSame = values.size() == problem->getNumVariables() &&
                strategies.size() == domains.size();
  for (size_t node = 0; isSame && node < domains.size(); ++node)
    isSame =
        strategies[node] == &domains[node]->strategies[values[variables[node]]];
  CommunicationCost bound = solution.lowerBound;
  if (isSame)
    solution.values = std::move(values);
  else
    solution = problem->solve(options.maxEntries);
  solution.lowerBound = bound;
}

SmallVector<Propagation::Alternative>
Propagation::Impl::getAlternatives(unsigned function, Operation *op,
                                   unsigned limit) {
  SmallVector<Alternative> alternatives;
  if (repetition)
    unfold();
  if (nodeOfOp.empty())
    for (auto [index, node] : llvm::enumerate(graph->nodes))
      if (node.op)
        nodeOfOp.try_emplace({node.instance, node.op}, index);
  auto found = nodeOfOp.find({instanceOf[function], op});
  if (found == nodeOfOp.end())
    return alternatives;
  unsigned node = found->second, chosen = solution.values[variables[node]];
  // The op, and the copies that follow it or stand before it.
  SmallVector<unsigned> together = {variables[node]};
  auto addCopies = [&](unsigned of) {
    for (auto it = llvm::lower_bound(copiesOf, std::pair(of, 0u));
         it != copiesOf.end() && it->first == of; ++it)
      together.push_back(it->second);
  };
  addCopies(node);
  for (unsigned value : graph->nodes[node].operands)
    addCopies(graph->values[value].node);
  auto costs = problem->getCosts(together, solution.values);
  for (auto [value, cost] : llvm::enumerate(costs)) {
    if (value == chosen || cost.isInfinite())
      continue;
    const Strategy &strategy = domains[node]->strategies[value];
    alternatives.push_back(
        {llvm::to_vector_of<ShardingAttr, 0>(strategy.operands),
         llvm::to_vector_of<ShardingAttr, 0>(strategy.results),
         cost - costs[chosen]});
  }
  llvm::stable_sort(alternatives, [](const auto &a, const auto &b) {
    return a.delta < b.delta;
  });
  if (alternatives.size() > limit)
    alternatives.truncate(limit);
  return alternatives;
}
