//===- Partition.cpp - From global values to one rank's -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass checks every op's placements against its rule, which gives the op's
// split; the op's partition hook then builds its local form. A redistribution
// becomes the collectives that lead from one placement to the other.
//
// Ops of one class (OpClasses.h) with the same placements share one local form.
// If the local form is the op itself with local types, the op stays. It gets
// these types at the end, because hooks and rules of other ops look at the
// global ones.
//
//===----------------------------------------------------------------------===//

#include "RankGrouper.h"
#include "RedistributionWriter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Transforms/RegionUtils.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Sharding/Propagation/OpClasses.h"
#include "tp/Sharding/Redistribution/Redistribution.h"
#include "tp/Sharding/SplitInference.h"
#include "tp/Support/ListInterner.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include <deque>
#include <map>

namespace mlir::tp {
#define GEN_PASS_DEF_PARTITION
#include "tp/Transforms/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

/// Builds the program of `rank` and of all other ranks whose blocks have the
/// same shapes.
class FunctionPartitioner {
public:
  /// `callees` maps each called function to its program for these ranks.
  FunctionPartitioner(func::FuncOp function, MeshOp mesh, int64_t rank,
                      RedistributionPlanner &planner,
                      const DenseMap<Operation *, func::FuncOp> &callees)
      : function(function), mesh(mesh), rank(rank), planner(planner),
        callees(callees), builder(function.getContext()),
        redistributions(mesh, rank, builder) {}

  LogicalResult run();

private:
  /// What ops of one class with the same placements become.
  struct LocalForm {
    SmallVector<ShardingAttr> results;
    OpSplit split;
    SmallVector<Type> types;
    /// Whether the op stays, with these types; set when the form is first
    /// built.
    bool isSameOp = false;
    /// A cache: discardable attributes of the last global op, and of its local
    /// op. The next op mostly has the same ones.
    DictionaryAttr globalAttrs, localAttrs;
  };

  FailureOr<ShardingAttr> getSharding(Value value, Operation *user);
  /// The local form of `op`; null, with an error, if it has none.
  LocalForm *getLocalForm(ShardingRuleOpInterface op);
  /// The local value for `value`, for an op that is built here or by a hook.
  Value getLocalValue(Value value);
  DictionaryAttr getLocalAttrs(Operation *op, LocalForm &form);
  /// Gives the ops that stay their local operands and types.
  void finishKept();
  LogicalResult partitionInterface();
  /// Builds the local form of `op` at the builder's insertion point.
  LogicalResult partition(Operation *op);
  LogicalResult partitionRuleOp(ShardingRuleOpInterface op);
  LogicalResult partitionRegionOp(RegionBranchOpInterface op);
  LogicalResult partitionCall(CallOpInterface op);
  LogicalResult partitionRedistribute(RedistributeOp op);
  LogicalResult partitionAssign(nn::AssignOp op);
  void setRegionArguments(RegionBranchOpInterface op, Region &region);
  /// A copy of `op` on local operands, with the results' placements and empty
  /// regions.
  FailureOr<Operation *> cloneLocal(Operation *op);
  Type getLocal(Type type, ShardingAttr sharding) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor ? getLocalType(tensor, sharding, mesh, rank) : type;
  }

  func::FuncOp function;
  MeshOp mesh;
  int64_t rank;
  RedistributionPlanner &planner;
  const DenseMap<Operation *, func::FuncOp> &callees;
  OpBuilder builder;
  DenseMap<Value, ShardingAttr> shardings;
  IRMapping local;
  RedistributionWriter redistributions;
  OpClasses classes;
  /// Numbers the local forms, by class and placements.
  ListInterner formNumbers;
  std::deque<LocalForm> forms;
  std::vector<std::pair<Operation *, LocalForm *>> kept;
  /// Block arguments that stand for results of ops that stay, until these have
  /// their local types.
  SmallVector<std::pair<BlockArgument, Value>> standIns;
  /// An op of each parameter; filled at the first assignment.
  DenseMap<StringAttr, Value> parameters;
};

} // namespace

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

