//===- PropagationProblem.cpp - What candidates cost, as a sum ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PropagationImpl.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

/// The most shared copies of a value that the problem has variables for; if a
/// value has more, costs are counted too high.
constexpr unsigned kMaxCopies = 2;
/// Looking up a cost takes as long as this many entries of tables.
constexpr uint64_t kLookup = 16;
/// A placement that a plan's search looks at takes as long as this many
/// entries.
constexpr uint64_t kState = 100;

CommunicationCost Propagation::Impl::getCost(const FlowValue &value,
                                             ShardingAttr from, ShardingAttr to,
                                             Price price) {
  if (from == to)
    return {};
  spend(kLookup);
  RedistributionPlanner &planner = space.getPlanner();
  uint64_t numStates = planner.getNumStates();
  CommunicationCost cost = price == Price::Planned
                               ? planner.getCost(from, to, value.type)
                               : planner.getBound(from, to, value.type);
  spend((planner.getNumStates() - numStates) * kState);
  cost = cost * value.weight;
  // Even a slice is some work.
  cost.work += 1;
  addVolume(cost);
  if (value.isParameter && !cost.isInfinite())
    cost.parameterBytes = cost.bytes;
  return cost;
}

/// A table over (definition, copies…, use): the cost of the use, given the
/// placements of the value and of its copies.
TableId Propagation::Impl::getEdgeTable(const FlowValue &value,
                                        unsigned definition, unsigned use,
                                        unsigned copies, unsigned copyColumn) {
  EdgeKey key{definition,
              use,
              value.type.getAsOpaquePointer(),
              value.weight,
              value.isParameter,
              copies,
              copyColumn};
  auto [it, inserted] = edgeTables.try_emplace(key);
  if (!inserted)
    return it->second;
  ArrayRef<ShardingAttr> wanted = space.getDistinct(use);
  ArrayRef<unsigned> from = space.getIndices(definition);
  ArrayRef<unsigned> to = space.getIndices(use);
  std::vector<CommunicationCost> costs;
  for (ShardingAttr have : space.getDistinct(definition))
    for (ShardingAttr want : wanted)
      costs.push_back(getCost(value, have, want));
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
          ArrayRef(costs).slice(have * wanted.size(), wanted.size()));
      for (size_t i = 0, rest = combination; i < copies;
           ++i, rest /= spared.size())
        if (auto index = spared[rest % spared.size()])
          row[*index] = {};
      for (unsigned want : to)
        table.push_back(row[want]);
    }
  return it->second = problem->addTable(dims, std::move(table));
}

const Propagation::Impl::FlowKind &
Propagation::Impl::getFlowKind(const FlowValue &value) {
  WordList key = {getColumn(domains[value.node]->results, value.result),
                  toWord(value.type.getAsOpaquePointer()),
                  static_cast<Word>(value.weight), value.isParameter};
  for (const Use &use : value.uses)
    key.push_back(use.node == value.node
                      ? ~Word(0)
                      : getColumn(domains[use.node]->operands, use.operand));
  auto [number, isNew] = flowNumbers.insert(key);
  if (isNew) {
    flowKinds.push_back(makeFlowKind(value));
    flowKinds.back().number = number;
  }
  return flowKinds[number];
}

/// Uses that need the same placement share a copy: it is made once, and further
/// uses of it cost nothing.
Propagation::Impl::FlowKind
Propagation::Impl::makeFlowKind(const FlowValue &value) {
  FlowKind kind;
  unsigned definition = getColumn(domains[value.node]->results, value.result);
  auto getUseColumn = [&](unsigned use) {
    return getColumn(domains[value.uses[use].node]->operands,
                     value.uses[use].operand);
  };
  auto isFree = [&](unsigned use) {
    for (ShardingAttr have : space.getDistinct(definition))
      for (ShardingAttr want : space.getDistinct(getUseColumn(use)))
        if (CommunicationCost cost = getCost(value, have, want);
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
        table.push_back(copy ? getCost(value, have, copy)
                             : CommunicationCost());
    kind.copyTable = problem->addTable(
        {static_cast<unsigned>(space.getColumn(definition).size()),
         kind.numWanted},
        std::move(table));
  }
  for (unsigned use : kind.uses)
    kind.tables.push_back(getEdgeTable(value, definition, getUseColumn(use),
                                       kind.numCopies, copyColumn));
  return kind;
}

Propagation::Impl::Flow Propagation::Impl::addCopies(const FlowValue &value) {
  const FlowKind &kind = getFlowKind(value);
  isSharingCut |= kind.isCut;
  Flow flow{&value, &kind, problem->getNumVariables()};
  for (unsigned i = 0; i < kind.numCopies; ++i) {
    unsigned copy = problem->addVariable(kind.numWanted);
    problem->addFactor(kind.copyTable, {variables[value.node], copy});
  }
  return flow;
}

void Propagation::Impl::addUses(const Flow &flow) {
  for (auto [use, table] :
       llvm::zip_equal(flow.kind->uses, flow.kind->tables)) {
    SmallVector<unsigned, 4> scope = {variables[flow.value->node]};
    // In the table, the first copy varies fastest.
    for (unsigned i = flow.kind->numCopies; i-- > 0;)
      scope.push_back(flow.firstCopy + i);
    scope.push_back(variables[flow.value->uses[use].node]);
    problem->addFactor(table, scope);
  }
}

/// Builds the sum of all costs. Returns whether the missing parts have the same
/// candidates at the same costs as the parts in the graph.
bool Propagation::Impl::makeProblem(size_t maxEntries) {
  maxCopyEntries = maxEntries;
  problem = std::make_unique<MinSum>();
  isSharingCut = false;
  edgeTables.clear();
  flowNumbers = {};
  flowKinds.clear();
  variables.clear();
  DenseMap<const Domain *, TableId> ownCosts;
  // A node's copies follow it, so that in a search in the variables' order,
  // each use finds them decided.
  std::vector<Flow> flows;
  for (auto [index, node, domain] : llvm::enumerate(graph->nodes, domains)) {
    if (repetition && index == graph->partNodes[kRepeated])
      problem->beginRepeated(getNumMissing() + 1);
    if (repetition && index == graph->partNodes[kRepeated + 1])
      problem->endRepeated();
    variables.push_back(problem->addVariable(domain->strategies.size()));
    auto [it, inserted] = ownCosts.try_emplace(domain);
    if (inserted) {
      auto own =
          llvm::map_to_vector(domain->strategies, [&](const Strategy &s) {
            CommunicationCost cost = s.cost;
            addVolume(cost);
            return cost;
          });
      it->second = problem->addTable(
          {static_cast<unsigned>(own.size())},
          std::vector<CommunicationCost>(own.begin(), own.end()));
    }
    problem->addFactor(it->second, {variables.back()});
    for (unsigned value : node.results)
      if (value != kNoValue)
        flows.push_back(addCopies(graph->values[value]));
  }
  for (const Flow &flow : flows)
    addUses(flow);
  return !repetition || isSteady(flows);
}
