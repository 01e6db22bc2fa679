//===- ReferenceGraph.cpp - The values of the reference -------------------===//

#include "ReferenceGraph.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"

using namespace mlir;
using namespace mlir::tp;

ReferenceGraph::Id ReferenceGraph::add(Value value,
                                       ValueNumbering::Number number) {
  auto [it, inserted] = byNumber.try_emplace(number, entries.size());
  if (inserted) {
    entries.push_back({value, {}, false});
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

ReferenceGraph::ReferenceGraph(func::FuncOp function) : function(function) {
  Block &block = function.getBody().front();
  addBlock(block);
  for (Value operand : block.getTerminator()->getOperands())
    results.push_back(getId(operand));
}

void ReferenceGraph::addBlock(Block &block) {
  for (BlockArgument argument : block.getArguments()) {
    // One of its own each.
    auto name = IntegerAttr::get(IndexType::get(function.getContext()),
                                 static_cast<int64_t>(entries.size()));
    add(argument, numbering.getSource(name, argument.getType()));
  }
  for (Operation &op : block.without_terminator())
    addOp(&op);
}

void ReferenceGraph::addOp(Operation *op) {
  if (isPlacementOnly(op)) {
    ids[op->getResult(0)] = getId(op->getOperand(0));
    return;
  }
  if (auto parameter = dyn_cast<nn::ParameterOp>(op)) {
    Id id = add(parameter, numbering.getSource(parameter.getFqnAttr(),
                                               parameter.getType()));
    parameters[parameter.getFqn()] = id;
    return;
  }
  SmallVector<Value> used(op->getOperands());
  llvm::append_range(used, ValueNumbering::getCaptured(op));
  auto operands = llvm::map_to_vector(
      used, [&](Value value) { return numbers[getId(value)]; });
  size_t before = entries.size();
  ValueNumbering::Number first = numbering.get(op, operands);
  for (OpResult result : op->getResults())
    add(result, first + result.getResultNumber());
  // An op that computes what an earlier one does has no users of its own.
  bool isRepeated = op->getNumResults() && entries.size() == before;
  if (hasFollowedRegions(op)) {
    regionOps.push_back(op);
    for (Region &region : op->getRegions())
      if (!region.empty())
        addBlock(region.front());
    return;
  }
  if (isRepeated)
    return;
  bool isLocal = isa<ToLocalOp>(op);
  llvm::SmallDenseSet<Id, 4> seen;
  for (Value value : used) {
    isLocal |= get(getId(value)).isLocal && !isa<FromLocalOp>(op);
    if (seen.insert(getId(value)).second)
      entries[getId(value)].users.push_back(op);
  }
  for (OpResult result : op->getResults())
    entries[getId(result)].isLocal = isLocal;
  if (used.empty())
    sources.push_back(op);
}

std::optional<ReferenceGraph::Id>
ReferenceGraph::getParameter(StringRef fqn) const {
  auto it = parameters.find(fqn);
  return it == parameters.end() ? std::nullopt : std::optional<Id>(it->second);
}
