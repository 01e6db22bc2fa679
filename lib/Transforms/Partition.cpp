//===- Partition.cpp - From global values to one rank's -------------------===//
//
// Every op's placements are checked against its rule, which gives its split;
// the op's partition hook then builds its local form. A redistribution becomes
// the collectives that lead from one placement to the other.
//
//===----------------------------------------------------------------------===//

#include "tp/Analysis/Redistribution.h"
#include "tp/Analysis/SplitInference.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::tp {
#define GEN_PASS_DEF_PARTITION
#include "tp/Transforms/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

class FunctionPartitioner {
public:
  FunctionPartitioner(func::FuncOp function, MeshOp mesh)
      : function(function), mesh(mesh) {}

  LogicalResult run();

private:
  FailureOr<RankedTensorType> getLocal(Type global, ShardingAttr sharding,
                                       Operation *op);
  FailureOr<ShardingAttr> getSharding(Value value, Operation *user);
  LogicalResult partitionInterface();
  LogicalResult partition(Operation *op);
  LogicalResult partitionRuleOp(ShardingRuleOpInterface op);
  LogicalResult partitionRedistribute(RedistributeOp op);
  Value applyStep(const RedistributionStep &step, Value value,
                  RedistributeOp op, OpBuilder &builder);

  func::FuncOp function;
  MeshOp mesh;
  DenseMap<Value, ShardingAttr> shardings;
  IRMapping local;
};

} // namespace

FailureOr<RankedTensorType>
FunctionPartitioner::getLocal(Type global, ShardingAttr sharding,
                              Operation *op) {
  return getLocalType(cast<RankedTensorType>(global), sharding, mesh,
                      [&]() { return op->emitError(); });
}

FailureOr<ShardingAttr> FunctionPartitioner::getSharding(Value value,
                                                         Operation *user) {
  if (ShardingAttr sharding = shardings.lookup(value))
    return sharding;
  InFlightDiagnostic diag = user->emitError()
                            << "operand has no placement; tp-propagate gives "
                               "one to every value";
  diag.attachNote(value.getLoc()) << "the operand is defined here";
  return diag;
}

/// Argument and result types become local; the global ones stay as attributes.
LogicalResult FunctionPartitioner::partitionInterface() {
  SmallVector<Type> inputs, results;
  Block &block = function.getBody().front();
  auto partitionOne = [&](Type type, ShardingAttr sharding,
                          StringRef what) -> FailureOr<Type> {
    if (!isa<RankedTensorType>(type))
      return function.emitError() << what << " is not a ranked tensor";
    if (!sharding)
      return function.emitError()
             << what << " has no placement; tp-propagate gives it one";
    if (sharding.isPartial())
      return function.emitError()
             << what << " can't be " << printPlacements(sharding, mesh)
             << " at a function's boundary";
    FailureOr<RankedTensorType> localType = getLocal(type, sharding, function);
    if (failed(localType))
      return failure();
    return Type(*localType);
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
    function.setArgAttr(index, kGlobalTypeAttr,
                        TypeAttr::get(argument.getType()));
    shardings[argument] = sharding;
    inputs.push_back(*type);
  }
  for (auto [index, type] : llvm::enumerate(function.getResultTypes())) {
    FailureOr<Type> localType =
        partitionOne(type, getResultSharding(function, index),
                     "result " + std::to_string(index));
    if (failed(localType))
      return failure();
    function.setResultAttr(index, kGlobalTypeAttr, TypeAttr::get(type));
    results.push_back(*localType);
  }
  // Local arguments stand beside the global ones until the body is converted.
  for (auto [index, type] : llvm::enumerate(inputs)) {
    BlockArgument argument = block.getArgument(index);
    local.map(argument, block.addArgument(type, argument.getLoc()));
  }
  function.setFunctionType(
      FunctionType::get(function.getContext(), inputs, results));
  return success();
}

LogicalResult
FunctionPartitioner::partitionRuleOp(ShardingRuleOpInterface op) {
  SmallVector<ShardingAttr> operandShardings, resultShardings;
  for (Value operand : op->getOperands()) {
    FailureOr<ShardingAttr> sharding = getSharding(operand, op);
    if (failed(sharding))
      return failure();
    operandShardings.push_back(*sharding);
  }
  resultShardings = getResultShardings(op);
  if (resultShardings.size() != op->getNumResults())
    return op->emitError("has no placement; tp-propagate gives one to every op");
  FailureOr<OpSplit> split =
      inferSplit(op, mesh, operandShardings, resultShardings);
  if (failed(split))
    return failure();

  SmallVector<Type> types;
  for (auto [result, sharding] : llvm::zip(op->getResults(), resultShardings)) {
    FailureOr<RankedTensorType> type = getLocal(result.getType(), sharding, op);
    if (failed(type))
      return failure();
    types.push_back(*type);
    shardings[result] = sharding;
  }
  SmallVector<Value> operands = llvm::map_to_vector(
      op->getOperands(), [&](Value v) { return local.lookup(v); });
  OpBuilder builder(op);
  Operation *previous = op->getPrevNode();
  FailureOr<SmallVector<Value>> results =
      op.partition(builder, operands, types, *split);
  if (failed(results))
    return op->emitError("can't be partitioned");
  for (auto [result, value] : llvm::zip(op->getResults(), *results))
    local.map(result, value);

  // What the op was replaced by comes from the same module, and has no global
  // placement any more; a source says what it is a block of.
  Operation *first =
      previous ? previous->getNextNode() : &op->getBlock()->front();
  for (Operation *it = first; it != op; it = it->getNextNode()) {
    it->removeAttr(kShardingAttr);
    it->removeAttr(kShardingsAttr);
    if (auto fqn = op->getAttr(kFqnAttr))
      it->setAttr(kFqnAttr, fqn);
  }
  if (isa<nn::ParameterOp>(op)) {
    Operation *parameter = results->front().getDefiningOp();
    parameter->setAttr(kShardingAttr, resultShardings.front());
    parameter->setAttr(kGlobalTypeAttr,
                       TypeAttr::get(op->getResult(0).getType()));
  }
  return success();
}

