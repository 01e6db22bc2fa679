//===- Partition.cpp - From global values to one rank's -------------------===//
//
// Every op's placements are checked against its rule, which gives its split;
// the op's partition hook then builds its local form. A redistribution becomes
// the collectives that lead from one placement to the other.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Transforms/RegionUtils.h"
#include "tp/Analysis/Redistribution.h"
#include "tp/Analysis/SplitInference.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"
#include <map>

namespace mlir::tp {
#define GEN_PASS_DEF_PARTITION
#include "tp/Transforms/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

/// Makes the program of `rank`, and of all ranks whose blocks have the same
/// shapes.
class FunctionPartitioner {
public:
  FunctionPartitioner(func::FuncOp function, MeshOp mesh, int64_t rank,
                      RedistributionPlanner &planner)
      : function(function), mesh(mesh), rank(rank), planner(planner) {}

  LogicalResult run();

private:
  FailureOr<ShardingAttr> getSharding(Value value, Operation *user);
  LogicalResult partitionInterface();
  LogicalResult partition(Operation *op);
  LogicalResult partitionRuleOp(ShardingRuleOpInterface op);
  LogicalResult partitionRedistribute(RedistributeOp op);
  Value applyStep(const RedistributionStep &step, Value value,
                  RedistributeOp op, OpBuilder &builder);

  func::FuncOp function;
  MeshOp mesh;
  int64_t rank;
  RedistributionPlanner &planner;
  DenseMap<Value, ShardingAttr> shardings;
  IRMapping local;
  SmallVector<Attribute> certificates;
};

} // namespace

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

