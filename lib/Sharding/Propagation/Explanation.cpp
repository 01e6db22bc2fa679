//===- Explanation.cpp - Reasons for placements ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Sharding/Propagation/Explanation.h"
#include "Provenance.h"
#include "Sharding/OwnCollectives.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

/// The number of alternatives of an op that are listed.
constexpr unsigned kMaxAlternatives = 3;

namespace {

class Explainer {
public:
  Explainer(const Propagation &propagation, MeshOp mesh, Explanation &result)
      : propagation(propagation), functions(propagation.getFunctions()),
        mesh(mesh), meshRef(FlatSymbolRefAttr::get(mesh.getSymNameAttr())),
        graph(propagation.getGraph()), result(result) {}

  LogicalResult run(bool withChains);

private:
  using Function = Propagation::Function;
  using Movement = ExplainedMovement;
  using Conflict = ExplainedMovement::Conflict;

  void mapInstances();
  ShardingAttr getCurrentSharding(const FlowValue &value) const;
  ShardingAttr getRequiredSharding(const FlowValue &value,
                                   const Use &use) const;
  void addValues();
  LogicalResult addMovement(unsigned value, unsigned use);
  LogicalResult addOwnMovement(unsigned node);
  LogicalResult addCollectives(unsigned node);
  SmallVector<ShardingAttr> getOperands(const Node &node) const;
  SmallVector<ShardingAttr> getResults(const Node &node) const;
  /// Adds `movement`, whose `from` and `to` are set; null if it communicates
  /// nothing.
  FailureOr<Movement *> add(Movement movement, const FlowValue &value,
                            const void *what);
  bool repeat(const FlowValue &value, unsigned function, const void *what,
              ShardingAttr to);
  void setCause(Movement &movement, const FlowValue &value, const Use &use);
  void explain(Movement &movement, unsigned value, unsigned use);
  std::string getVerdict(const Movement &movement, const Node &node,
                         unsigned operand, unsigned axis);
  void addAlternatives(Movement &movement, const Node &node);

  const Propagation &propagation;
  ArrayRef<Function> functions;
  MeshOp mesh;
  FlatSymbolRefAttr meshRef;
  const Graph &graph;
  Explanation &result;
  std::unique_ptr<Provenance> provenance;
  /// By instance: the function that it became, and whether it is the first
  /// instance of that function.
  std::vector<unsigned> functionOf;
  std::vector<char> isFirst;
  /// The movements' indices, by function, moved value and target; and the
  /// instances that were counted for each movement.
  DenseMap<std::tuple<unsigned, const void *, ShardingAttr>, size_t> known;
  DenseSet<std::pair<unsigned, size_t>> counted;
};

} // namespace

//===----------------------------------------------------------------------===//
// Placements
//===----------------------------------------------------------------------===//

void Explainer::mapInstances() {
  // Callers come before their callees. A root isn't called, so it is one
  // function.
  constexpr unsigned kUnknown = ~0u;
  functionOf.assign(graph.instances.size(), kUnknown);
  for (auto [instance, function] :
       llvm::zip_equal(graph.instances, functionOf)) {
    if (function == kUnknown)
      function = llvm::find_if(functions,
                               [&](const Function &other) {
                                 return other.op == instance.function;
                               }) -
                 functions.begin();
    for (auto [call, callee] : instance.callees)
      functionOf[callee] = functions[function].callees.lookup(call);
  }
  llvm::SmallDenseSet<unsigned> seen;
  for (unsigned function : functionOf)
    isFirst.push_back(seen.insert(function).second);
}

ShardingAttr Explainer::getCurrentSharding(const FlowValue &value) const {
  const Function &function = functions[functionOf[value.instance]];
  if (value.value)
    return function.shardings.lookup(value.value);
  return function.given.lookup(
      graph.nodes[value.node].op->getResult(value.result));
}

