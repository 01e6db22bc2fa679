//===- ReferenceGraph.cpp - The values of the reference -------------------===//

#include "ReferenceGraph.h"
#include "mlir/IR/Builders.h"
#include "tp/Dialect/NN/NN.h"

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

ReferenceGraph::ReferenceGraph(func::FuncOp function) : function(function) {
  Builder builder(function.getContext());
  Block &block = function.getBody().front();
  for (BlockArgument argument : block.getArguments())
    add(argument,
        numbering.getSource(builder.getIndexAttr(argument.getArgNumber()),
                            argument.getType()));
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>()) {
      for (Value operand : op.getOperands())
        results.push_back(getId(operand));
      continue;
    }
    // The identity on global values.
    if (isa<RedistributeOp, DistributeOp>(op)) {
      ids[op.getResult(0)] = getId(op.getOperand(0));
      continue;
    }
    if (auto parameter = dyn_cast<nn::ParameterOp>(op)) {
      Id id = add(parameter, numbering.getSource(parameter.getFqnAttr(),
                                                 parameter.getType()));
      parameters[parameter.getFqn()] = id;
      continue;
    }
    SmallVector<Value> used(op.getOperands());
    llvm::append_range(used, ValueNumbering::getCaptured(&op));
    auto operands = llvm::map_to_vector(
        used, [&](Value value) { return numbers[getId(value)]; });
    size_t before = entries.size();
    ValueNumbering::Number first = numbering.get(&op, operands);
    for (OpResult result : op.getResults())
      add(result, first + result.getResultNumber());
    // An op that computes what an earlier one does has no users of its own.
    if (op.getNumResults() && entries.size() == before)
      continue;
    bool isLocal = isa<ToLocalOp>(op);
    llvm::SmallDenseSet<Id, 4> seen;
    for (Value value : used) {
      isLocal |= get(getId(value)).isLocal && !isa<FromLocalOp>(op);
      if (seen.insert(getId(value)).second)
        entries[getId(value)].users.push_back(&op);
    }
    for (OpResult result : op.getResults())
      entries[getId(result)].isLocal = isLocal;
    if (used.empty())
      sources.push_back(&op);
  }
}

std::optional<ReferenceGraph::Id>
ReferenceGraph::getParameter(StringRef fqn) const {
  auto it = parameters.find(fqn);
  return it == parameters.end() ? std::nullopt : std::optional<Id>(it->second);
}
