//===- FunctionPartitioner.cpp - One rank's program of a function ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FunctionPartitioner.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Transforms/RegionUtils.h"
#include "tp/Dialect/TP/Fsdp.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Transforms/Utils.h"

using namespace mlir;
using namespace mlir::tp;

FailureOr<ShardingAttr> FunctionPartitioner::getSharding(Value value,
                                                         Operation *user) {
  if (ShardingAttr sharding = shardings.lookup(value))
    return sharding;
  // Scalars are the same on all ranks.
  if (!isa<RankedTensorType>(value.getType()))
    return ShardingAttr::getReplicated(
        FlatSymbolRefAttr::get(mesh.getSymNameAttr()), 0);
  InFlightDiagnostic diag = user->emitError()
                            << "operand has no placement; tp-propagate gives "
                               "one to every value";
  diag.attachNote(value.getLoc()) << "the operand is defined here";
  return diag;
}

FailureOr<SmallVector<ShardingAttr>>
FunctionPartitioner::getOperandShardings(Operation *op) {
  SmallVector<ShardingAttr> operands;
  for (Value operand : op->getOperands()) {
    FailureOr<ShardingAttr> sharding = getSharding(operand, op);
    if (failed(sharding))
      return failure();
    operands.push_back(*sharding);
  }
  return operands;
}

/// Argument and result types become local; the global ones stay as attributes.
LogicalResult FunctionPartitioner::partitionInterface() {
  SmallVector<Type> inputs, results;
  Block &block = function.getBody().front();
  auto partitionOne = [&](Type type, ShardingAttr sharding,
                          StringRef what) -> FailureOr<Type> {
    if (isa<ShapedType>(type) && !isa<RankedTensorType>(type))
      return function.emitError() << what << " is not a ranked tensor";
    if (!isa<RankedTensorType>(type))
      return type;
    if (!sharding)
      return function.emitError()
             << what << " has no placement; tp-propagate gives it one";
    return Type(
        getLocalType(cast<RankedTensorType>(type), sharding, mesh, rank));
  };
  for (BlockArgument argument : block.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (function.getArgAttr(index, kGlobalTypeAttr))
      return function.emitError("is partitioned already");
    ShardingAttr sharding = getArgSharding(function, index);
    FailureOr<Type> type = partitionOne(argument.getType(), sharding,
                                        "argument " + std::to_string(index));
    if (failed(type))
      return failure();
    if (sharding) {
      function.setArgAttr(index, kGlobalTypeAttr,
                          TypeAttr::get(argument.getType()));
      shardings[argument] = sharding;
    }
    inputs.push_back(*type);
  }
  for (auto [index, type] : llvm::enumerate(function.getResultTypes())) {
    FailureOr<Type> localType =
        partitionOne(type, getResultSharding(function, index),
                     "result " + std::to_string(index));
    if (failed(localType))
      return failure();
    if (isa<RankedTensorType>(type))
      function.setResultAttr(index, kGlobalTypeAttr, TypeAttr::get(type));
    results.push_back(*localType);
  }
  // Keep local arguments beside the global ones until the body is converted.
  for (auto [index, type] : llvm::enumerate(inputs)) {
    BlockArgument argument = block.getArgument(index);
    local.map(argument, block.addArgument(type, argument.getLoc()));
  }
  function.setFunctionType(
      FunctionType::get(function.getContext(), inputs, results));
  return success();
}

Value FunctionPartitioner::getLocalValue(Value value) {
  if (Value found = local.lookupOrNull(value))
    return found;
  BlockArgument standIn = function.getBody().front().addArgument(
      getLocal(value.getType(), shardings.lookup(value)), value.getLoc());
  standIns.push_back({standIn, value});
  local.map(value, standIn);
  return standIn;
}

/// Whether `made` equals `op` except for types and discardable attributes.
static bool isSameButTypes(Operation *op, Operation *made, ValueRange operands,
                           ValueRange results) {
  return made->getName() == op->getName() && made->getNumRegions() == 0 &&
         op->getNumRegions() == 0 &&
         llvm::equal(made->getOperands(), operands) &&
         llvm::equal(made->getResults(), results) &&
         op->getName().compareOpProperties(op->getPropertiesStorage(),
                                           made->getPropertiesStorage());
}

