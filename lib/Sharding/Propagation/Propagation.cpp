//===- Propagation.cpp - Placements for a whole program -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Sharding/Propagation/Propagation.h"
#include "Alternatives.h"
#include "RepeatedSearch.h"
#include "Search.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

class Propagation::Impl {
public:
  Impl(MeshOp mesh, PropagationOptions options)
      : options(options), mesh(mesh), space(mesh, options.redistributions),
        costs(mesh, space, this->options) {}

  LogicalResult run(ArrayRef<func::FuncOp> roots);
  /// The graph of the whole program, for which `decision` is.
  const Graph &getGraph();
  SmallVector<Alternative> getAlternatives(unsigned function, Operation *op,
                                           unsigned limit);

  const PropagationOptions options;
  MeshOp mesh;
  StrategySpace space;
  MoveCosts costs;
  CommunicationCost cost, lowerBound;
  size_t numElidedLayers = 0;
  SmallVector<Function> functions;

private:
  LogicalResult addGraph(ArrayRef<func::FuncOp> roots);
  void decide();
  SmallVector<unsigned> mergeInstances();
  LogicalResult extract();

  /// The decision for a function of equal layers. The graph of all layers is
  /// made when something asks for it.
  std::unique_ptr<RepeatedDecision> repeated;
  std::optional<Graph> graph;
  Decision decision;
  /// The instance that each function represents.
  SmallVector<unsigned> instanceOf;
  /// Nodes by instance and op; filled on the first call of getAlternatives.
  DenseMap<std::pair<unsigned, Operation *>, unsigned> nodeOfOp;
};

LogicalResult Propagation::Impl::run(ArrayRef<func::FuncOp> roots) {
  if (roots.size() == 1) {
    auto found = searchRepeated(roots.front(), space, costs, mesh, options);
    if (failed(found))
      return failure();
    repeated = std::move(*found);
  }
  if (repeated) {
    cost = repeated->getCost();
    lowerBound = repeated->getLowerBound();
    numElidedLayers = repeated->getNumElidedLayers();
    instanceOf = {0};
    return repeated->extract(functions.emplace_back(), mesh);
  }
  if (failed(addGraph(roots)))
    return failure();
  decide();
  if (failed(graph->verifyAlternatives([&](unsigned node) -> const Strategy & {
        return decision.choice.get(node);
      })))
    return failure();
  cost = decision.choice.cost;
  lowerBound = decision.choice.lowerBound;
  return extract();
}

LogicalResult Propagation::Impl::addGraph(ArrayRef<func::FuncOp> roots) {
  graph.emplace(mesh, space);
  for (func::FuncOp root : roots)
    if (failed(graph->addRoot(root)))
      return failure();
  graph->followBatch();
  return success();
}

const Graph &Propagation::Impl::getGraph() {
  if (!graph) {
    LogicalResult added = addGraph(functions.front().op);
    assert(succeeded(added) && "all layers are like those that were added");
    (void)added;
    decision = repeated->getWhole();
  }
  return *graph;
}

void Propagation::Impl::decide() {
  Search search(*graph, space, costs, options);
  const Choice *before = nullptr;
  for (int64_t priority : graph->getPriorities()) {
    decision = search.run(priority, before);
    before = &decision.choice;
  }
}

