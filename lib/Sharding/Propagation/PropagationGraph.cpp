//===- PropagationGraph.cpp - Dataflow graph of a program -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PropagationGraph.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

/// The assumed trip count of a loop whose count isn't known.
constexpr int64_t kUnknownTripCount = 8;

static bool isTensor(Type type) { return isa<RankedTensorType>(type); }

//===----------------------------------------------------------------------===//
// Nodes and values
//===----------------------------------------------------------------------===//

ShardingAttr Graph::getReplicated(Type type) const {
  return ShardingAttr::getReplicated(meshRef,
                                     cast<RankedTensorType>(type).getRank());
}

unsigned Graph::addNode(Node node) {
  nodes.push_back(std::move(node));
  return nodes.size() - 1;
}

unsigned Graph::addResult(unsigned node, Value value, unsigned instance,
                          int64_t weight) {
  unsigned index = nodes[node].results.size();
  if (!isTensor(value.getType())) {
    nodes[node].results.push_back(kNoValue);
    return kNoValue;
  }
  nodes[node].results.push_back(values.size());
  values.push_back({value, cast<RankedTensorType>(value.getType()), instance,
                    node, index, weight});
  instances[instance].values[value] = values.size() - 1;
  return values.size() - 1;
}

void Graph::addUse(unsigned node, OpOperand &operand, unsigned instance) {
  unsigned index = nodes[node].operands.size();
  if (!isTensor(operand.get().getType())) {
    nodes[node].operands.push_back(kNoValue);
    return;
  }
  unsigned value = getValue(operand.get(), instance);
  nodes[node].operands.push_back(value);
  values[value].uses.push_back({node, index, instance, &operand});
}

unsigned Graph::addFixed(unsigned instance, Operation *op,
                         ShardingAttr required, ShardingAttr produced) {
  return addNode({Node::Fixed, instance, op, 0, required, produced});
}

unsigned Graph::addPassing(unsigned instance, Type type, ShardingAttr fixed,
                           bool mayBePartial) {
  if (fixed)
    return addFixed(instance, nullptr, fixed, fixed);
  return addNode(
      {Node::Compute, instance, nullptr,
       space.getIdentityRule(cast<RankedTensorType>(type), mayBePartial)});
}

//===----------------------------------------------------------------------===//
// Functions and calls
//===----------------------------------------------------------------------===//

static LogicalResult checkTypes(Operation *op, TypeRange types,
                                StringRef what) {
  for (auto [index, type] : llvm::enumerate(types)) {
    if (auto tensor = dyn_cast<RankedTensorType>(type)) {
      if (!tensor.hasStaticShape())
        return op->emitError() << what << " " << index << " is a " << type
                               << "; only static shapes can be placed";
      if (!tensor.getElementType().isIntOrIndexOrFloat())
        return op->emitError()
               << what << " " << index << " is a " << type
               << "; only integers, indices and floats can be placed";
    } else if (isa<ShapedType>(type)) {
      return op->emitError()
             << what << " " << index << " is not a ranked tensor";
    }
  }
  return success();
}

LogicalResult Graph::addRoot(func::FuncOp function, ElidedLayers *elided) {
  unsigned instance = instances.size();
  instances.emplace_back().function = function;
  if (failed(checkTypes(function, function.getArgumentTypes(), "argument")))
    return failure();
  if (function.getBody().hasOneBlock()) {
    size_t numOps = elided ? elided->repetition.ops.size() -
                                 elided->repetition.getNumInMiddle() *
                                     elided->repetition.period
                           : function.getBody().front().getOperations().size();
    size_t size =
        numOps + function.getNumArguments() + function.getNumResults();
    instances.back().values.reserve(size);
    nodes.reserve(nodes.size() + size);
    values.reserve(values.size() + size);
  }
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (function.getArgAttr(index, kGlobalTypeAttr))
      return function.emitError("is partitioned already");
    if (!isTensor(argument.getType()))
      continue;
    ShardingAttr sharding = getArgSharding(function, index);
    bool isOpen = function.getArgAttr(index, kOpenAttr) != nullptr;
    if (!sharding && !isOpen)
      sharding = getReplicated(argument.getType());
    if (sharding &&
        failed(verifySharding(sharding, argument.getType(), function, [&]() {
          return function.emitError() << "argument " << index << ": ";
        })))
      return failure();
    unsigned node = addPassing(instance, argument.getType(), sharding,
                               /*mayBePartial=*/false);
    addResult(node, argument, instance, 1);
  }
  if (failed(addFunction(function, instance, 1, elided)))
    return failure();
  Operation *end = function.getBody().front().getTerminator();
  for (OpOperand &operand : end->getOpOperands()) {
    Type type = operand.get().getType();
    if (locals.contains(operand.get()))
      return end->emitError("can't take a local value; tp.from_local makes a "
                            "global one of it");
    if (!isTensor(type))
      continue;
    unsigned index = operand.getOperandNumber();
    ShardingAttr sharding = getResultSharding(function, index);
    bool isOpen = function.getResultAttr(index, kOpenAttr) != nullptr;
    if (!sharding && !isOpen)
      sharding = getReplicated(type);
    addUse(addPassing(instance, type, sharding, /*mayBePartial=*/false),
           operand, instance);
  }
  return success();
}