LogicalResult FunctionPartitioner::partitionRuleOp(ShardingRuleOpInterface op) {
  auto operands = getOperandShardings(op);
  if (failed(operands))
    return failure();
  LocalForm *form = forms.get(op, *operands);
  if (!form)
    return failure();
  for (auto [result, sharding] : llvm::zip(op->getResults(), form->results))
    if (isa<RankedTensorType>(result.getType()))
      shardings[result] = sharding;
  if (ParameterOpInterface parameter = getParameter(op)) {
    parameters[parameter.getFqnAttr()] = form->results.front();
    if (!op->use_empty())
      readParameters.insert(parameter.getFqnAttr());
  }
  // A region is rebuilt with all of its ops.
  bool mayStay = op->getBlock() == &function.getBody().front() &&
                 !isa<DestinationStyleOpInterface>(op.getOperation());
  if (form->isSameOp && mayStay) {
    kept.push_back({op, form});
    return success();
  }

  auto values = llvm::map_to_vector(op->getOperands(),
                                    [&](Value v) { return getLocalValue(v); });
  Block *block = builder.getInsertionBlock();
  Block::iterator end = builder.getInsertionPoint();
  Operation *previous = end == block->begin() ? nullptr : &*std::prev(end);
  FailureOr<SmallVector<Value>> results =
      op.partition(builder, values, form->types, form->split);
  if (failed(results))
    return op->emitError("can't be partitioned");
  Block::iterator begin =
      previous ? std::next(previous->getIterator()) : block->begin();
  if (mayStay && begin != end && std::next(begin) == end &&
      isSameButTypes(op, &*begin, values, *results)) {
    form->isSameOp = true;
    begin->erase();
    kept.push_back({op, form});
    return success();
  }
  for (auto [result, value] : llvm::zip(op->getResults(), *results))
    local.map(result, value);
  finishMade(op, begin, end);
  if (getParameter(op))
    results->front().getDefiningOp()->setDiscardableAttrs(
        forms.getAttrs(op, *form));
  return success();
}

void FunctionPartitioner::finishMade(Operation *op, Block::iterator begin,
                                     Block::iterator end) {
  for (Operation &made : llvm::make_range(begin, end)) {
    made.removeAttr(kShardingAttr);
    made.removeAttr(kShardingsAttr);
    // The new ops belong to the same module, and to the same part of a pipeline.
    for (StringRef name : {kFqnAttr, kStageAttr, kPassAttr})
      if (Attribute attr = op->getAttr(name))
        made.setAttr(name, attr);
    made.walk([&](CollectiveOpInterface collective) {
      setCollectiveBytes(collective, mesh);
    });
    // A copied body still reads global values.
    for (Region &region : made.getRegions())
      visitUsedValuesDefinedAbove(region, region, [&](OpOperand *operand) {
        if (shardings.contains(operand->get()) ||
            local.contains(operand->get()))
          operand->set(getLocalValue(operand->get()));
      });
  }
}

void FunctionPartitioner::finishKept() {
  for (auto [op, form] : kept) {
    op->setDiscardableAttrs(forms.getAttrs(op, *form));
    for (OpOperand &operand : op->getOpOperands())
      if (Value value = local.lookupOrNull(operand.get()))
        operand.set(value);
    for (auto [result, type] : llvm::zip(op->getResults(), form->types))
      result.setType(type);
  }
  for (auto [standIn, value] : standIns)
    standIn.replaceAllUsesWith(value);
  function.getBody().front().eraseArguments([&](BlockArgument argument) {
    return argument.getArgNumber() >= 2 * function.getNumArguments();
  });
}

LogicalResult FunctionPartitioner::partitionRedistribute(RedistributeOp op) {
  FailureOr<ShardingAttr> from = getSharding(op.getInput(), op);
  if (failed(from))
    return failure();
  auto plan = planner.plan(*from, op.getSharding(), op.getType(),
                           [&]() { return op.emitError(); });
  if (failed(plan))
    return failure();
  local.map(
      op.getResult(),
      redistributions.write(**plan, *from, op, getLocalValue(op.getInput())));
  shardings[op.getResult()] = op.getSharding();
  return success();
}

/// The value is this rank's block of the parameter.
LogicalResult FunctionPartitioner::partitionAssign(AssignOpInterface op) {
  FailureOr<ShardingAttr> sharding = getSharding(op.getValue(), op);
  if (failed(sharding))
    return failure();
  ShardingAttr wanted = parameters.lookup(op.getFqnAttr());
  if (!wanted)
    return op.emitError("assigns ")
           << op.getFqnAttr()
           << ", but no 'nn.parameter' of this FQN precedes it";
  if (wanted != *sharding)
    return op.emitError("assigns ")
           << op.getFqnAttr() << " a value that is "
           << printPlacements(*sharding, mesh) << ", but the parameter is "
           << printPlacements(wanted, mesh)
           << "; tp-propagate redistributes it";
  AssignOpInterface made = op.cloneFor(builder, getLocalValue(op.getValue()));
  // A parameter that nothing reads is erased as dead.
  if (!readParameters.contains(op.getFqnAttr())) {
    made->setAttr(kShardingAttr, wanted);
    made->setAttr(kGlobalTypeAttr, TypeAttr::get(op.getValue().getType()));
  }
  return success();
}