/// Merges the instances of one function that agree in all choices. Returns each
/// instance's function.
SmallVector<unsigned> Propagation::Impl::mergeInstances() {
  // Instances are compared by the choices of their nodes, in order. The only
  // instance of a function needn't be compared.
  size_t numInstances = graph->instances.size();
  DenseMap<Operation *, unsigned> numInstancesOf;
  for (const Instance &instance : graph->instances)
    ++numInstancesOf[instance.function];
  auto isCompared =
      llvm::map_to_vector(graph->instances, [&](const Instance &instance) {
        return numInstancesOf[instance.function] > 1;
      });
  SmallVector<SmallVector<const void *>> looks(numInstances);
  for (auto [index, node] : llvm::enumerate(graph->nodes)) {
    if (!isCompared[node.instance])
      continue;
    const Strategy &strategy = decision.choice.get(index);
    for (ShardingAttr sharding :
         llvm::concat<const ShardingAttr>(strategy.operands, strategy.results))
      looks[node.instance].push_back(sharding.getAsOpaquePointer());
  }
  // Callees follow their callers, so from back to front, the callees of an
  // instance are known before it.
  std::map<std::pair<Operation *, SmallVector<const void *>>, unsigned> known;
  SmallVector<unsigned> functionOf(numInstances);
  for (size_t i = numInstances; i-- > 0;) {
    const Instance &instance = graph->instances[i];
    for (auto [call, callee] : instance.callees)
      looks[i].push_back(
          reinterpret_cast<const void *>(uintptr_t(functionOf[callee])));
    functionOf[i] =
        known.try_emplace({instance.function, looks[i]}, known.size())
            .first->second;
  }
  // The roots come first.
  DenseMap<unsigned, unsigned> places;
  for (auto [i, function] : llvm::enumerate(functionOf)) {
    auto [it, isFirst] = places.try_emplace(function, instanceOf.size());
    if (isFirst)
      instanceOf.push_back(i);
    function = it->second;
  }
  return functionOf;
}

LogicalResult Propagation::Impl::extract() {
  const Choice &choice = decision.choice;
  SmallVector<unsigned> functionOf = mergeInstances();
  /// The function that `instance` represents; null if another instance does.
  auto getFunction = [&](unsigned instance) {
    unsigned function = functionOf[instance];
    return instanceOf[function] == instance ? &functions[function] : nullptr;
  };
  functions.resize(instanceOf.size());
  for (auto [i, instance] : llvm::enumerate(graph->instances)) {
    Function *function = getFunction(i);
    if (!function)
      continue;
    function->op = instance.function;
    for (auto [call, callee] : instance.callees)
      function->callees[call] = functionOf[callee];
    function->shardings.reserve(instance.values.size());
    for (auto [value, id] : instance.values)
      function->shardings[value] = choice.getCurrentSharding(graph->values[id]);
  }
  for (const FlowValue &value : graph->values)
    if (Function *function = getFunction(value.instance);
        function && !value.value)
      function->given[graph->nodes[value.node].op->getResult(value.result)] =
          choice.getCurrentSharding(value);
  bool areReachable = true;
  choice.forEachMove(*graph, [&](const FlowValue &value, const Use &use,
                                 ShardingAttr current, ShardingAttr required) {
    if (!areReachable)
      return;
    Operation *op = use.at ? use.at->getOwner() : graph->nodes[value.node].op;
    areReachable = succeeded(verifyRedistribution(
        current, required, mesh, [&]() { return op->emitError(); }));
    if (Function *function = getFunction(use.instance);
        areReachable && use.at && function)
      function->needed[use.at] = required;
  });
  return success(areReachable);
}

SmallVector<Propagation::Alternative>
Propagation::Impl::getAlternatives(unsigned function, Operation *op,
                                   unsigned limit) {
  if (limit == 0)
    return {};
  if (nodeOfOp.empty())
    for (auto [index, node] : llvm::enumerate(getGraph().nodes))
      if (node.op)
        nodeOfOp.try_emplace({node.instance, node.op}, index);
  auto found = nodeOfOp.find({instanceOf[function], op});
  if (found == nodeOfOp.end())
    return {};
  return propagation::getAlternatives(*graph, decision, costs, found->second,
                                      limit);
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
RedistributionPlanner &Propagation::getPlanner() const {
  return impl->space.getPlanner();
}
const Graph &Propagation::getGraph() const { return impl->getGraph(); }
ArrayRef<Propagation::Function> Propagation::getFunctions() const {
  return impl->functions;
}
SmallVector<Propagation::Function> Propagation::takeFunctions() {
  return std::move(impl->functions);
}
CommunicationCost Propagation::getCost() const { return impl->cost; }
CommunicationCost Propagation::getLowerBound() const {
  return impl->lowerBound;
}
size_t Propagation::getNumElidedLayers() const { return impl->numElidedLayers; }
SmallVector<Propagation::Alternative>
Propagation::getAlternatives(unsigned function, Operation *op,
                             unsigned limit) const {
  return impl->getAlternatives(function, op, limit);
}
