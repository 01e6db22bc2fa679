//===- CostProblem.cpp - Min-sum problem of a graph -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CostProblem.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

/// The most shared copies of a value that the problem has variables for; if a
/// value has more, costs are counted too high.
constexpr unsigned kMaxCopies = 2;

CostProblem::CostProblem(const Graph &graph, Domains of, StrategySpace &space,
                         MoveCosts &costs, size_t maxCopyEntries,
                         RepeatedLayer repeated)
    : space(space), costs(costs), maxCopyEntries(maxCopyEntries),
      domains(std::move(of)) {
  DenseMap<const Domain *, TableId> ownCosts;
  // A node's copies follow it, so that in a search in the variables' order,
  // each use finds them decided.
  for (auto [index, node, domain] : llvm::enumerate(graph.nodes, domains)) {
    if (index == repeated.begin)
      sum.beginRepeated(repeated.count);
    if (index == repeated.end)
      sum.endRepeated();
    variables.push_back(sum.addVariable(domain->strategies.size()));
    auto getTable = [&, &node = node, &domain = domain]() {
      std::vector<CommunicationCost> own;
      for (const Strategy &strategy : domain->strategies)
        own.push_back(costs.getOwn(node, strategy));
      return sum.addTable({static_cast<unsigned>(domain->strategies.size())},
                          std::move(own));
    };
    TableId table;
    if (costs.dependOnOps()) {
      table = getTable();
    } else {
      auto [it, inserted] = ownCosts.try_emplace(domain);
      if (inserted)
        it->second = getTable();
      table = it->second;
    }
    sum.addFactor(table, {variables.back()});
    for (unsigned value : node.results)
      if (value != kNoValue)
        flows.push_back(addCopies(graph.values[value]));
  }
  for (const Flow &flow : flows)
    addUses(flow);
}

/// A table over (definition, copies…, use): the cost of the use, given the
/// placements of the value and of its copies.
TableId CostProblem::getEdgeTable(const FlowValue &value, unsigned definition,
                                  unsigned use, unsigned copies,
                                  unsigned copyColumn) {
  auto [it, inserted] = edgeTables.try_emplace(
      {definition, use, value.type.getAsOpaquePointer(), value.weight,
       value.isParameter, copies, copyColumn});
  if (!inserted)
    return it->second;
  ArrayRef<ShardingAttr> wanted = space.getDistinct(use);
  ArrayRef<unsigned> from = space.getIndices(definition);
  ArrayRef<unsigned> to = space.getIndices(use);
  std::vector<CommunicationCost> moves;
  for (ShardingAttr have : space.getDistinct(definition))
    for (ShardingAttr want : wanted)
      moves.push_back(costs.get(value, have, want));
  // For each copy, the wanted placement that it provides.
  std::vector<std::optional<unsigned>> spared;
  if (copies)
    for (ShardingAttr copy : space.getColumn(copyColumn)) {
      const auto *found = llvm::find(wanted, copy);
      spared.push_back(found != wanted.end()
                           ? std::optional<unsigned>(found - wanted.begin())
                           : std::nullopt);
    }
  SmallVector<unsigned> dims = {static_cast<unsigned>(from.size())};
  dims.append(copies, spared.size());
  dims.push_back(to.size());
  size_t numCombinations = 1;
  for (unsigned i = 0; i < copies; ++i)
    numCombinations *= spared.size();
  std::vector<CommunicationCost> table;
  table.reserve(from.size() * numCombinations * to.size());
  for (unsigned have : from)
    for (size_t combination = 0; combination < numCombinations; ++combination) {
      SmallVector<CommunicationCost, 32> row(
          ArrayRef(moves).slice(have * wanted.size(), wanted.size()));
      for (size_t i = 0, rest = combination; i < copies;
           ++i, rest /= spared.size())
        if (auto index = spared[rest % spared.size()])
          row[*index] = {};
      for (unsigned want : to)
        table.push_back(row[want]);
    }
  return it->second = sum.addTable(dims, std::move(table));
}

const FlowKind &CostProblem::getFlowKind(const FlowValue &value) {
  WordList key = {getColumn(domains, value),
                  toWord(value.type.getAsOpaquePointer()),
                  static_cast<Word>(value.weight), value.isParameter};
  for (const Use &use : value.uses)
    key.push_back(use.node == value.node ? ~Word(0) : getColumn(domains, use));
  auto [number, isNew] = flowNumbers.insert(key);
  if (isNew) {
    FlowKind &kind = flowKinds.emplace_back(makeFlowKind(value));
    kind.number = number;
  }
  return flowKinds[number];
}