LogicalResult FunctionPartitioner::partition(Operation *op) {
  // Between tp.to_local and tp.from_local, a rank's block is a value of its
  // own.
  if (isa<ToLocalOp, FromLocalOp>(op)) {
    FailureOr<ShardingAttr> from = getSharding(op->getOperand(0), op);
    if (failed(from))
      return failure();
    auto toLocal = dyn_cast<ToLocalOp>(op);
    if (toLocal && *from != toLocal.getSharding())
      return op->emitError()
             << "the input is " << printPlacements(*from, mesh) << ", not "
             << printPlacements(toLocal.getSharding(), mesh)
             << "; tp-propagate redistributes it";
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    shardings[op->getResult(0)] =
        toLocal ? ShardingAttr::getReplicated(from->getMesh(), type.getRank())
                : cast<FromLocalOp>(op).getSharding();
    local.map(op->getResult(0), getLocalValue(op->getOperand(0)));
    return success();
  }
  if (auto redistribute = dyn_cast<RedistributeOp>(op))
    return partitionRedistribute(redistribute);
  if (auto assign = dyn_cast<AssignOpInterface>(op))
    return partitionAssign(assign);
  auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };
  if (op->getNumRegions() == 0 &&
      llvm::none_of(op->getOperandTypes(), isTensor) &&
      llvm::none_of(op->getResultTypes(), isTensor))
    return LogicalResult(cloneLocal(op));
  if (auto ruleOp = dyn_cast<ShardingRuleOpInterface>(op))
    return partitionRuleOp(ruleOp);
  if (auto regions = dyn_cast<RegionBranchOpInterface>(op))
    return partitionRegionOp(regions);
  if (auto call = dyn_cast<CallOpInterface>(op))
    return partitionCall(call);
  return op->emitError() << "'" << op->getName()
                         << "' has no sharding rule; it needs "
                            "ShardingRuleOpInterface to be partitioned";
}

//===----------------------------------------------------------------------===//
// Regions and calls
//===----------------------------------------------------------------------===//

FailureOr<Operation *> FunctionPartitioner::cloneLocal(Operation *op) {
  SmallVector<ShardingAttr> placed = getResultShardings(op);
  OperationState state(op->getLoc(), op->getName());
  for (Value operand : op->getOperands()) {
    if (failed(getSharding(operand, op)))
      return failure();
    state.addOperands(getLocalValue(operand));
  }
  for (OpResult result : op->getResults()) {
    bool isTensor = isa<RankedTensorType>(result.getType());
    if (isTensor && placed.size() != op->getNumResults())
      return op->emitError(
          "has no placement; tp-propagate gives one to every op");
    ShardingAttr sharding =
        isTensor ? placed[result.getResultNumber()] : ShardingAttr();
    state.addTypes(getLocal(result.getType(), sharding));
    if (isTensor)
      shardings[result] = sharding;
  }
  state.attributes = op->getDiscardableAttrDictionary();
  state.propertiesAttr = op->getPropertiesAsAttribute();
  for (unsigned i = 0; i < op->getNumRegions(); ++i)
    state.addRegion();
  Operation *clone = builder.create(state);
  clone->removeAttr(kShardingAttr);
  clone->removeAttr(kShardingsAttr);
  for (auto [from, to] : llvm::zip(op->getResults(), clone->getResults()))
    local.map(from, to);
  return clone;
}

/// Places the arguments of `region` like the values that are passed to them.
void FunctionPartitioner::setRegionArguments(RegionBranchOpInterface op,
                                             Region &region) {
  auto pass = [&](ValueRange operands, ValueRange inputs) {
    for (auto [operand, input] : llvm::zip(operands, inputs))
      if (ShardingAttr sharding = shardings.lookup(operand))
        shardings.try_emplace(input, sharding);
  };
  auto passAll = [&](RegionBranchPoint point, auto getOperands) {
    SmallVector<RegionSuccessor> successors;
    op.getSuccessorRegions(point, successors);
    for (RegionSuccessor successor : successors)
      if (successor.getSuccessor() == &region)
        pass(getOperands(successor), successor.getSuccessorInputs());
  };
  passAll(RegionBranchPoint::parent(), [&](RegionSuccessor successor) {
    return ValueRange(op.getEntrySuccessorOperands(successor));
  });
  for (Region &other : op->getRegions())
    if (!other.empty())
      if (auto terminator = dyn_cast<RegionBranchTerminatorOpInterface>(
              other.front().getTerminator()))
        passAll(RegionBranchPoint(terminator), [&](RegionSuccessor successor) {
          return ValueRange(terminator.getSuccessorOperands(successor));
        });
}

