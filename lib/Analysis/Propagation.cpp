//===- Propagation.cpp - Placements for a whole program -------------------===//

#include "tp/Analysis/Propagation.h"
#include "PropagationGraph.h"
#include "StrategySpace.h"
#include "tp/Analysis/MinSum.h"
#include "tp/Analysis/Redistribution.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <map>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

//===----------------------------------------------------------------------===//
// Costs of edges
//===----------------------------------------------------------------------===//

namespace {

/// A table over the columns of a value's definition and of one use.
struct EdgeKey {
  unsigned definition, use;
  const void *type;
  int64_t weight;
  bool isParameter;
  /// How many shared copies stand between them.
  unsigned copies;
  unsigned copyColumn;

  auto asTuple() const {
    return std::tuple(definition, use, type, weight, isParameter, copies,
                      copyColumn);
  }
  bool operator<(const EdgeKey &other) const {
    return asTuple() < other.asTuple();
  }
};

/// How many placements that several uses share are kept track of: with more,
/// costs are counted too high.
constexpr unsigned kMaxCopies = 2;
/// Parts that repeat are looked at once from so many on.
constexpr size_t kMinParts = 2 * Graph::kMargin + 2;
/// The largest table of a value, its copies and a use.
constexpr size_t kMaxCopyEntries = size_t(1) << 22;

/// The column of a node's tensor: what passes values on has one for all.
unsigned getColumn(ArrayRef<unsigned> columns, unsigned tensor) {
  return columns[std::min<size_t>(tensor, columns.size() - 1)];
}

} // namespace

//===----------------------------------------------------------------------===//
// Propagation::Impl
//===----------------------------------------------------------------------===//

class Propagation::Impl {
public:
  Impl(MeshOp mesh, PropagationOptions options)
      : mesh(mesh), options(options), space(mesh),
        graph(std::make_unique<Graph>(mesh, space)),
        numRanks(mesh.getNumRanks()), costs(mesh) {}

  LogicalResult run(ArrayRef<func::FuncOp> roots);
  SmallVector<Alternative> getAlternatives(unsigned function, Operation *op,
                                           unsigned limit);

  SmallVector<Function> functions;
  MinSum::Solution solution;
  size_t numMerged = 0;

private:
  /// How values get to their uses: alike for those whose definitions and uses
  /// have the same candidates.
  struct FlowKind {
    /// The uses that may need the value otherwise, and what that costs.
    SmallVector<unsigned> uses;
    SmallVector<TableId> tables;
    /// Placements that several uses share: how many variables, of how many
    /// values, and what they cost.
    unsigned numCopies = 0, numWanted = 0;
    TableId copyTable = 0;
    /// Whether more could be shared.
    bool isCut = false;
  };
  struct Flow {
    const FlowValue *value;
    const FlowKind *kind;
    /// The variables of the copies follow each other.
    unsigned firstCopy;
  };

  LogicalResult makeGraph();
  bool solve(int64_t priority);
  bool solve(int64_t priority, bool isExhaustive);
  bool makeProblem(int64_t priority, bool isExhaustive);
  bool isSteady(ArrayRef<Flow> flows) const;
  void unfold();
  LogicalResult extractParts(Function &function);
  const Domain *getPossible(const Node &node, const Domain *domain);
  const FlowKind &getFlowKind(const FlowValue &value);
  FlowKind makeFlowKind(const FlowValue &value);
  Flow addCopies(const FlowValue &value);
  void addUses(const Flow &flow);
  TableId getEdgeTable(const FlowValue &value, unsigned definition,
                       unsigned use, unsigned copies, unsigned copyColumn);
  CommunicationCost getCost(const FlowValue &value, ShardingAttr from,
                            ShardingAttr to);
  void addVolume(CommunicationCost &cost) const {
    cost.volume =
        cost.bytes + options.latencyBytes * numRanks * cost.collectives;
  }
  LogicalResult extract();
  /// The part, of those in the graph, that stands for the missing ones too.
  static constexpr unsigned kRepeated = Graph::kMargin;
  size_t getNumMissing() const {
    return repetition->count - 2 * Graph::kMargin;
  }
  unsigned getRepeatedBegin() const { return graph->partNodes[kRepeated]; }
  bool isRepeated(unsigned node) const {
    return node >= getRepeatedBegin() && node < graph->partNodes[kRepeated + 1];
  }
  LogicalResult checkReachable(const FlowValue &value, const Use &use,
                               ShardingAttr from, ShardingAttr to);

  ShardingAttr getSharding(const FlowValue &value) const {
    return space.getColumn(
        getColumn(domains[value.node]->results,
                  value.result))[solution.values[variables[value.node]]];
  }
  ShardingAttr getNeeded(const Use &use) const {
    return space.getColumn(
        getColumn(domains[use.node]->operands,
                  use.operand))[solution.values[variables[use.node]]];
  }