FunctionPartitioner::LocalForm *
FunctionPartitioner::getLocalForm(ShardingRuleOpInterface op) {
  bool isNew;
  WordList key = {classes.get(op, isNew)};
  SmallVector<ShardingAttr> operands;
  for (Value operand : op->getOperands()) {
    FailureOr<ShardingAttr> sharding = getSharding(operand, op);
    if (failed(sharding))
      return nullptr;
    operands.push_back(*sharding);
    key.push_back(toWord(sharding->getAsOpaquePointer()));
  }
  SmallVector<ShardingAttr> results = getResultShardings(op);
  for (ShardingAttr sharding : results)
    key.push_back(toWord(sharding.getAsOpaquePointer()));
  auto [number, isNewForm] = formNumbers.insert(key);
  // The rule of a destination-style op can depend on the op's inits.
  bool isAlone = isa<DestinationStyleOpInterface>(op.getOperation());
  if (!isNewForm && !isAlone)
    return &forms[number];

  if (llvm::none_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>))
    results.assign(op->getNumResults(),
                   ShardingAttr::getReplicated(
                       FlatSymbolRefAttr::get(mesh.getSymNameAttr()), 0));
  if (results.size() != op->getNumResults()) {
    op->emitError("has no placement; tp-propagate gives one to every op");
    return nullptr;
  }
  FailureOr<OpSplit> split = inferSplit(op, mesh, rank, operands, results);
  if (failed(split))
    return nullptr;
  LocalForm &form = isNewForm ? forms.emplace_back() : forms[number];
  form.results = results;
  form.split = std::move(*split);
  form.types.clear();
  for (auto [result, sharding] : llvm::zip(op->getResults(), results))
    form.types.push_back(getLocal(result.getType(), sharding));
  return &form;
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