Value FunctionPartitioner::applyStep(const RedistributionStep &step,
                                     Value value, RedistributeOp op,
                                     OpBuilder &builder) {
  Location loc = op.getLoc();
  auto meshRef = FlatSymbolRefAttr::get(mesh.getSymNameAttr());
  auto axes = AxisListAttr::get(op.getContext(), step.axes);
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  int64_t n = mesh.getAxesSize(step.axes);
  StringAttr fqn = op.getFqnAttr(), reason = op.getReasonAttr();
  IntegerAttr dim = builder.getI64IntegerAttr(step.dim);
  IntegerAttr bytes; // set once the op exists

  switch (step.kind) {
  case RedistributionStep::LocalSlice:
    shape[step.dim] /= n;
    return LocalSliceOp::create(builder, loc, type.clone(shape), value, dim,
                                meshRef, axes);
  case RedistributionStep::AllGather:
    shape[step.dim] *= n;
    return AllGatherOp::create(builder, loc, type.clone(shape), value, dim,
                               meshRef, axes, fqn, reason, bytes);
  case RedistributionStep::ReduceScatter:
    shape[step.dim] /= n;
    return ReduceScatterOp::create(builder, loc, type.clone(shape), value,
                                   step.reduction, dim, meshRef, axes, fqn,
                                   reason, bytes);
  case RedistributionStep::AllReduce:
    return AllReduceOp::create(builder, loc, type, value, step.reduction,
                               meshRef, axes, fqn, reason, bytes);
  case RedistributionStep::AllToAll:
    shape[step.dim] /= n;
    shape[step.concatDim] *= n;
    return AllToAllOp::create(builder, loc, type.clone(shape), value, dim,
                              builder.getI64IntegerAttr(step.concatDim),
                              meshRef, axes, fqn, reason, bytes);
  }
  llvm_unreachable("unknown step");
}

LogicalResult FunctionPartitioner::partitionRedistribute(RedistributeOp op) {
  FailureOr<ShardingAttr> from = getSharding(op.getInput(), op);
  if (failed(from))
    return failure();
  auto steps = planRedistribution(*from, op.getSharding(), mesh,
                                  [&]() { return op.emitError(); });
  if (failed(steps))
    return failure();
  OpBuilder builder(op);
  Value value = local.lookup(op.getInput());
  for (const RedistributionStep &step : *steps) {
    // Diagnoses sizes that don't divide, before an op with such a type exists.
    if (failed(getLocal(op.getType(), step.result, op)))
      return failure();
    value = applyStep(step, value, op, builder);
    if (auto collective = value.getDefiningOp<CollectiveOpInterface>())
      setCollectiveBytes(collective, mesh);
  }
  local.map(op.getResult(), value);
  shardings[op.getResult()] = op.getSharding();
  return success();
}

LogicalResult FunctionPartitioner::partition(Operation *op) {
  if (auto redistribute = dyn_cast<RedistributeOp>(op))
    return partitionRedistribute(redistribute);
  if (auto ruleOp = dyn_cast<ShardingRuleOpInterface>(op))
    return partitionRuleOp(ruleOp);
  if (auto returnOp = dyn_cast<func::ReturnOp>(op)) {
    for (OpOperand &operand : returnOp->getOpOperands()) {
      FailureOr<ShardingAttr> sharding = getSharding(operand.get(), op);
      if (failed(sharding))
        return failure();
      ShardingAttr wanted =
          getResultSharding(function, operand.getOperandNumber());
      if (*sharding != wanted)
        return op->emitError()
               << "result " << operand.getOperandNumber() << " is declared "
               << printPlacements(wanted, mesh) << " but returned as "
               << printPlacements(*sharding, mesh);
      operand.set(local.lookup(operand.get()));
    }
    return success();
  }
  return op->emitError() << "'" << op->getName()
                         << "' has no sharding rule; it needs "
                            "ShardingRuleOpInterface to be partitioned";
}

LogicalResult FunctionPartitioner::run() {
  if (!function.getBody().hasOneBlock())
    return function.emitError("only functions of one block can be partitioned");
  if (failed(partitionInterface()))
    return failure();
  Block &block = function.getBody().front();
  SmallVector<Operation *> globalOps = llvm::map_to_vector(
      block, [](Operation &op) { return &op; });
  for (Operation *op : globalOps)
    if (failed(partition(op)))
      return failure();
  globalOps.pop_back(); // the return stays
  for (Operation *op : llvm::reverse(globalOps))
    op->erase();
  block.eraseArguments(0, block.getNumArguments() / 2);
  return success();
}

namespace {
struct Partition : tp::impl::PartitionBase<Partition> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<MeshOp> mesh = getMesh(module);
    if (failed(mesh))
      return signalPassFailure();
    if (!*mesh) {
      module.emitError("no tp.mesh to partition over");
      return signalPassFailure();
    }
    inlineModules(module);
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal() &&
          failed(FunctionPartitioner(function, *mesh).run()))
        return signalPassFailure();
  }
};
} // namespace