ShardingAttr Explainer::getRequiredSharding(const FlowValue &value,
                                            const Use &use) const {
  if (!use.at) // What an op gives for a result that is fixed.
    return getCurrentSharding(
        graph.values[graph.nodes[use.node].results.front()]);
  const Function &function = functions[functionOf[use.instance]];
  ShardingAttr needed = function.needed.lookup(use.at);
  return needed ? needed : getCurrentSharding(value);
}

SmallVector<ShardingAttr> Explainer::getOperands(const Node &node) const {
  unsigned index = &node - graph.nodes.data();
  SmallVector<ShardingAttr> shardings;
  for (auto [operand, value] : llvm::enumerate(node.operands)) {
    if (value >= graph.values.size()) { // a scalar
      shardings.push_back(ShardingAttr::getReplicated(meshRef, 0));
      continue;
    }
    for (const Use &use : graph.values[value].uses)
      if (use.node == index && use.operand == operand)
        shardings.push_back(getRequiredSharding(graph.values[value], use));
  }
  return shardings;
}

SmallVector<ShardingAttr> Explainer::getResults(const Node &node) const {
  return llvm::map_to_vector(node.results, [&](unsigned value) {
    return value < graph.values.size()
               ? getCurrentSharding(graph.values[value])
               : ShardingAttr::getReplicated(meshRef, 0);
  });
}

void Explainer::addValues() {
  for (auto [index, value] : llvm::enumerate(graph.values)) {
    if (!value.value || !isFirst[value.instance])
      continue;
    // An op that only passes its input on adds nothing new.
    const Node &node = graph.nodes[value.node];
    if (isa_and_nonnull<RedistributeOp, ConstraintOp, PropagationBarrierOp>(
            node.op) &&
        getCurrentSharding(graph.values[node.operands.front()]) ==
            getCurrentSharding(value))
      continue;
    ExplainedValue &entry = result.values.emplace_back();
    entry.function = functionOf[value.instance];
    entry.value = value.value;
    entry.sharding = getCurrentSharding(value);
    for (unsigned axis = 0; axis < mesh.getNumAxes(); ++axis)
      entry.chains.push_back(provenance->getChain(index, axis));
  }
  llvm::stable_sort(result.values, [](const auto &a, const auto &b) {
    return a.function < b.function;
  });
}

//===----------------------------------------------------------------------===//
// What moves
//===----------------------------------------------------------------------===//

FailureOr<ExplainedMovement *>
Explainer::add(Movement movement, const FlowValue &value, const void *what) {
  FailureOr<const RedistributionPlan *> plan =
      propagation.getPlanner().plan(movement.from, movement.to, movement.type,
                                    [&]() { return movement.op->emitError(); });
  if (failed(plan))
    return failure();
  if ((*plan)->getNumCollectives() == 0)
    return nullptr;
  known[{movement.function, what, movement.to}] = result.movements.size();
  counted.insert({value.instance, result.movements.size()});
  movement.times = value.weight;
  movement.bytes = (*plan)->receivedTotal;
  movement.bytesPerRank = (*plan)->receivedMax;
  movement.leastBytes = (*plan)->lowerBoundTotal;
  for (const RedistributionStep &step : (*plan)->steps) {
    if (step.kind == RedistributionStep::LocalSlice)
      continue;
    std::string text = stringifyStep(step.kind).str() + " over {";
    llvm::raw_string_ostream os(text);
    llvm::interleaveComma(step.axes, os,
                          [&](AxisRefAttr axis) { axis.printAxis(os); });
    movement.collectives.push_back(text + "}");
  }
  result.movements.push_back(std::move(movement));
  return &result.movements.back();
}