/// Uses that need the same placement share a copy: it is made once, and further
/// uses of it cost nothing.
FlowKind CostProblem::makeFlowKind(const FlowValue &value) {
  FlowKind kind;
  unsigned definition = getColumn(domains, value);
  auto getUseColumn = [&](unsigned use) {
    return getColumn(domains, value.uses[use]);
  };
  auto isFree = [&](unsigned use) {
    for (ShardingAttr have : space.getDistinct(definition))
      for (ShardingAttr want : space.getDistinct(getUseColumn(use)))
        if (CommunicationCost cost = costs.get(value, have, want);
            cost.isInfinite() || cost.bytes || cost.collectives)
          return false;
    return true;
  };
  for (unsigned use = 0; use < value.uses.size(); ++use)
    // A node's use of its own result, as in a loop, costs nothing.
    if (value.uses[use].node != value.node && !isFree(use))
      kind.uses.push_back(use);
  unsigned copyColumn = 0;
  kind.numCopies = std::min<unsigned>(kind.uses.size() / 2, kMaxCopies);
  if (kind.numCopies) {
    // A placement that only one use may want needs no copy.
    llvm::SmallMapVector<ShardingAttr, unsigned, 16> numUses;
    for (unsigned use : kind.uses)
      for (ShardingAttr want : space.getDistinct(getUseColumn(use)))
        ++numUses[want];
    SmallVector<ShardingAttr> wanted = {ShardingAttr()}; // no copy
    for (auto [want, count] : numUses)
      if (count > 1)
        wanted.push_back(want);
    // Tables grow with each copy.
    size_t largest = 0;
    for (unsigned use : kind.uses)
      largest = std::max(largest, space.getColumn(getUseColumn(use)).size());
    size_t entries = space.getColumn(definition).size() * largest;
    unsigned fitting = 0;
    while (fitting < kind.numCopies &&
           (entries *= wanted.size()) <= maxCopyEntries)
      ++fitting;
    kind.isCut = fitting < kind.numCopies;
    kind.numCopies = fitting;
    kind.numWanted = wanted.size();
    copyColumn = space.addColumn(wanted);
    std::vector<CommunicationCost> table;
    for (ShardingAttr have : space.getColumn(definition))
      for (ShardingAttr copy : wanted)
        table.push_back(copy ? costs.get(value, have, copy)
                             : CommunicationCost());
    kind.copyTable =
        sum.addTable({static_cast<unsigned>(space.getColumn(definition).size()),
                      kind.numWanted},
                     std::move(table));
  }
  for (unsigned use : kind.uses)
    kind.tables.push_back(getEdgeTable(value, definition, getUseColumn(use),
                                       kind.numCopies, copyColumn));
  return kind;
}

CostProblem::Flow CostProblem::addCopies(const FlowValue &value) {
  const FlowKind &kind = getFlowKind(value);
  isCut |= kind.isCut;
  Flow flow{&value, &kind, sum.getNumVariables()};
  for (unsigned i = 0; i < kind.numCopies; ++i) {
    unsigned copy = sum.addVariable(kind.numWanted);
    sum.addFactor(kind.copyTable, {variables[value.node], copy});
  }
  return flow;
}

void CostProblem::addUses(const Flow &flow) {
  for (auto [use, table] :
       llvm::zip_equal(flow.kind->uses, flow.kind->tables)) {
    SmallVector<unsigned, 4> scope = {variables[flow.value->node]};
    // In the table, the first copy varies fastest.
    for (unsigned i = flow.kind->numCopies; i-- > 0;)
      scope.push_back(flow.firstCopy + i);
    scope.push_back(variables[flow.value->uses[use].node]);
    sum.addFactor(table, scope);
  }
}

bool CostProblem::areAlike(unsigned a, unsigned b) const {
  for (unsigned node = a; node < b; ++node)
    if (domains[node] != domains[node + (b - a)] ||
        variables[node] + (variables[b] - variables[a]) !=
            variables[node + (b - a)])
      return false;
  auto getFlows = [&](unsigned from, unsigned to) {
    auto getFirst = [&](unsigned node) {
      return llvm::partition_point(
          flows, [&](const Flow &flow) { return flow.value->node < node; });
    };
    return llvm::make_range(getFirst(from), getFirst(to));
  };
  return llvm::equal(
      getFlows(a, b), getFlows(b, 2 * b - a),
      [](const Flow &a, const Flow &b) { return a.kind == b.kind; });
}

Choice CostProblem::getChoice(const MinSum::Solution &solution) const {
  Choice choice{domains, {}, solution.cost, solution.lowerBound};
  for (unsigned variable : variables)
    choice.indices.push_back(solution.values[variable]);
  return choice;
}

std::optional<Choice> CostProblem::solveExactly(size_t maxEntries) {
  auto solution = sum.solveExactly(maxEntries);
  return solution ? std::optional(getChoice(std::move(*solution)))
                  : std::nullopt;
}
