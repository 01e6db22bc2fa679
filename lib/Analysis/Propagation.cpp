//===- Propagation.cpp - Placements for a whole program -------------------===//

#include "PropagationImpl.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

//===----------------------------------------------------------------------===//
// Costs of edges
//===----------------------------------------------------------------------===//

namespace {

/// How many placements that several uses share are kept track of: with more,
/// costs are counted too high.
constexpr unsigned kMaxCopies = 2;
/// Parts that repeat are looked at once from so many on.
constexpr size_t kMinParts = 2 * Graph::kMargin + 2;
/// The largest table of a value, its copies and a use, of a search that needn't
/// be exact.
constexpr size_t kMaxCopyEntries = size_t(1) << 22;
/// How many moves that may take another's place are planned with it.
constexpr size_t kMaxOthers = 1024;

} // namespace

//===----------------------------------------------------------------------===//
// Propagation::Impl
//===----------------------------------------------------------------------===//

CommunicationCost Propagation::Impl::getCost(const FlowValue &value,
                                             ShardingAttr from, ShardingAttr to,
                                             Price price) {
  if (from == to)
    return {};
  RedistributionPlanner &planner = space.getPlanner();
  CommunicationCost cost = price == Price::Planned
                               ? planner.getCost(from, to, value.type)
                               : planner.getBound(from, to, value.type);
  cost = cost * value.weight;
  // Even a slice is something to do.
  cost.work += 1;
  addVolume(cost);
  if (value.isParameter && !cost.isInfinite())
    cost.parameterBytes = cost.bytes;
  return cost;
}