LogicalResult
FunctionPartitioner::partitionRegionOp(RegionBranchOpInterface op) {
  FailureOr<Operation *> clone = cloneLocal(op);
  if (failed(clone))
    return failure();
  OpBuilder::InsertionGuard guard(builder);
  for (auto [from, to] : llvm::zip(op->getRegions(), (*clone)->getRegions())) {
    if (from.empty())
      continue;
    if (!from.hasOneBlock())
      return op->emitError("has a region of several blocks; only regions of "
                           "one block can be partitioned");
    setRegionArguments(op, from);
    Block *block = builder.createBlock(&to);
    for (BlockArgument argument : from.getArguments()) {
      FailureOr<ShardingAttr> sharding = getSharding(argument, op);
      if (failed(sharding))
        return failure();
      local.map(argument,
                block->addArgument(getLocal(argument.getType(), *sharding),
                                   argument.getLoc()));
    }
    for (Operation &inner : from.front().without_terminator()) {
      builder.setInsertionPointToEnd(block);
      if (failed(partition(&inner)))
        return failure();
    }
    builder.setInsertionPointToEnd(block);
    if (failed(cloneLocal(from.front().getTerminator())))
      return failure();
  }
  // The results were placed as the IR says: check the values that become
  // results.
  SmallVector<RegionSuccessor> successors;
  for (Region &region : op->getRegions())
    if (!region.empty())
      if (auto terminator = dyn_cast<RegionBranchTerminatorOpInterface>(
              region.front().getTerminator())) {
        op.getSuccessorRegions(RegionBranchPoint(terminator), successors);
        for (RegionSuccessor successor : successors)
          for (auto [operand, input] :
               llvm::zip(terminator.getSuccessorOperands(successor),
                         successor.getSuccessorInputs()))
            if (shardings.lookup(operand) != shardings.lookup(input))
              return terminator->emitError()
                     << "passes on a value that is "
                     << printPlacements(shardings.lookup(operand), mesh)
                     << ", but needs to pass on "
                     << printPlacements(shardings.lookup(input), mesh);
        successors.clear();
      }
  return success();
}

LogicalResult FunctionPartitioner::partitionCall(CallOpInterface call) {
  auto callee = dyn_cast_or_null<func::FuncOp>(call.resolveCallable());
  if (!callee || !callees.contains(callee))
    return call->emitError("calls a function without a body here");
  for (auto [index, operand] : llvm::enumerate(call->getOperands())) {
    FailureOr<ShardingAttr> sharding = getSharding(operand, call);
    if (failed(sharding))
      return failure();
    ShardingAttr wanted = getArgSharding(callee, index);
    if (wanted && wanted != *sharding)
      return call->emitError() << "passes argument " << index << " as "
                               << printPlacements(*sharding, mesh) << ", and '@"
                               << callee.getSymName() << "' takes it as "
                               << printPlacements(wanted, mesh);
  }
  FailureOr<Operation *> clone = cloneLocal(call);
  if (failed(clone))
    return failure();
  cast<CallOpInterface>(*clone).setCalleeFromCallable(
      FlatSymbolRefAttr::get(callees.lookup(callee).getSymNameAttr()));
  return success();
}

LogicalResult FunctionPartitioner::run() {
  if (failed(partitionInterface()))
    return failure();
  Block &block = function.getBody().front();
  Operation *end = block.getTerminator();
  std::vector<Operation *> replaced;
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    builder.setInsertionPoint(&op);
    if (failed(partition(&op)))
      return failure();
    if (kept.empty() || kept.back().first != &op)
      replaced.push_back(&op);
  }
  for (OpOperand &operand : end->getOpOperands()) {
    FailureOr<ShardingAttr> sharding = getSharding(operand.get(), end);
    if (failed(sharding))
      return failure();
    ShardingAttr wanted =
        getResultSharding(function, operand.getOperandNumber());
    if (wanted && *sharding != wanted)
      return end->emitError()
             << "result " << operand.getOperandNumber() << " is declared "
             << printPlacements(wanted, mesh) << " but returned as "
             << printPlacements(*sharding, mesh);
    operand.set(local.lookupOrDefault(operand.get()));
  }
  finishKept();
  for (Operation *op : llvm::reverse(replaced))
    op->erase();
  block.eraseArguments(0, block.getNumArguments() / 2);
  if (ArrayRef<Attribute> certificates = redistributions.getCertificates();
      !certificates.empty())
    function->setAttr(kRedistributionsAttr,
                      ArrayAttr::get(function.getContext(), certificates));
  return success();
}
