//===- Propagation.cpp - Placements for a whole program -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PropagationImpl.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

/// Repeated parts are merged if there are at least this many.
constexpr size_t kMinParts = 2 * Graph::kMargin + 2;
/// The largest table of a value, its copies and a use, for a search that
/// needn't be exact.
constexpr size_t kMaxCopyEntries = size_t(1) << 22;
/// The most alternatives of a move that are planned along with it.
constexpr size_t kMaxOthers = 1024;

//===----------------------------------------------------------------------===//
// Propagation::Impl
//===----------------------------------------------------------------------===//

/// Returns whether it could be solved; without repeated parts, it always can.
bool Propagation::Impl::solve(int64_t priority) {
  graph->spread(priority);
  decidedBefore = std::move(decided);
  isExhaustive = options.strategy == PropagationStrategy::Optimal &&
                 graph->numOps <= options.exhaustiveOps;
  if (!solve(priority, isExhaustive))
    return false;
  if (isExhaustive && !(solution.cost == solution.lowerBound)) {
    // With fewer strategies, a bounded search may find a better solution.
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

/// Prices all moves of the solution by their plans. Returns whether all prices
/// were right already. If a move costs more than was counted, also plans the
/// cheapest moves that may replace it, according to the candidates in `among`
/// (none if `among` is empty).
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

/// `domain` without the impossible strategies: those that need a placement that
/// an operand can't get (for example, a Partial of a whole value). All of
/// `domain` if no strategy is left.
const Domain *Propagation::Impl::getPossible(const Node &node,
                                             const Domain *domain) {
  if (domain->strategies.size() == 1)
    return domain;
  // A value that flows back around a loop may have any placement.
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

/// Finds the candidates of all nodes.
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

/// Returns whether it could be solved; without repeated parts, it always can.
///
/// Making plans takes long, so moves are priced by their lower bounds until a
/// solution has them. Once all prices of a solution are those of plans, it is
/// the cheapest that the search finds, because other solutions cost at least
/// what was counted for them. If moves cost more than was counted, the search
/// is repeated within its budget. A search that isn't exact ends early if it
/// has found an optimum. Lower bounds stay valid throughout.
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
    // Parts that choose differently can't be priced one by one.
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

/// Prices all moves of the solution by their plans and solves again with only
/// the chosen candidates.
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
  // With larger tables, the search isn't exact.
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

/// Leaves each node only the candidate that `choose` names, or all candidates
/// if none has the same placements.
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

/// Searches problems that are too large to be solved exactly. The result comes
/// with a lower bound; it may be exact if few candidates are left.
void Propagation::Impl::search() {
  // A quick search makes most of the moves that the full search will make, so
  // it prices them first.
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
  // A shared move for which the problem has no copy may be counted twice.
  if (isSharingCut)
    solution.lowerBound = {};
  CommunicationCost bound = std::max(solution.lowerBound, pruned.lowerBound);
  if (bound < solution.cost && !pruned.choice.empty()) {
    // The known choice may be better.
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

/// Merges the instances of one function that agree in all choices.
LogicalResult Propagation::Impl::extract() {
  // Instances are compared by the choices of their nodes, in order. The only
  // instance of a function needn't be compared.
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
  // Callees follow their callers, so from back to front, the callees of an
  // instance are known before it.
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