/// Must match what tp-propagate writes.
void Explainer::setCause(Movement &movement, const FlowValue &value,
                         const Use &use) {
  Operation *op = movement.op;
  auto name = [](Operation *op) { return op->getName().getStringRef().str(); };
  movement.fqn = ::getFqn(op).str();
  if (!use.at) {
    movement.isAsked = true;
    movement.reason = "tp.sharding on " + name(op);
    return;
  }
  if (auto redistribute = dyn_cast<RedistributeOp>(op);
      redistribute && !redistribute.getOver()) {
    movement.isAsked = true;
    movement.reason = redistribute.getReason().value_or(name(op)).str();
    return;
  }
  std::string placements = printPlacements(movement.to, mesh);
  const Function &function = functions[movement.function];
  if (isa<func::ReturnOp>(op) && op->getParentOp() == function.op) {
    unsigned index = use.at->getOperandNumber();
    movement.isAsked =
        func::FuncOp(function.op).getResultAttr(index, kShardingAttr) !=
        nullptr;
    movement.reason =
        "result " + std::to_string(index) + " of the function is " + placements;
    return;
  }
  if (isa<DistributeOp, ConstraintOp, ToLocalOp>(op)) {
    movement.isAsked = true;
    movement.reason = name(op) + " as " + placements;
    return;
  }
  if (graph.nodes[use.node].kind == Node::Fixed && !graph.nodes[use.node].op &&
      isa<ShardingRuleOpInterface>(op)) {
    movement.reason = name(op) + " reads it in its body";
    return;
  }
  // The op needs its operand this way because of the redistribution after it,
  // which then does nothing itself.
  if (op->getNumResults() == 1)
    for (Operation *user : op->getUsers()) {
      auto redistribute = dyn_cast<RedistributeOp>(user);
      if (!redistribute || !redistribute.getReason() ||
          function.needed.contains(&user->getOpOperand(0)))
        continue;
      movement.isAsked = true;
      movement.fqn = ::getFqn(redistribute).str();
      movement.reason = redistribute.getReason()->str();
      return;
    }
  movement.reason = name(op) + " needs operand " +
                    std::to_string(use.at->getOperandNumber()) + " as " +
                    placements;
}

/// Why the op doesn't take operand `operand` with the placement that it has
/// over `axis`.
std::string Explainer::getVerdict(const Movement &movement, const Node &node,
                                  unsigned operand, unsigned axis) {
  auto ruled = dyn_cast_or_null<ShardingRuleOpInterface>(node.op);
  if (node.kind != Node::Compute || !ruled)
    return "the requested placement takes precedence";
  ShardingRule rule = ruled.getShardingRule();
  std::string name = node.op->getName().getStringRef().str();
  StringRef axisName = mesh.getAxisName(axis);
  unsigned nodeIndex = &node - graph.nodes.data();
  StringRef winner = provenance->getSplit(nodeIndex, axis);
  std::string runs = winner.empty() ? " is replicated over " + axisName.str()
                                    : " is split along " + winner.str();
  if (auto kind = movement.from.getPartialKind(axisName)) {
    bool isLinear = llvm::any_of(rule.linearSets, [&](const LinearSet &set) {
      return llvm::is_contained(set, operand);
    });
    return name + (isLinear ? runs : " isn't linear in it") +
           ", it takes the " + stringifyReductionKind(*kind).str();
  }
  auto dim = movement.from.getShardedDim(axisName);
  if (!dim)
    return name + runs;
  const DimFactors &factors = rule.operands[operand][*dim];
  std::string place = " dimension " + std::to_string(*dim);
  if (factors.empty())
    return name + " broadcasts" + place;
  if (rule.factors[factors.front()].kind == FactorKind::Whole)
    return name + " can't split" + place;
  return name + runs + ", not" + (winner.empty() ? " split" : "") + " along" +
         place + " of this operand";
}

void Explainer::addAlternatives(Movement &movement, const Node &node) {
  if (node.kind != Node::Compute || !node.op)
    return;
  movement.choice = node.op;
  for (const Propagation::Alternative &other : propagation.getAlternatives(
           movement.function, node.op, kMaxAlternatives)) {
    auto &alternative = movement.alternatives.emplace_back();
    for (ShardingAttr sharding : other.operands)
      alternative.operands.push_back(printPlacements(sharding, mesh));
    for (ShardingAttr sharding : other.results)
      alternative.results.push_back(printPlacements(sharding, mesh));
    alternative.delta = other.delta;
    for (auto [axis, split] : llvm::enumerate(
             provenance->getSplits(node.op, other.operands, other.results)))
      if (!split.empty())
        alternative.description +=
            (alternative.description.empty() ? "" : "; ") +
            mesh.getAxisName(axis).str() + ": " + split;
    if (alternative.description.empty())
      alternative.description = "whole";
  }
}

