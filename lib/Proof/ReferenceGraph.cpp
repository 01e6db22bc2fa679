//===- ReferenceGraph.cpp - The values of the reference -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ReferenceGraph.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Sharding/SplitInference.h"

using namespace mlir;
using namespace mlir::tp;

/// The most dimensions along which one op reduces.
static constexpr unsigned kMaxSplit = 8;

ReferenceGraph::Id ReferenceGraph::add(Value value,
                                       ValueNumbering::Number number) {
  auto given = ids.find(value);
  auto [it, inserted] = byNumber.try_emplace(
      number, given != ids.end() ? given->second : entries.size());
  if (inserted && it->second == entries.size()) {
    entries.push_back({value, {}});
    numbers.push_back(number);
  }
  ids[value] = it->second;
  return it->second;
}

bool tp::isPlacementOnly(Operation *op) {
  return isa<RedistributeOp, DistributeOp, ConstraintOp, PropagationBarrierOp>(
      op);
}

bool tp::hasFollowedRegions(Operation *op) {
  return isa<RegionBranchOpInterface>(op) &&
         !isa<ShardingRuleOpInterface>(op) &&
         llvm::all_of(op->getRegions(), [](Region &region) {
           return region.empty() || region.hasOneBlock();
         });
}

ReferenceGraph::ReferenceGraph(func::FuncOp function, bool withParts)
    : function(function), tensors(TensorBuilder::get(function)),
      withParts(withParts), parts(ModuleOp::create(function.getLoc())) {
  if (withParts) {
    auto builder = OpBuilder::atBlockBegin(parts->getBody());
    SmallVector<std::string> names;
    for (unsigned i = 0; i < kMaxSplit; ++i)
      names.push_back(std::to_string(i));
    SmallVector<StringRef> axes(names.begin(), names.end());
    single = MeshOp::create(
        builder, function.getLoc(), "single", builder.getStrArrayAttr(axes),
        SmallVector<int64_t>(axes.size(), 1), DenseI64ArrayAttr());
  }
  Block &block = function.getBody().front();
  addBlock(block);
  for (Value operand : block.getTerminator()->getOperands())
    results.push_back(getId(operand));
  for (Id id : results)
    entries[id].isReturned = true;
}

void ReferenceGraph::addBlock(Block &block, bool isLocal) {
  for (BlockArgument argument : block.getArguments()) {
    // Each argument is a source of its own.
    auto name = IntegerAttr::get(IndexType::get(function.getContext()),
                                 static_cast<int64_t>(entries.size()));
    Id id = add(argument, numbering.getSource(name, argument.getType()));
    entries[id].isLocal = isLocal;
  }
  for (Operation &op : block.without_terminator())
    addOp(&op);
}

/// Returns whether `op` is new to the graph. An op that only names a value,
/// such as a parameter, doesn't count.
bool ReferenceGraph::addOp(Operation *op) {
  if (isPlacementOnly(op)) {
    ids[op->getResult(0)] = getId(op->getOperand(0));
    return false;
  }
  // `from_local` of a `to_local` with the same sharding gives the operand.
  if (auto fromLocal = dyn_cast<FromLocalOp>(op))
    if (auto toLocal = fromLocal.getInput().getDefiningOp<ToLocalOp>();
        toLocal && toLocal.getSharding() == fromLocal.getSharding() &&
        toLocal.getInput().getType() == fromLocal.getType()) {
      ids[fromLocal] = getId(toLocal.getInput());
      return false;
    }
  if (auto parameter = dyn_cast<nn::ParameterOp>(op)) {
    Id id = add(parameter, numbering.getSource(parameter.getFqnAttr(),
                                               parameter.getType()));
    parameters[parameter.getFqn()] = id;
    return false;
  }
  SmallVector<Value> used(op->getOperands());
  llvm::append_range(used, ValueNumbering::getCaptured(op));
  auto operands = llvm::map_to_vector(
      used, [&](Value value) { return numbers[getId(value)]; });
  ValueNumbering::Number first = numbering.get(op, operands);
  if (isDraw(op))
    if (unsigned draw = numDraws[first]++) {
      draws[op] = draw;
      first = numbering.get(op, operands, draw);
    }
  // A repeated computation doesn't count as a user of its operands.
  bool isRepeated = op->getNumResults() && byNumber.contains(first);
  for (OpResult result : op->getResults())
    add(result, first + result.getResultNumber());
  if (hasFollowedRegions(op)) {
    regionOps.push_back(op);
    // A value that is passed between regions may be any value that enters the
    // op or is computed inside it.
    auto isToLocal = [](ToLocalOp) { return WalkResult::interrupt(); };
    bool isLocal = op->walk(isToLocal).wasInterrupted() ||
                   llvm::any_of(used, [&](Value value) {
                     return get(getId(value)).isLocal;
                   });
    for (OpResult result : op->getResults())
      entries[getId(result)].isLocal = isLocal;
    for (Region &region : op->getRegions())
      if (!region.empty())
        addBlock(region.front(), isLocal);
    return true;
  }
  if (isRepeated)
    return false;
  bool isLocal = isa<ToLocalOp>(op);
  llvm::SmallDenseSet<Id, 4> seen;
  for (Value value : used) {
    isLocal |= get(getId(value)).isLocal && !isa<FromLocalOp>(op);
    if (!seen.insert(getId(value)).second)
      continue;
    Entry &entry = entries[getId(value)];
    entry.users.push_back(op);
    if (isForm(op))
      continue;
    entry.firstUser = entry.firstUser ? entry.firstUser : op;
    ++entry.numUsers;
  }
  for (OpResult result : op->getResults())
    entries[getId(result)].isLocal = isLocal;
  if (used.empty())
    sources.push_back(op);
  if (withParts && !isLocal)
    addParts(op);
  return true;
}