/// Drops the global placements, except that a parameter keeps its sharding and
/// global type.
DictionaryAttr FunctionPartitioner::getLocalAttrs(Operation *op,
                                                  LocalForm &form) {
  DictionaryAttr attrs = op->getRawDictionaryAttrs();
  if (attrs == form.globalAttrs)
    return form.localAttrs;
  NamedAttrList list(attrs);
  list.erase(kShardingAttr);
  list.erase(kShardingsAttr);
  if (isa<nn::ParameterOp>(op)) {
    list.set(kShardingAttr, form.results.front());
    list.set(kGlobalTypeAttr, TypeAttr::get(op->getResult(0).getType()));
  }
  form.globalAttrs = attrs;
  return form.localAttrs = list.getDictionary(op->getContext());
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
  LocalForm *form = getLocalForm(op);
  if (!form)
    return failure();
  for (auto [result, sharding] : llvm::zip(op->getResults(), form->results))
    if (isa<RankedTensorType>(result.getType()))
      shardings[result] = sharding;
  // A region is rebuilt with all of its ops.
  bool mayStay = op->getBlock() == &function.getBody().front() &&
                 !isa<DestinationStyleOpInterface>(op.getOperation());
  if (form->isSameOp && mayStay) {
    kept.push_back({op, form});
    return success();
  }

  SmallVector<Value> operands = llvm::map_to_vector(
      op->getOperands(), [&](Value v) { return getLocalValue(v); });
  Block *block = builder.getInsertionBlock();
  Block::iterator end = builder.getInsertionPoint();
  Operation *previous = end == block->begin() ? nullptr : &*std::prev(end);
  FailureOr<SmallVector<Value>> results =
      op.partition(builder, operands, form->types, form->split);
  if (failed(results))
    return op->emitError("can't be partitioned");
  Block::iterator begin =
      previous ? std::next(previous->getIterator()) : block->begin();
  if (mayStay && begin != end && std::next(begin) == end &&
      isSameButTypes(op, &*begin, operands, *results)) {
    form->isSameOp = true;
    begin->erase();
    kept.push_back({op, form});
    return success();
  }
  for (auto [result, value] : llvm::zip(op->getResults(), *results))
    local.map(result, value);

  // The new ops belong to the same module.
  for (Operation &made : llvm::make_range(begin, end)) {
    made.removeAttr(kShardingAttr);
    made.removeAttr(kShardingsAttr);
    if (auto fqn = op->getAttr(kFqnAttr))
      made.setAttr(kFqnAttr, fqn);
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
  if (isa<nn::ParameterOp>(op))
    results->front().getDefiningOp()->setDiscardableAttrs(
        getLocalAttrs(op, *form));
  return success();
}

void FunctionPartitioner::finishKept() {
  for (auto [op, form] : kept) {
    op->setDiscardableAttrs(getLocalAttrs(op, *form));
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
LogicalResult FunctionPartitioner::partitionAssign(nn::AssignOp op) {
  if (parameters.empty())
    for (auto parameter : function.getOps<nn::ParameterOp>())
      parameters[parameter.getFqnAttr()] = parameter;
  FailureOr<ShardingAttr> sharding = getSharding(op.getValue(), op);
  if (failed(sharding))
    return failure();
  ShardingAttr wanted = shardings.lookup(parameters.lookup(op.getFqnAttr()));
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
  auto made =
      nn::AssignOp::create(builder, op.getLoc(), op.getFqnAttr(),
                           getLocalValue(op.getValue()), op.getInitAttr());
  if (auto fqn = op->getAttr(kFqnAttr))
    made->setAttr(kFqnAttr, fqn);
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
  if (auto assign = dyn_cast<nn::AssignOp>(op))
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
                     << "passes a value placed "
                     << printPlacements(shardings.lookup(operand), mesh)
                     << " on where "
                     << printPlacements(shardings.lookup(input), mesh)
                     << " is expected";
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

/// The functions of `module` in sets that calls connect.
static SmallVector<SmallVector<func::FuncOp>> getConnected(ModuleOp module) {
  llvm::EquivalenceClasses<Operation *> classes;
  llvm::MapVector<Operation *, SmallVector<func::FuncOp>> sets;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    classes.insert(function);
    function.walk([&](CallOpInterface call) {
      if (Operation *callee = call.resolveCallable())
        classes.unionSets(function, callee);
    });
  }
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal())
      sets[classes.getLeaderValue(function)].push_back(function);
  return llvm::map_to_vector(sets, [](auto &entry) { return entry.second; });
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
      module.emitError("no tp.mesh to partition over; declare one, or give "
                       "tp-parallelize or "
                       "tp-apply-plan a plan (plan=FILE)");
      return signalPassFailure();
    }
    inlineModules(module);
    RedistributionPlanner planner(*mesh, {oneShot, memory});
    for (ArrayRef<func::FuncOp> functions : getConnected(module))
      if (failed(partitionTogether(functions, *mesh, planner)))
        return signalPassFailure();
  }

  /// Functions that call each other have programs for the same ranks.
  LogicalResult partitionTogether(ArrayRef<func::FuncOp> functions, MeshOp mesh,
                                  RedistributionPlanner &planner) {
    RankGrouper grouper(mesh, planner);
    for (func::FuncOp function : functions) {
      if (!function.getBody().hasOneBlock())
        return function.emitError(
            "only functions of one block can be partitioned");
      if (failed(grouper.add(function)))
        return failure();
    }
    auto programs = grouper.getGroups();
    // Each further program is a copy of the function, inserted behind it.
    SymbolTable symbols(getOperation());
    SmallVector<DenseMap<Operation *, func::FuncOp>> copies(programs.size());
    for (func::FuncOp function : functions) {
      func::FuncOp last = function;
      copies[0][function] = function;
      for (size_t i = 1; i < programs.size(); ++i) {
        func::FuncOp copy = function.clone();
        symbols.insert(copy, std::next(Block::iterator(last)));
        copies[i][function] = last = copy;
      }
    }
    for (auto [callees, ranks] : llvm::zip_equal(copies, programs))
      for (func::FuncOp function : functions) {
        func::FuncOp copy = callees.lookup(function);
        if (programs.size() > 1)
          copy->setAttr(kRanksAttr,
                        DenseI64ArrayAttr::get(&getContext(), ranks));
        if (failed(
                FunctionPartitioner(copy, mesh, ranks.front(), planner, callees)
                    .run()))
          return failure();
      }
    // A function on its own calls no other.
    if (functions.size() == 1)
      return success();
    for (auto &callees : copies)
      for (auto &[original, copy] : callees) {
        if (copy.isPrivate())
          continue;
        SmallVector<Attribute> certificates;
        collectCertificates(copy, certificates);
        if (!certificates.empty())
          copy->setAttr(kRedistributionsAttr,
                        ArrayAttr::get(&getContext(), certificates));
      }
    return success();
  }

  /// Collects those of `function` and, once per call, those of its callees.
  void collectCertificates(func::FuncOp function,
                           SmallVectorImpl<Attribute> &certificates) {
    if (auto own = function->getAttrOfType<ArrayAttr>(kRedistributionsAttr))
      llvm::append_range(certificates, own);
    function.walk([&](CallOpInterface call) {
      if (auto callee = dyn_cast_or_null<func::FuncOp>(call.resolveCallable()))
        collectCertificates(callee, certificates);
    });
  }
};
} // namespace