void Explainer::explain(Movement &movement, unsigned value, unsigned use) {
  const Use &at = graph.values[value].uses[use];
  const Node &node = graph.nodes[at.node];
  for (unsigned axis = 0; axis < mesh.getNumAxes(); ++axis) {
    Conflict conflict{mesh.getAxisName(axis).str(),
                      provenance->getChain(value, axis),
                      provenance->getChain(value, use, axis), ""};
    if (conflict.current.placement == conflict.required.placement)
      continue;
    conflict.verdict = getVerdict(movement, node, at.operand, axis);
    movement.conflicts.push_back(std::move(conflict));
  }
  addAlternatives(movement, node);
  if (movement.alternatives.empty())
    addAlternatives(movement, graph.nodes[graph.values[value].node]);
}

/// Whether the movement needn't be added: it is known (then its count is
/// raised, once per instance), or the instance isn't the first one of its
/// function.
bool Explainer::repeat(const FlowValue &value, unsigned function,
                       const void *what, ShardingAttr to) {
  auto it = known.find({function, what, to});
  if (it == known.end())
    return !isFirst[value.instance];
  // Each call of a function does the movement once; uses in one call share it.
  if (counted.insert({value.instance, it->second}).second)
    result.movements[it->second].times += value.weight;
  return true;
}

LogicalResult Explainer::addMovement(unsigned value, unsigned use) {
  const FlowValue &from = graph.values[value];
  const Use &at = from.uses[use];
  ShardingAttr current = getCurrentSharding(from),
               required = getRequiredSharding(from, at);
  if (current == required)
    return success();
  Movement movement;
  movement.function = functionOf[at.instance];
  Operation *producer = graph.nodes[from.node].op;
  movement.value = from.value ? from.value : producer->getResult(from.result);
  movement.type = from.type;
  movement.from = current;
  movement.to = required;
  movement.op = at.at ? at.at->getOwner() : producer;
  if (at.at)
    movement.operand = at.at->getOperandNumber();
  const void *what = movement.value.getAsOpaquePointer();
  if (repeat(from, movement.function, what, required))
    return success();
  setCause(movement, from, at);
  FailureOr<Movement *> added = add(std::move(movement), from, what);
  if (failed(added))
    return failure();
  if (*added && provenance)
    explain(**added, value, use);
  return success();
}

/// Adds the movement of a tp.redistribute over some mesh dimensions; the search
/// decided the placement over the others.
LogicalResult Explainer::addOwnMovement(unsigned node) {
  auto op = cast<RedistributeOp>(graph.nodes[node].op);
  const FlowValue &value = graph.values[graph.nodes[node].results.front()];
  Movement movement;
  movement.function = functionOf[value.instance];
  movement.value = op.getInput();
  movement.type = op.getType();
  const FlowValue &input = graph.values[graph.nodes[node].operands.front()];
  unsigned use = 0;
  while (input.uses[use].node != node)
    ++use;
  movement.from = getRequiredSharding(input, input.uses[use]);
  movement.to = getCurrentSharding(value);
  movement.op = op;
  movement.operand = 0;
  movement.isAsked = true;
  movement.fqn = ::getFqn(op).str();
  movement.reason = op.getReason().value_or("tp.redistribute").str();
  const void *what = op.getOperation();
  if (movement.from == movement.to ||
      repeat(value, movement.function, what, movement.to))
    return success();
  FailureOr<Movement *> added = add(std::move(movement), value, what);
  if (failed(added) || !*added || !provenance)
    return success(succeeded(added));
  unsigned source = graph.nodes[node].operands.front();
  for (unsigned axis = 0; axis < mesh.getNumAxes(); ++axis) {
    Conflict conflict{
        mesh.getAxisName(axis).str(), provenance->getChain(source, use, axis),
        provenance->getChain(graph.nodes[node].results.front(), axis),
        "the requested placement takes precedence"};
    if (conflict.current.placement != conflict.required.placement)
      (*added)->conflicts.push_back(std::move(conflict));
  }
  return success();
}