bool ReferenceGraph::addForm(Operation *op, Value same) {
  if (same)
    ids[op->getResult(0)] = getId(same);
  return addOp(op);
}

void ReferenceGraph::addParts(Operation *op) {
  auto ruleOp = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruleOp || op->getNumRegions())
    return;
  OpSplit whole = getReplicatedSplit(ruleOp.getShardingRule(), single);
  OpSplit split = whole;
  unsigned numSplit = 0;
  for (auto [factor, axes] :
       llvm::zip_equal(ruleOp.getShardingRule().factors, split.factorAxes))
    if (factor.kind == FactorKind::Collective && numSplit < kMaxSplit)
      axes.push_back(
          AxisRefAttr::get(op->getContext(), single.getAxisName(numSplit++)));
  if (numSplit == 0)
    return;
  // A hook that can't split an op so isn't an error of the programs.
  ScopedDiagnosticHandler silence(op->getContext(),
                                  [](Diagnostic &) { return success(); });
  // Split by mesh dimensions of one rank, it reduces but doesn't communicate.
  if (!addBuilt(ruleOp, split))
    addBuilt(ruleOp, whole);
}

bool ReferenceGraph::addBuilt(ShardingRuleOpInterface op,
                              const OpSplit &split) {
  Block *block = parts->getBody();
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(block->addArgument(operand.getType(), op->getLoc()));
  OpBuilder builder = OpBuilder::atBlockEnd(block);
  Operation *last = &block->back();
  FailureOr<SmallVector<Value>> built =
      op.partition(builder, operands, op->getResultTypes(), split);
  auto made = llvm::make_range(std::next(last->getIterator()), block->end());
  // Each part must be another op than `op`, must not depend on the rank, and
  // must not communicate except by reductions.
  if (failed(built) || llvm::any_of(made, [&](Operation &each) {
        return each.getName() == op->getName() || isa<ShardOffsetOp>(each) ||
               (isa<CollectiveOpInterface>(each) && !isa<AllReduceOp>(each));
      }))
    return false;
  for (auto [own, operand] : llvm::zip_equal(operands, op->getOperands()))
    ids[own] = getId(operand);
  // The hook's results are the results of `op`.
  for (auto [result, value] : llvm::zip_equal(op->getResults(), *built)) {
    while (auto reduce = value.getDefiningOp<AllReduceOp>())
      value = reduce.getInput();
    if (Operation *end = value.getDefiningOp(); end && end->getBlock() == block)
      ids[value] = getId(result);
  }
  for (Operation &each : llvm::make_early_inc_range(made))
    if (auto reduce = dyn_cast<AllReduceOp>(each))
      ids[reduce] = getId(reduce.getInput());
    else
      addOp(&each);
  return true;
}

std::optional<ReferenceGraph::Id>
ReferenceGraph::getParameter(StringRef fqn) const {
  auto it = parameters.find(fqn);
  return it == parameters.end() ? std::nullopt : std::optional<Id>(it->second);
}