LogicalResult FunctionPartitioner::partitionRuleOp(ShardingRuleOpInterface op) {
  SmallVector<ShardingAttr> operandShardings, resultShardings;
  for (Value operand : op->getOperands()) {
    FailureOr<ShardingAttr> sharding = getSharding(operand, op);
    if (failed(sharding))
      return failure();
    operandShardings.push_back(*sharding);
  }
  resultShardings = getResultShardings(op);
  if (resultShardings.size() != op->getNumResults())
    return op->emitError(
        "has no placement; tp-propagate gives one to every op");
  FailureOr<OpSplit> split =
      inferSplit(op, mesh, rank, operandShardings, resultShardings);
  if (failed(split))
    return failure();

  SmallVector<Type> types;
  for (auto [result, sharding] : llvm::zip(op->getResults(), resultShardings)) {
    auto tensor = dyn_cast<RankedTensorType>(result.getType());
    types.push_back(tensor ? getLocalType(tensor, sharding, mesh, rank)
                           : result.getType());
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
    // A copied body reads what the op's body read.
    for (Region &region : it->getRegions())
      visitUsedValuesDefinedAbove(region, region, [&](OpOperand *operand) {
        operand->set(local.lookupOrDefault(operand->get()));
      });
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
  auto global = cast<RankedTensorType>(op.getType());
  Type type = getLocalType(global, step.result, mesh, rank);
  StringAttr fqn = op.getFqnAttr(), reason = op.getReasonAttr();
  IntegerAttr dim = builder.getI64IntegerAttr(step.dim);
  IntegerAttr bytes; // set once the op exists

  switch (step.kind) {
  case RedistributionStep::LocalSlice:
    return LocalSliceOp::create(builder, loc, type, value, dim, meshRef, axes);
  case RedistributionStep::AllGather:
    return AllGatherOp::create(builder, loc, type, value, dim, meshRef, axes,
                               fqn, reason, bytes);
  case RedistributionStep::ReduceScatter:
    return ReduceScatterOp::create(builder, loc, type, value, step.reduction,
                                   dim, meshRef, axes, fqn, reason, bytes);
  case RedistributionStep::AllReduce:
    return AllReduceOp::create(builder, loc, type, value, step.reduction,
                               meshRef, axes, fqn, reason, bytes);
  case RedistributionStep::AllToAll:
    return AllToAllOp::create(builder, loc, type, value, dim,
                              builder.getI64IntegerAttr(step.concatDim),
                              meshRef, axes, fqn, reason, bytes);
  case RedistributionStep::Permute:
    return PermuteOp::create(builder, loc, type, value,
                             builder.getDenseI64ArrayAttr(step.source), meshRef,
                             axes, fqn, reason, bytes);
  case RedistributionStep::Exchange:
    return ExchangeOp::create(builder, loc, type, value,
                              builder.getDenseI64ArrayAttr(global.getShape()),
                              step.operand, step.result, meshRef, axes, fqn,
                              reason, bytes);
  }
  llvm_unreachable("unknown step");
}

/// What docs/Report.md calls a redistribution.
static DictionaryAttr getCertificate(const RedistributionPlan &plan,
                                     ShardingAttr from, RedistributeOp op) {
  Builder b(op.getContext());
  auto number = [&](int64_t value) { return b.getI64IntegerAttr(value); };
  SmallVector<Attribute> steps;
  for (const RedistributionStep &step : plan.steps)
    steps.push_back(b.getDictionaryAttr(
        {b.getNamedAttr("kind", b.getStringAttr(stringifyStep(step.kind))),
         b.getNamedAttr("axes", AxisListAttr::get(op.getContext(), step.axes)),
         b.getNamedAttr("to", step.result)}));
  return b.getDictionaryAttr(
      {b.getNamedAttr("from", from), b.getNamedAttr("to", op.getSharding()),
       b.getNamedAttr("type", TypeAttr::get(op.getType())),
       b.getNamedAttr("fqn", b.getStringAttr(op.getFqn().value_or(""))),
       b.getNamedAttr("reason", b.getStringAttr(op.getReason().value_or(""))),
       b.getNamedAttr("received_total", number(plan.receivedTotal)),
       b.getNamedAttr("received_max", number(plan.receivedMax)),
       b.getNamedAttr("lower_bound_total", number(plan.lowerBoundTotal)),
       b.getNamedAttr("lower_bound_max", number(plan.lowerBoundMax)),
       b.getNamedAttr("peak", number(plan.peak)),
       b.getNamedAttr("peak_lower_bound", number(plan.peakLowerBound)),
       b.getNamedAttr("steps", b.getArrayAttr(steps))});
}

LogicalResult FunctionPartitioner::partitionRedistribute(RedistributeOp op) {
  FailureOr<ShardingAttr> from = getSharding(op.getInput(), op);
  if (failed(from))
    return failure();
  auto plan = planner.plan(*from, op.getSharding(), op.getType(),
                           [&]() { return op.emitError(); });
  if (failed(plan))
    return failure();
  OpBuilder builder(op);
  Value value = local.lookup(op.getInput());
  for (const RedistributionStep &step : (*plan)->steps)
    value = applyStep(step, value, op, builder);
  local.map(op.getResult(), value);
  shardings[op.getResult()] = op.getSharding();
  certificates.push_back(getCertificate(**plan, *from, op));
  return success();
}

LogicalResult FunctionPartitioner::partition(Operation *op) {
  // Between these two, a rank's block is a value of its own.
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
    local.map(op->getResult(0), local.lookup(op->getOperand(0)));
    return success();
  }
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
  if (failed(partitionInterface()))
    return failure();
  Block &block = function.getBody().front();
  SmallVector<Operation *> globalOps =
      llvm::map_to_vector(block, [](Operation &op) { return &op; });
  for (Operation *op : globalOps)
    if (failed(partition(op)))
      return failure();
  globalOps.pop_back(); // the return stays
  for (Operation *op : llvm::reverse(globalOps))
    op->erase();
  block.eraseArguments(0, block.getNumArguments() / 2);
  if (!certificates.empty())
    function->setAttr(kRedistributionsAttr,
                      ArrayAttr::get(function.getContext(), certificates));
  return success();
}