/// Adds the collectives of an op's partition hook, if a collective or
/// a halo factor is split.
LogicalResult Explainer::addCollectives(unsigned index) {
  const Node &node = graph.nodes[index];
  auto op = cast<ShardingRuleOpInterface>(node.op);
  FailureOr<OwnCollectives> own =
      getOwnCollectives(op, mesh, getOperands(node), getResults(node));
  if (failed(own))
    return failure();
  if (own->descriptions.empty())
    return success();
  const FlowValue &value = graph.values[node.results.front()];
  Movement movement;
  movement.function = functionOf[node.instance];
  if (repeat(value, movement.function, op.getOperation(), {}))
    return success();
  movement.value = op->getResult(0);
  movement.type = cast<RankedTensorType>(op->getOperand(0).getType());
  movement.op = op;
  movement.isAsked = true;
  movement.fqn = ::getFqn(op).str();
  ShardingRule rule = op.getShardingRule();
  movement.reason =
      op->getName().getStringRef().str() +
      (rule.halos.empty() ? " is split along a dimension that it reduces"
                          : " is split along a dimension of its windows");
  movement.collectives = std::move(own->descriptions);
  movement.bytes = llvm::sum_of(own->bytesByRank, int64_t(0));
  movement.bytesPerRank = *llvm::max_element(own->bytesByRank);
  movement.leastBytes = movement.bytes;
  movement.times = value.weight;
  // If no cost was counted for the collectives, they weren't weighed against
  // alternatives.
  bool isWeighed = !rule.halos.empty() ||
                   llvm::any_of(rule.factors, [](const Factor &factor) {
                     return factor.reductions > 0;
                   });
  if (provenance && isWeighed)
    addAlternatives(movement, node);
  known[{movement.function, op.getOperation(), {}}] = result.movements.size();
  counted.insert({value.instance, result.movements.size()});
  result.movements.push_back(std::move(movement));
  return success();
}

//===----------------------------------------------------------------------===//
// Explanation
//===----------------------------------------------------------------------===//

LogicalResult Explainer::run(bool withChains) {
  mapInstances();
  if (withChains) {
    provenance = std::make_unique<Provenance>(
        mesh, graph,
        [&](const FlowValue &value) { return getCurrentSharding(value); },
        [&](const FlowValue &value, const Use &use) {
          return getRequiredSharding(value, use);
        });
    addValues();
  }
  for (auto [index, value] : llvm::enumerate(graph.values)) {
    const Node &node = graph.nodes[value.node];
    if (value.result == 0 && node.kind == Node::Over &&
        failed(addOwnMovement(value.node)))
      return failure();
    if (value.result == 0 && node.kind == Node::Compute && node.op &&
        !node.operands.empty() && failed(addCollectives(value.node)))
      return failure();
    for (unsigned use = 0; use < value.uses.size(); ++use)
      if (failed(addMovement(index, use)))
        return failure();
  }
  llvm::stable_sort(result.movements, [](const auto &a, const auto &b) {
    return a.function < b.function;
  });
  return success();
}

FailureOr<Explanation> Explanation::explain(const Propagation &propagation,
                                            MeshOp mesh, bool withChains) {
  Explanation explanation;
  if (failed(Explainer(propagation, mesh, explanation).run(withChains)))
    return failure();
  return explanation;
}

int64_t Explanation::getBytes() const {
  int64_t bytes = 0;
  for (const ExplainedMovement &movement : movements)
    bytes += movement.bytes * movement.times;
  return bytes;
}

int64_t Explanation::getNumCollectives() const {
  int64_t count = 0;
  for (const ExplainedMovement &movement : movements)
    count += movement.times * static_cast<int64_t>(movement.collectives.size());
  return count;
}