LogicalResult Graph::addFunction(func::FuncOp function, unsigned instance,
                                 int64_t weight, ElidedLayers *elided) {
  if (!function.getBody().hasOneBlock())
    return function.emitError(
        "only functions of one block can be parallelized");
  active.insert(function);
  LogicalResult added =
      elided ? addEndLayers(*elided, instance)
             : addBlock(function.getBody().front(), instance, weight);
  active.remove(function);
  return added;
}

LogicalResult Graph::addCall(CallOpInterface call, unsigned instance,
                             int64_t weight) {
  auto callee =
      dyn_cast_or_null<func::FuncOp>(call.resolveCallableInTable(&symbols));
  if (!callee || callee.isExternal())
    return call->emitError(
        "calls a function without a body here; only calls of "
        "functions of this module can be parallelized");
  if (active.contains(callee)) {
    InFlightDiagnostic diag =
        call->emitError() << "calls '@" << callee.getSymName()
                          << "' within itself; recursion can't be parallelized";
    diag.attachNote(callee.getLoc()) << "the function is defined here";
    return diag;
  }
  if (failed(checkTypes(callee, callee.getArgumentTypes(), "argument")) ||
      failed(checkTypes(callee, callee.getResultTypes(), "result")))
    return failure();
  unsigned inner = instances.size();
  instances.emplace_back().function = callee;
  instances[instance].callees.push_back({call, inner});
  for (auto [argument, operand] :
       llvm::zip_equal(callee.getArguments(), call->getOpOperands())) {
    if (!isTensor(argument.getType()))
      continue;
    unsigned node = addPassing(instance, argument.getType(),
                               getArgSharding(callee, argument.getArgNumber()));
    addUse(node, operand, instance);
    nodes[node].instance = inner;
    addResult(node, argument, inner, weight);
    unsigned value = nodes[node].operands.front();
    values.back().isParameter = values[value].isParameter;
  }
  if (failed(addFunction(callee, inner, weight)))
    return failure();
  Operation *end = callee.getBody().front().getTerminator();
  for (auto [operand, result] :
       llvm::zip_equal(end->getOpOperands(), call->getResults())) {
    if (!isTensor(result.getType()))
      continue;
    unsigned node =
        addPassing(inner, result.getType(),
                   getResultSharding(callee, result.getResultNumber()));
    addUse(node, operand, inner);
    addResult(node, result, instance, weight);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Region ops
//===----------------------------------------------------------------------===//

/// An operand, and a region's input or an op's result that it becomes.
using Edge = std::pair<OpOperand *, Value>;

static SmallVector<Edge> collectEdges(RegionBranchOpInterface op) {
  SmallVector<Edge> edges;
  for (RegionBranchPoint point : op.getAllRegionBranchPoints()) {
    SmallVector<RegionSuccessor> successors;
    op.getSuccessorRegions(point, successors);
    for (RegionSuccessor successor : successors) {
      OperandRange range = op.getSuccessorOperands(point, successor);
      MutableArrayRef<OpOperand> operands(range.getBase(), range.size());
      for (auto [operand, input] :
           llvm::zip(operands, successor.getSuccessorInputs()))
        if (isTensor(input.getType()))
          edges.push_back({&operand, input});
    }
  }
  return edges;
}

/// All inputs that one operand becomes are placed alike.
static llvm::EquivalenceClasses<Value> groupInputs(ArrayRef<Edge> edges) {
  llvm::EquivalenceClasses<Value> groups;
  llvm::SmallDenseMap<OpOperand *, Value> first;
  for (auto [operand, input] : edges)
    groups.unionSets(first.try_emplace(operand, input).first->second, input);
  return groups;
}

LogicalResult Graph::addRegionOp(RegionBranchOpInterface op, unsigned instance,
                                 int64_t weight) {
  int64_t inner = weight;
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op.getOperation())) {
    auto count = loop.getStaticTripCount();
    inner *=
        count ? std::max<int64_t>(count->getSExtValue(), 1) : kUnknownTripCount;
  }
  for (Region &region : op->getRegions())
    if (!region.empty() && !region.hasOneBlock())
      return op->emitError(
          "has a region of several blocks; only regions of one "
          "block can be parallelized");
  if (failed(checkTypes(op, op->getResultTypes(), "result")))
    return failure();

  SmallVector<Edge> edges = collectEdges(op);
  llvm::EquivalenceClasses<Value> groups = groupInputs(edges);
  SmallVector<ShardingAttr> fixed = getResultShardings(op);
  llvm::SmallDenseMap<Value, unsigned> nodeOf;
  llvm::SmallDenseSet<Value> seen;
  for (auto [operand, input] : edges) {
    if (locals.contains(operand->get()))
      return operand->getOwner()->emitError(
          "can't take a local value; tp.from_local makes a global one of it");
    if (!seen.insert(input).second)
      continue;
    auto result = dyn_cast<OpResult>(input);
    bool isResult = result && result.getOwner() == op;
    ShardingAttr wanted = isResult && !fixed.empty()
                              ? fixed[result.getResultNumber()]
                              : ShardingAttr();
    auto [it, isNew] = nodeOf.try_emplace(groups.getLeaderValue(input));
    unsigned &node = it->second;
    if (isNew) {
      node = addPassing(instance, input.getType(), wanted);
    } else if (wanted && nodes[node].kind == Node::Compute) {
      nodes[node].kind = Node::Fixed;
      nodes[node].required = nodes[node].produced = wanted;
    }
    addResult(node, input, instance, isResult ? weight : inner);
  }
  // Operands of the op first: those of terminators are values that are still to
  // be added.
  llvm::SmallDenseSet<OpOperand *> used;
  auto addUses = [&](bool ofOp) {
    for (auto [operand, input] : edges)
      if ((operand->getOwner() == op) == ofOp && used.insert(operand).second)
        addUse(nodeOf.lookup(groups.getLeaderValue(input)), *operand, instance);
  };
  addUses(/*ofOp=*/true);
  for (Region &region : op->getRegions())
    if (!region.empty() && failed(addBlock(region.front(), instance, inner)))
      return failure();
  addUses(/*ofOp=*/false);
  return success();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Adds an op that takes or gives local values: ops between tp.to_local and
/// tp.from_local stay as they are.
LogicalResult Graph::addLocalView(Operation *op, unsigned instance,
                                  int64_t weight) {
  if (auto toLocal = dyn_cast<ToLocalOp>(op)) {
    if (locals.contains(toLocal.getInput()))
      return op->emitError("the input is a local value already");
    unsigned node = addFixed(instance, op, toLocal.getSharding(),
                             getReplicated(toLocal.getType()));
    addUse(node, op->getOpOperand(0), instance);
    addResult(node, toLocal, instance, weight);
    locals.insert(toLocal);
    return success();
  }
  if (auto fromLocal = dyn_cast<FromLocalOp>(op)) {
    if (!locals.contains(fromLocal.getInput()))
      return op->emitError("the input isn't a local value; tp.to_local makes "
                           "one of a global value");
    unsigned node =
        addFixed(instance, op, getReplicated(fromLocal.getInput().getType()),
                 fromLocal.getSharding());
    addUse(node, op->getOpOperand(0), instance);
    addResult(node, fromLocal, instance, weight);
    return success();
  }
  // Any other op runs unchanged on each rank.
  if (!isa<ShardingRuleOpInterface>(op))
    return op->emitError("can't take a local value; tp.from_local makes a "
                         "global one of it");
  for (OpOperand &operand : op->getOpOperands())
    if (isTensor(operand.get().getType()))
      addUse(addFixed(instance, op, getReplicated(operand.get().getType()), {}),
             operand, instance);
  for (Value result : op->getResults()) {
    if (isTensor(result.getType()))
      addResult(addFixed(instance, op, {}, getReplicated(result.getType())),
                result, instance, weight);
    locals.insert(result);
  }
  return success();
}

void Graph::addComputeOp(Operation *op, unsigned rule, unsigned instance,
                         int64_t weight) {
  SmallVector<ShardingAttr> fixed = getResultShardings(op);
  if (ParameterOpInterface parameter = getParameter(op)) {
    // A parameter that several modules share has one placement.
    auto [it, inserted] = parameters.try_emplace(
        {instance, parameter.getFqnAttr()}, values.size());
    if (!inserted) {
      instances[instance].values[parameter.getResult()] = it->second;
      FlowValue &value = values[it->second];
      Node &node = nodes[value.node];
      if (!fixed.empty() && node.kind == Node::Compute) {
        node.kind = Node::Fixed;
        node.required = node.produced = fixed.front();
      }
      return;
    }
  }
  if (!fixed.empty() && op->getNumOperands() == 0) {
    for (auto [result, sharding] : llvm::zip(op->getResults(), fixed)) {
      unsigned node = addFixed(instance, op, {}, sharding);
      addResult(node, result, instance, weight);
      values.back().isParameter = !sharding.isReplicated();
    }
    return;
  }
  ++numOps;
  unsigned node = addNode({Node::Compute, instance, op, rule});
  // Values from outside that a body reads must be whole.
  if (op->getNumRegions())
    visitUsedValuesDefinedAbove(op->getRegions(), [&](OpOperand *operand) {
      if (isTensor(operand->get().getType()))
        addUse(addFixed(instance, nullptr,
                        getReplicated(operand->get().getType()), {}),
               *operand, instance);
    });
  bool ofParameters = false, ofOthers = false;
  for (OpOperand &operand : op->getOpOperands()) {
    addUse(node, operand, instance);
    unsigned value = nodes[node].operands.back();
    if (value != kNoValue)
      (values[value].isParameter ? ofParameters : ofOthers) = true;
  }
  for (Value result : op->getResults()) {
    unsigned value = addResult(node, result, instance, weight);
    if (value == kNoValue)
      continue;
    values[value].isParameter = ofParameters && !ofOthers;
    if (fixed.empty())
      continue;
    // The placement that the rule gives is redistributed to the one that the IR
    // fixes.
    values[value].value = Value();
    ShardingAttr sharding = fixed[cast<OpResult>(result).getResultNumber()];
    unsigned pin = addFixed(instance, nullptr, sharding, sharding);
    nodes[pin].operands.push_back(value);
    values[value].uses.push_back({pin, 0, instance, nullptr});
    bool isParameter = values[value].isParameter;
    if (addResult(pin, result, instance, weight) != kNoValue)
      values.back().isParameter = isParameter;
  }
}

/// The parameter passes on the assigned value, as a loop does a carried value.
LogicalResult Graph::addAssign(AssignOpInterface op, unsigned instance) {
  auto found = parameters.find({instance, op.getFqnAttr()});
  if (found == parameters.end())
    return op.emitError("assigns ")
           << op.getFqnAttr()
           << ", but no 'nn.parameter' of this FQN precedes it";
  unsigned index = values[found->second].node;
  Node &node = nodes[index];
  if (!node.operands.empty())
    return op.emitError("assigns ") << op.getFqnAttr() << " a second time";
  if (node.kind == Node::Fixed)
    node.required = node.produced;
  else
    node.rule =
        space.getIdentityRule(cast<RankedTensorType>(op.getValue().getType()),
                              /*isLinear=*/false);
  addUse(index, op->getOpOperand(0), instance);
  return success();
}

LogicalResult Graph::addOp(Operation *op, unsigned instance, int64_t weight) {
  // Most ops.
  if (locals.empty())
    if (std::optional<unsigned> rule = space.getPlainRule(op)) {
      addComputeOp(op, *rule, instance, weight);
      return success();
    }
  if (failed(checkTypes(op, op->getResultTypes(), "result")))
    return failure();
  if (isa<ToLocalOp, FromLocalOp>(op) ||
      llvm::any_of(op->getOperands(),
                   [&](Value operand) { return locals.contains(operand); }))
    return addLocalView(op, instance, weight);
  auto addOne = [&](unsigned node) {
    addUse(node, op->getOpOperand(0), instance);
    unsigned from = nodes[node].operands.back();
    bool isParameter = from != kNoValue && values[from].isParameter;
    if (addResult(node, op->getResult(0), instance, weight) != kNoValue)
      values.back().isParameter = isParameter;
  };
  unsigned identity =
      op->getNumResults() == 1 && isTensor(op->getResult(0).getType()) &&
              isa<RedistributeOp, ConstraintOp, PropagationBarrierOp>(op)
          ? space.getIdentityRule(
                cast<RankedTensorType>(op->getResult(0).getType()))
          : 0;
  if (auto redistribute = dyn_cast<RedistributeOp>(op)) {
    ShardingAttr target = redistribute.getSharding();
    addOne(redistribute.getOver()
               ? addNode({Node::Over, instance, op, identity, target, target})
               : addFixed(instance, op, target, target));
    return success();
  }
  if (auto distribute = dyn_cast<DistributeOp>(op)) {
    addOne(addFixed(instance, op, distribute.getSharding(),
                    distribute.getSharding()));
    return success();
  }
  if (auto constraint = dyn_cast<ConstraintOp>(op)) {
    addOne(addNode({Node::Constraint, instance, op, identity,
                    constraint.getSharding(), constraint.getSharding()}));
    return success();
  }
  if (isa<PropagationBarrierOp>(op)) {
    addOne(addNode({Node::Barrier, instance, op, identity}));
    return success();
  }
  if (auto ruleOp = dyn_cast<ShardingRuleOpInterface>(op)) {
    addComputeOp(op, space.getRule(ruleOp), instance, weight);
    return success();
  }
  if (auto assign = dyn_cast<AssignOpInterface>(op))
    return addAssign(assign, instance);
  if (auto regions = dyn_cast<RegionBranchOpInterface>(op))
    return addRegionOp(regions, instance, weight);
  if (auto call = dyn_cast<CallOpInterface>(op))
    return addCall(call, instance, weight);
  // Scalars are the same on all ranks.
  if (op->getNumRegions() == 0 &&
      llvm::none_of(op->getOperandTypes(), isTensor) &&
      llvm::none_of(op->getResultTypes(), isTensor))
    return success();
  return op->emitError() << "'" << op->getName()
                         << "' has no sharding rule; it needs "
                            "ShardingRuleOpInterface to be parallelized";
}

LogicalResult Graph::addBlock(Block &block, unsigned instance, int64_t weight) {
  for (Operation &op : block.without_terminator())
    if (failed(addOp(&op, instance, weight)))
      return failure();
  return success();
}

LogicalResult Graph::addEndLayers(ElidedLayers &elided, unsigned instance) {
  const Repetition &layers = elided.repetition;
  auto addOps = [&](size_t first, size_t end) {
    for (Operation *op : ArrayRef(layers.ops).slice(first, end - first))
      if (failed(addOp(op, instance, 1)))
        return failure();
    return success();
  };
  size_t front = layers.margin - 1, behind = layers.count - layers.margin;
  if (failed(addOps(0, layers.getFirst(front))))
    return failure();
  elided.before = nodes.size();
  unsigned numOpsBefore = numOps;
  if (failed(addOps(layers.getFirst(front), layers.getFirst(front + 1))))
    return failure();
  numOps += (numOps - numOpsBefore) * layers.getNumInMiddle();
  for (size_t offset = 0; offset < layers.period; ++offset)
    for (auto [left, given] :
         llvm::zip_equal(layers.getOp(behind - 1, offset)->getResults(),
                         layers.getOp(front, offset)->getResults()))
      if (isTensor(given.getType()))
        instances[instance].values[left] = getValue(given, instance);
  elided.begin = nodes.size();
  if (failed(addOps(layers.getFirst(behind), layers.getFirst(behind + 1))))
    return failure();
  elided.end = nodes.size();
  return addOps(layers.getFirst(behind + 1), layers.ops.size());
}