/// The ranks in groups whose blocks, of every value and of every step of a
/// redistribution, have the same shapes: each group runs one program.
static FailureOr<SmallVector<SmallVector<int64_t>>>
groupRanks(func::FuncOp function, MeshOp mesh, RedistributionPlanner &planner) {
  llvm::SetVector<std::pair<int64_t, AxisListAttr>> splits;
  auto add = [&](Type type, ShardingAttr sharding) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!sharding || !tensor || isEven(tensor.getShape(), sharding, mesh))
      return;
    for (auto [size, axes] :
         llvm::zip_equal(tensor.getShape(), sharding.getDims()))
      splits.insert({size, axes});
  };
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    add(type, getArgSharding(function, i));
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    add(type, getResultSharding(function, i));
  for (Operation &op : function.getBody().front()) {
    for (auto [result, sharding] :
         llvm::zip(op.getResults(), getResultShardings(&op)))
      add(result.getType(), sharding);
    auto redistribute = dyn_cast<RedistributeOp>(op);
    if (!redistribute)
      continue;
    Value input = redistribute.getInput();
    ShardingAttr from;
    if (auto argument = dyn_cast<BlockArgument>(input))
      from = getArgSharding(function, argument.getArgNumber());
    else if (auto all = getResultShardings(input.getDefiningOp()); !all.empty())
      from = all[cast<OpResult>(input).getResultNumber()];
    if (!from)
      continue; // diagnosed later
    auto plan =
        planner.plan(from, redistribute.getSharding(), redistribute.getType(),
                     [&]() { return redistribute.emitError(); });
    if (failed(plan))
      return failure();
    for (const RedistributionStep &step : (*plan)->steps)
      add(redistribute.getType(), step.result);
  }

  std::map<SmallVector<int64_t>, SmallVector<int64_t>> byShapes;
  for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
    SmallVector<int64_t> shapes;
    for (auto [size, axes] : splits)
      for (Interval interval : getDimBlock(size, axes, mesh, rank))
        shapes.push_back(interval.size);
    byShapes[shapes].push_back(rank);
  }
  SmallVector<SmallVector<int64_t>> programs;
  for (auto &[shapes, ranks] : byShapes)
    programs.push_back(ranks);
  llvm::sort(programs);
  return programs;
}

namespace {
struct Partition : tp::impl::PartitionBase<Partition> {
  using PartitionBase::PartitionBase;

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
    RedistributionPlanner planner(*mesh, {oneShot, memory});
    for (auto function : llvm::to_vector(module.getOps<func::FuncOp>()))
      if (!function.isExternal() &&
          failed(partitionFunction(function, *mesh, planner)))
        return signalPassFailure();
  }

  LogicalResult partitionFunction(func::FuncOp function, MeshOp mesh,
                                  RedistributionPlanner &planner) {
    if (!function.getBody().hasOneBlock())
      return function.emitError(
          "only functions of one block can be partitioned");
    auto programs = groupRanks(function, mesh, planner);
    if (failed(programs))
      return failure();
    // Every further program is a copy of the function, after it.
    SmallVector<func::FuncOp> copies = {function};
    SymbolTable symbols(function->getParentOfType<ModuleOp>());
    for (size_t i = 1; i < programs->size(); ++i) {
      func::FuncOp copy = function.clone();
      symbols.insert(copy, std::next(Block::iterator(copies.back())));
      copies.push_back(copy);
    }
    for (auto [copy, ranks] : llvm::zip_equal(copies, *programs)) {
      if (copies.size() > 1)
        copy->setAttr(kRanksAttr, DenseI64ArrayAttr::get(&getContext(), ranks));
      if (failed(FunctionPartitioner(copy, mesh, ranks.front(), planner).run()))
        return failure();
    }
    for (func::FuncOp copy : copies)
      copy.walk(
          [&](CollectiveOpInterface op) { setCollectiveBytes(op, mesh); });
    return success();
  }
};
} // namespace