  MeshOp mesh;
  PropagationOptions options;
  StrategySpace space;
  std::unique_ptr<Graph> graph;
  /// What the graph has the first and last parts of alone.
  std::optional<Repetition> repetition;
  int64_t numRanks;
  /// Whether a value has fewer copies than its uses could share.
  bool isSharingCut = false;
  std::unique_ptr<MinSum> problem;
  SmallVector<func::FuncOp> roots;
  /// Whether all strategies were considered.
  bool isExhaustive = false;
  /// By node.
  std::vector<const Domain *> domains;
  std::vector<unsigned> variables;
  /// The copies that the uses of a value share, with the node that defines it,
  /// in order.
  std::vector<std::pair<unsigned, unsigned>> copiesOf;
  /// What each node did in the round before.
  std::vector<const Strategy *> decided;
  std::map<EdgeKey, TableId> edgeTables;
  /// By candidates, as makeFlowKind looks at them.
  ListTable flowNumbers;
  std::deque<FlowKind> flowKinds;
  /// Of a domain, by the columns and types of what flows to it.
  ListTable possibleNumbers;
  std::vector<const Domain *> possible;
  RedistributionCosts costs;
  /// The instance that each function is made of.
  SmallVector<unsigned> instanceOf;
  /// Nodes by instance and op, once getAlternatives asks for them.
  DenseMap<std::pair<unsigned, Operation *>, unsigned> nodeOfOp;
};

CommunicationCost Propagation::Impl::getCost(const FlowValue &value,
                                             ShardingAttr from,
                                             ShardingAttr to) {
  if (from == to)
    return {};
  CommunicationCost cost = costs.get(from, to, value.type) * value.weight;
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
  if (isNew)
    flowKinds.push_back(makeFlowKind(value));
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
           (entries *= wanted.size()) <= kMaxCopyEntries)
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
    copiesOf.push_back({value.node, copy});
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
  isExhaustive = options.strategy == PropagationStrategy::Optimal &&
                 graph->numOps <= options.exhaustiveOps;
  if (!solve(priority, isExhaustive))
    return false;
  CommunicationCost cost = solution.cost, bound = solution.lowerBound;
  if (isExhaustive && !(cost == bound)) {
    // Of fewer strategies, a bounded search may find better ones.
    if (!solve(priority, /*isExhaustive=*/false))
      return false;
    isExhaustive = !(solution.cost < cost);
    if (isExhaustive)
      solve(priority, /*isExhaustive=*/true);
    solution.lowerBound = bound;
  }
  decided.clear();
  for (auto [index, domain] : llvm::enumerate(domains))
    decided.push_back(&domain->strategies[solution.values[variables[index]]]);
  return true;
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

/// What the nodes can do, and what that costs. Whether parts that aren't there
/// can do the same, for the same.
bool Propagation::Impl::makeProblem(int64_t priority, bool isExhaustive) {
  problem = std::make_unique<MinSum>();
  isSharingCut = graph->hasCutDomains = false;
  edgeTables.clear();
  flowNumbers = {};
  flowKinds.clear();
  copiesOf.clear();
  domains.clear();
  variables.clear();
  DenseMap<const Domain *, TableId> ownCosts;
  for (auto [index, node] : llvm::enumerate(graph->nodes)) {
    const Strategy *before = decided.empty() ? nullptr : decided[index];
    const Domain *domain =
        graph->getDomain(node, isExhaustive, priority, before);
    domains.push_back(getPossible(node, domain));
  }
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

bool Propagation::Impl::solve(int64_t priority, bool isExhaustive) {
  if (!makeProblem(priority, isExhaustive))
    return false;
  if (repetition) {
    auto found = problem->solveRepeated(options.maxEntries);
    if (!found)
      return false;
    solution = std::move(*found);
  } else {
    solution = options.strategy == PropagationStrategy::Optimal
                   ? problem->solve(options.maxEntries)
                   : problem->solveGreedily();
  }
  // What is shared but isn't known to be may be counted twice; what isn't
  // considered may be cheaper.
  if (isSharingCut || graph->hasCutDomains)
    solution.lowerBound = {};
  return true;
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
  for (const FlowValue &value : graph->values) {
    ShardingAttr have = getSharding(value);
    if (represents[value.instance] && !value.value)
      functions[placeOf[functionOf[value.instance]]]
          .given[graph->nodes[value.node].op->getResult(value.result)] = have;
    for (const Use &use : value.uses) {
      if (repetition && isRepeated(use.node) &&
          value.node < getRepeatedBegin() &&
          value.node >= graph->partNodes[kRepeated - 1])
        continue; // It takes the value of a part that isn't there.
      ShardingAttr want = getNeeded(use);
      if (want == have)
        continue;
      if (failed(checkReachable(value, use, have, want)))
        return failure();
      if (use.at && represents[use.instance])
        functions[placeOf[functionOf[use.instance]]].needed[use.at] = want;
    }
  }
  return repetition ? extractParts(functions.front()) : success();
}

//===----------------------------------------------------------------------===//
// Parts that repeat
//===----------------------------------------------------------------------===//

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
  makeProblem(priority, isExhaustive);
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

//===----------------------------------------------------------------------===//
// Propagation
//===----------------------------------------------------------------------===//

Propagation::Propagation(MeshOp mesh, PropagationOptions options)
    : impl(std::make_unique<Impl>(mesh, options)) {}
Propagation::~Propagation() = default;

LogicalResult Propagation::run(ArrayRef<func::FuncOp> roots) {
  return impl->run(roots);
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
