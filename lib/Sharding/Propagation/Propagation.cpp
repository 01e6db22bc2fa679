//===- Propagation.cpp - Placements for a whole program -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PropagationImpl.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

/// Parts that repeat are looked at once from so many on.
constexpr size_t kMinParts = 2 * Graph::kMargin + 2;
/// The largest table of a value, its copies and a use, of a search that needn't
/// be exact.
constexpr size_t kMaxCopyEntries = size_t(1) << 22;
/// How many moves that may take another's place are planned with it.
constexpr size_t kMaxOthers = 1024;

//===----------------------------------------------------------------------===//
// Propagation::Impl
//===----------------------------------------------------------------------===//

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
    Outcome found = takeOutcome();
    CommunicationCost bound = found.solution.lowerBound;
    if (!solve(priority, /*isExhaustive=*/false))
      return false;
    isExhaustive = !(solution.cost < found.solution.cost);
    if (isExhaustive)
      putBack(std::move(found));
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
    for (ShardingAttr from :
         space.getDistinct(getColumn(among[value.node]->results, value.result)))
      for (ShardingAttr to :
           space.getDistinct(getColumn(among[use.node]->operands, use.operand)))
        if (auto least = getCost(value, from, to, Price::Bound); least < cost)
          others.push_back({least, {from, to}});
    llvm::stable_sort(others, llvm::less_first());
    if (others.size() > kMaxOthers)
      others.resize(kMaxOthers);
    for (auto &[least, move] : others)
      if (budget > 0)
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
    unsigned needed = getColumn(domain->operands, operand);
    auto isPossible =
        llvm::map_to_vector(space.getDistinct(needed), [&](ShardingAttr want) {
          return llvm::any_of(
              space.getDistinct(*column), [&](ShardingAttr have) {
                return !getCost(graph->values[value], have, want).isInfinite();
              });
        });
    for (auto [strategy, index] : llvm::enumerate(space.getIndices(needed)))
      if (!isPossible[index])
        kept.reset(strategy);
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

/// Whether it could be solved: without parts that repeat, it always can.
///
/// Plans take long to make, so moves are priced by what they cost at least
/// until a solution has them. A solution all of whose prices are known is the
/// cheapest that the search finds: others don't cost less than was counted for
/// them. Where moves cost more once they are planned, the search is repeated
/// within its budget; one that isn't exact ends when it has found an optimum.
/// Bounds stay what they are.
bool Propagation::Impl::solve(int64_t priority, bool isExhaustive) {
  chooseDomains(priority, isExhaustive);
  const std::vector<const Domain *> all = domains;
  bool isGreedy = options.strategy == PropagationStrategy::Greedy;
  budget = options.searchBudget;
  std::optional<Outcome> best;
  CommunicationCost lowerBound;
  for (bool areSettled = false; !areSettled;) {
    domains = all;
    if (!solvePriced())
      return false;
    lowerBound = std::max(lowerBound, solution.lowerBound);
    areSettled = settle(isGreedy ? ArrayRef<const Domain *>() : ArrayRef(all));
    if (!areSettled && isExact && budget > 0)
      continue;
    // Parts that differ in what they choose have no price of their own.
    if (!areSettled && repetition)
      return false;
    if (!areSettled)
      priceAsPlanned();
    if (!best || !(best->solution.cost < solution.cost))
      best = takeOutcome();
    if (budget == 0 || !(lowerBound < best->solution.cost))
      break;
  }
  putBack(std::move(*best));
  solution.lowerBound = std::min(lowerBound, solution.cost);
  return true;
}

/// The solution that was found, with all of its moves at what they cost.
void Propagation::Impl::priceAsPlanned() {
  Outcome found = takeOutcome();
  domains = found.domains;
  keepOnly([&](unsigned node) -> const Strategy & {
    return found.domains[node]
        ->strategies[found.solution.values[found.variables[node]]];
  });
  makeProblem(kMaxCopyEntries);
  solution = problem->solve(options.maxEntries);
}

bool Propagation::Impl::solvePriced() {
  // With a larger table, a search isn't exact.
  if (!makeProblem(options.maxEntries))
    return false;
  isExact = false;
  if (options.strategy == PropagationStrategy::Greedy) {
    solution = problem->solveGreedily();
    return true;
  }
  std::optional<MinSum::Solution> found;
  if (!isSharingCut)
    found = repetition ? problem->solveRepeated(options.maxEntries)
                       : problem->solveExactly(options.maxEntries);
  isExact = found.has_value();
  if (found)
    solution = std::move(*found);
  else if (repetition)
    return false;
  else
    search();
  return true;
}

/// Leaves each node the candidate that `choose` names, or more of them where it
/// has none that is alike.
void Propagation::Impl::keepOnly(
    function_ref<const Strategy &(unsigned node)> choose) {
  for (auto [node, domain] : llvm::enumerate(domains)) {
    const Strategy &chosen = choose(node);
    llvm::BitVector only(domain->strategies.size());
    for (auto [index, strategy] : llvm::enumerate(domain->strategies))
      if (strategy.operands == chosen.operands &&
          strategy.results == chosen.results && only.none())
        only.set(index);
    if (only.any())
      domain = space.getPart(domain, only);
  }
}

Propagation::Impl::Outcome Propagation::Impl::takeOutcome() {
  return {std::move(solution), std::move(domains), std::move(variables)};
}

void Propagation::Impl::putBack(Outcome outcome) {
  solution = std::move(outcome.solution);
  domains = std::move(outcome.domains);
  variables = std::move(outcome.variables);
}

/// Searches what is too entangled to be solved exactly: bounded unless the
/// candidates that are left are few.
void Propagation::Impl::search() {
  // Most of what the search will move is what a quick one moves.
  bool isFirst = true;
  do {
    makeProblem(/*maxCopyEntries=*/0);
    solution = problem->solveGreedily();
  } while (!settle(std::exchange(isFirst, false) ? ArrayRef<const Domain *>()
                                                 : ArrayRef(domains)) &&
           budget > 0);
  Pruned pruned = prune();
  auto solveAgain = [&]() {
    makeProblem(kMaxCopyEntries);
    solution = problem->solve(options.maxEntries);
  };
  solveAgain();
  // What is shared but isn't known to be may be counted twice.
  if (isSharingCut)
    solution.lowerBound = {};
  CommunicationCost bound = std::max(solution.lowerBound, pruned.lowerBound);
  if (bound < solution.cost && !pruned.choice.empty()) {
    // The choice that is known may be better.
    Outcome found = takeOutcome();
    domains = found.domains;
    keepOnly([&](unsigned node) -> const Strategy & {
      return *pruned.choice[node];
    });
    solveAgain();
    if (!(solution.cost < found.solution.cost))
      putBack(std::move(found));
  }
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
RedistributionPlanner &Propagation::getPlanner() { return impl->getPlanner(); }
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