/// Over (definition, copies…, use): what the use costs that finds the value
/// and its copies as they are.
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
  ArrayRef<ShardingAttr> from = space.getColumn(definition);
  ArrayRef<ShardingAttr> to = space.getColumn(use);
  ArrayRef<ShardingAttr> copied =
      copies ? space.getColumn(copyColumn) : ArrayRef<ShardingAttr>();
  SmallVector<unsigned> dims = {static_cast<unsigned>(from.size())};
  dims.append(copies, copied.size());
  dims.push_back(to.size());
  size_t numCombinations = 1;
  for (unsigned i = 0; i < copies; ++i)
    numCombinations *= copied.size();
  std::vector<CommunicationCost> table;
  table.reserve(from.size() * numCombinations * to.size());
  for (ShardingAttr have : from) {
    auto direct = llvm::map_to_vector(
        to, [&](ShardingAttr want) { return getCost(value, have, want); });
    for (size_t combination = 0; combination < numCombinations; ++combination)
      for (auto [want, cost] : llvm::zip_equal(to, direct)) {
        bool isShared = false;
        for (size_t i = 0, rest = combination; i < copies;
             ++i, rest /= copied.size())
          isShared |= copied[rest % copied.size()] == want;
        table.push_back(isShared ? CommunicationCost() : cost);
      }
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

/// Several uses share what they need alike: a copy is made once, and costs
/// nothing further.
Propagation::Impl::FlowKind
Propagation::Impl::makeFlowKind(const FlowValue &value) {
  FlowKind kind;
  unsigned definition = getColumn(domains[value.node]->results, value.result);
  auto getUseColumn = [&](unsigned use) {
    return getColumn(domains[value.uses[use].node]->operands,
                     value.uses[use].operand);
  };
  auto isFree = [&](unsigned use) {
    for (ShardingAttr have : space.getColumn(definition))
      for (ShardingAttr want : space.getColumn(getUseColumn(use)))
        if (CommunicationCost cost = getCost(value, have, want);
            cost.isInfinite() || cost.bytes || cost.collectives)
          return false;
    return true;
  };
  for (unsigned use = 0; use < value.uses.size(); ++use)
    // A node that uses what it gives itself, as a loop may, costs nothing.
    if (value.uses[use].node != value.node && !isFree(use))
      kind.uses.push_back(use);
  unsigned copyColumn = 0;
  kind.numCopies = std::min<unsigned>(kind.uses.size() / 2, kMaxCopies);
  if (kind.numCopies) {
    // What one use alone may want needs no copy.
    llvm::SmallMapVector<ShardingAttr, unsigned, 16> numUses;
    for (unsigned use : kind.uses)
      for (ShardingAttr want : llvm::SmallSetVector<ShardingAttr, 16>(
               llvm::from_range, space.getColumn(getUseColumn(use))))
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
    // The table counts combinations with the first copy fastest.
    for (unsigned i = flow.kind->numCopies; i-- > 0;)
      scope.push_back(flow.firstCopy + i);
    scope.push_back(variables[flow.value->uses[use].node]);
    problem->addFactor(table, scope);
  }
}

/// Whether it could be solved: without parts that repeat, it always can.
bool Propagation::Impl::solve(int64_t priority) {
  graph->spread(priority);
  decidedBefore = std::move(decided);
  isExhaustive = options.strategy == PropagationStrategy::Optimal &&
                 graph->numOps <= options.exhaustiveOps;
  if (!solve(priority, isExhaustive))
    return false;
  if (isExhaustive && !(solution.cost == solution.lowerBound)) {
    // Of fewer strategies, a bounded search may find better ones.
    MinSum::Solution found = std::move(solution);
    std::vector<const Domain *> foundDomains = domains;
    std::vector<unsigned> foundVariables = variables;
    if (!solve(priority, /*isExhaustive=*/false))
      return false;
    isExhaustive = !(solution.cost < found.cost);
    CommunicationCost bound = found.lowerBound;
    if (isExhaustive) {
      solution = std::move(found);
      domains = std::move(foundDomains);
      variables = std::move(foundVariables);
    }
    solution.lowerBound = bound;
  }
  decided.clear();
  for (auto [index, domain] : llvm::enumerate(domains))
    decided.push_back(&domain->strategies[solution.values[variables[index]]]);
  return true;
}

/// Where the solution moves anything, its price becomes that of the plan.
/// Whether all of them were. Of a move that costs more than was counted, the
/// cheapest that may take its place are planned too: by the candidates in
/// `among`, if there are any.
bool Propagation::Impl::settle(ArrayRef<const Domain *> among) {
  bool areSettled = true;
  forEachMove([&](const FlowValue &value, const Use &use, ShardingAttr have,
                  ShardingAttr want) {
    CommunicationCost bound = getCost(value, have, want, Price::Bound),
                      cost = getCost(value, have, want, Price::Planned);
    if (cost == bound)
      return;
    areSettled = false;
    if (among.empty())
      return;
    using Move = std::pair<ShardingAttr, ShardingAttr>;
    std::vector<std::pair<CommunicationCost, Move>> others;
    for (ShardingAttr from : space.getColumn(
             getColumn(among[value.node]->results, value.result)))
      for (ShardingAttr to : space.getColumn(
               getColumn(among[use.node]->operands, use.operand)))
        if (auto least = getCost(value, from, to, Price::Bound); least < cost)
          others.push_back({least, {from, to}});
    llvm::stable_sort(others, llvm::less_first());
    if (others.size() > kMaxOthers)
      others.resize(kMaxOthers);
    for (auto &[least, move] : others)
      getCost(value, move.first, move.second, Price::Planned);
  });
  return areSettled;
}

/// `domain` without what can't be: strategies that need what an operand never
/// becomes, as a Partial of what is whole. All of it where nothing else is
/// left.
const Domain *Propagation::Impl::getPossible(const Node &node,
                                             const Domain *domain) {
  if (domain->strategies.size() == 1)
    return domain;
  // What flows back, around a loop, may be anything.
  auto getColumnOf = [&](unsigned value) -> std::optional<unsigned> {
    if (value == kNoValue || graph->values[value].node >= domains.size())
      return std::nullopt;
    return getColumn(domains[graph->values[value].node]->results,
                     graph->values[value].result);
  };
  WordList key = {toWord(domain)};
  for (unsigned value : node.operands)
    if (auto column = getColumnOf(value))
      key.append(
          {toWord(graph->values[value].type.getAsOpaquePointer()), *column});
    else
      key.push_back(0);
  auto [number, isNew] = possibleNumbers.insert(key);
  if (!isNew)
    return possible[number];
  llvm::BitVector kept(domain->strategies.size(), true);
  for (auto [operand, value] : llvm::enumerate(node.operands)) {
    auto column = getColumnOf(value);
    if (!column)
      continue;
    for (auto [index, want] :
         llvm::enumerate(space.getColumn(getColumn(domain->operands, operand))))
      if (llvm::all_of(space.getColumn(*column), [&](ShardingAttr have) {
            return getCost(graph->values[value], have, want).isInfinite();
          }))
        kept.reset(index);
  }
  possible.push_back(kept.any() && !kept.all() ? space.getPart(domain, kept)
                                               : domain);
  return possible.back();
}

/// What the nodes can do.
void Propagation::Impl::chooseDomains(int64_t priority, bool isExhaustive) {
  domains.clear();
  for (auto [index, node] : llvm::enumerate(graph->nodes)) {
    const Strategy *before =
        decidedBefore.empty() ? nullptr : decidedBefore[index];
    const Domain *domain =
        graph->getDomain(node, isExhaustive, priority, before);
    domains.push_back(getPossible(node, domain));
  }
}

/// What costs what. Whether parts that aren't there can do what those that are
/// can, for the same.
bool Propagation::Impl::makeProblem(size_t maxEntries) {
  maxCopyEntries = maxEntries;
  problem = std::make_unique<MinSum>();
  isSharingCut = false;
  edgeTables.clear();
  flowNumbers = {};
  flowKinds.clear();
  variables.clear();
  DenseMap<const Domain *, TableId> ownCosts;
  // A node's copies follow it: where decisions fall in order, each use finds
  // them made.
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

/// Whether it could be solved: without parts that repeat, it always can.
///
/// Plans take long to make, so moves are priced by what they cost at least
/// until a solution has them. A solution all of whose prices are known is the
/// cheapest: others don't cost less than was counted for them.
bool Propagation::Impl::solve(int64_t priority, bool isExhaustive) {
  std::vector<const Domain *> all;
  do {
    chooseDomains(priority, isExhaustive);
    all = domains;
    if (!solvePriced())
      return false;
    if (options.strategy == PropagationStrategy::Greedy)
      all.clear();
  } while (!settle(all));
  return true;
}

bool Propagation::Impl::solvePriced() {
  // With a larger table, a search isn't exact.
  if (!makeProblem(options.maxEntries))
    return false;
  if (options.strategy == PropagationStrategy::Greedy) {
    solution = problem->solveGreedily();
    return true;
  }
  std::optional<MinSum::Solution> found;
  if (!isSharingCut)
    found = repetition ? problem->solveRepeated(options.maxEntries)
                       : problem->solveExactly(options.maxEntries);
  if (found)
    solution = std::move(*found);
  else if (repetition)
    return false;
  else
    solveEntangled();
  return true;
}

/// The search is bounded unless the candidates that are left are few.
void Propagation::Impl::solveEntangled() {
  // Most of what the search will move is what a quick one moves.
  bool isFirst = true;
  do {
    makeProblem(/*maxCopyEntries=*/0);
    solution = problem->solveGreedily();
  } while (!settle(std::exchange(isFirst, false) ? ArrayRef<const Domain *>()
                                                 : ArrayRef(domains)));
  Pruned pruned = prune();
  makeProblem(kMaxCopyEntries);
  solution = problem->solve(options.maxEntries);
  // What is shared but isn't known to be may be counted twice.
  if (isSharingCut)
    solution.lowerBound = {};
  solution.lowerBound = std::max(solution.lowerBound, pruned.lowerBound);
  if (!(solution.lowerBound < solution.cost) || pruned.choice.empty())
    return;
  // The choice that is known may be better.
  CommunicationCost cost = solution.cost, bound = solution.lowerBound;
  std::vector<const Domain *> kept = domains;
  auto solveAgain = [&](ArrayRef<const Domain *> of) {
    domains.assign(of.begin(), of.end());
    makeProblem(kMaxCopyEntries);
    solution = problem->solve(options.maxEntries);
  };
  std::vector<const Domain *> chosen;
  for (auto [domain, strategy] : llvm::zip_equal(domains, pruned.choice)) {
    llvm::BitVector only(domain->strategies.size());
    for (auto [index, other] : llvm::enumerate(domain->strategies))
      if (other.operands == strategy->operands &&
          other.results == strategy->results && only.none())
        only.set(index);
    chosen.push_back(only.any() ? space.getPart(domain, only) : domain);
  }
  solveAgain(chosen);
  if (!(solution.cost < cost))
    solveAgain(kept);
  solution.lowerBound = bound;
}

LogicalResult Propagation::Impl::makeGraph() {
  graph = std::make_unique<Graph>(mesh, space);
  for (func::FuncOp root : roots)
    if (failed(graph->addRoot(root, repetition ? &*repetition : nullptr)))
      return failure();
  graph->followBatch();
  return success();
}

LogicalResult Propagation::Impl::run(ArrayRef<func::FuncOp> of) {
  llvm::append_range(roots, of);
  if (options.mergesRepeated && roots.size() == 1 &&
      options.strategy == PropagationStrategy::Optimal &&
      roots.front().getBody().hasOneBlock()) {
    repetition = findRepetition(
        roots.front().getBody().front(), kMinParts, Graph::kMargin,
        [&](Operation *op) { return space.getPlainRule(op).has_value(); });
    if (repetition) {
      if (failed(makeGraph()))
        return failure();
      SmallVector<int64_t> priorities = graph->getPriorities();
      if (priorities.size() == 1 && solve(priorities.front())) {
        numMerged = getNumMissing();
        return extract();
      }
      repetition.reset();
    }
  }
  if (failed(makeGraph()))
    return failure();
  for (int64_t priority : graph->getPriorities())
    solve(priority);
  return extract();
}

LogicalResult Propagation::Impl::checkReachable(const FlowValue &value,
                                                const Use &use,
                                                ShardingAttr from,
                                                ShardingAttr to) {
  Operation *op = use.at ? use.at->getOwner() : graph->nodes[value.node].op;
  return verifyRedistribution(from, to, mesh,
                              [&]() { return op->emitError(); });
}

/// Instances of one function that agree in all become one function.
LogicalResult Propagation::Impl::extract() {
  // What each instance looks like: the choices of its nodes, in order. A
  // function that is there once looks like nothing else.
  DenseMap<Operation *, unsigned> numInstances;
  for (const Instance &instance : graph->instances)
    ++numInstances[instance.function];
  SmallVector<SmallVector<const void *>> looks(graph->instances.size());
  for (auto [index, node] : llvm::enumerate(graph->nodes)) {
    if (numInstances[graph->instances[node.instance].function] == 1)
      continue;
    auto &look = looks[node.instance];
    const Strategy *strategy = decided[index];
    for (ShardingAttr sharding : llvm::concat<const ShardingAttr>(
             strategy->operands, strategy->results))
      look.push_back(sharding.getAsOpaquePointer());
  }
  // Callees follow their callers: those of an instance are known first from the
  // back on.
  std::map<std::pair<Operation *, SmallVector<const void *>>, unsigned> known;
  SmallVector<unsigned> functionOf(graph->instances.size());
  for (size_t i = graph->instances.size(); i-- > 0;) {
    auto &look = looks[i];
    for (auto [call, callee] : graph->instances[i].callees)
      look.push_back(
          reinterpret_cast<const void *>(uintptr_t(functionOf[callee])));
    auto [it, inserted] = known.try_emplace(
        {graph->instances[i].function.getOperation(), look}, known.size());
    functionOf[i] = it->second;
  }
  // The roots come first.
  SmallVector<unsigned> representative(known.size(), ~0u);
  for (size_t i = 0; i < graph->instances.size(); ++i)
    if (representative[functionOf[i]] == ~0u)
      representative[functionOf[i]] = i;
  SmallVector<unsigned> order =
      llvm::to_vector(llvm::seq<unsigned>(known.size()));
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return representative[a] < representative[b];
  });
  SmallVector<unsigned> placeOf(known.size());
  for (auto [place, function] : llvm::enumerate(order))
    placeOf[function] = place;
  functions.resize(known.size());
  instanceOf.assign(known.size(), 0);
  SmallVector<bool> represents(graph->instances.size(), false);
  for (unsigned instance : representative)
    represents[instance] = true;
  for (auto [i, instance] : llvm::enumerate(graph->instances)) {
    if (!represents[i])
      continue;
    instanceOf[placeOf[functionOf[i]]] = i;
    Function &function = functions[placeOf[functionOf[i]]];
    function.op = instance.function;
    for (auto [call, callee] : instance.callees)
      function.callees[call] = placeOf[functionOf[callee]];
    function.shardings.reserve(instance.values.size());
    for (auto [value, id] : instance.values)
      function.shardings[value] = getSharding(graph->values[id]);
  }
  for (const FlowValue &value : graph->values)
    if (represents[value.instance] && !value.value)
      functions[placeOf[functionOf[value.instance]]]
          .given[graph->nodes[value.node].op->getResult(value.result)] =
          getSharding(value);
  if (repetition)
    extractParts(functions.front());
  bool areReachable = true;
  forEachMove([&](const FlowValue &value, const Use &use, ShardingAttr have,
                  ShardingAttr want) {
    areReachable =
        areReachable && succeeded(checkReachable(value, use, have, want));
    if (areReachable && use.at && represents[use.instance])
      functions[placeOf[functionOf[use.instance]]].needed[use.at] = want;
  });
  return success(areReachable);
}

//===----------------------------------------------------------------------===//
// Propagation
//===----------------------------------------------------------------------===//

Propagation::Propagation(MeshOp mesh, PropagationOptions options)
    : impl(std::make_unique<Impl>(mesh, options)) {}
Propagation::~Propagation() = default;

LogicalResult Propagation::run(ArrayRef<func::FuncOp> roots) {
  return impl->run(roots);
}
const PropagationOptions &Propagation::getOptions() const {
  return impl->options;
}
ArrayRef<Propagation::Function> Propagation::getFunctions() const {
  return impl->functions;
}
SmallVector<Propagation::Function> Propagation::takeFunctions() {
  return std::move(impl->functions);
}
CommunicationCost Propagation::getCost() const { return impl->solution.cost; }
CommunicationCost Propagation::getLowerBound() const {
  return impl->solution.lowerBound;
}
size_t Propagation::getNumMergedParts() const { return impl->numMerged; }
SmallVector<Propagation::Alternative>
Propagation::getAlternatives(unsigned function, Operation *op,
                             unsigned limit) const {
  return impl->getAlternatives(function, op, limit);
}
