//===- Recompute.cpp - Activation checkpointing ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Follows torch.utils.checkpoint: the inputs of a group are kept, and the
// values that it computes aren't.
//
//===----------------------------------------------------------------------===//

#include "TrainingStep.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "tp/Dialect/TP/Fsdp.h"
#include "tp/Training/Differentiate.h"

using namespace mlir;
using namespace mlir::tp;

namespace {

class Recomputer {
public:
  Recomputer(ArrayRef<Operation *> forward, int64_t pass,
             llvm::function_ref<const void *(Operation *)> getGroup)
      : pass(pass), getGroup(getGroup),
        isForward(forward.begin(), forward.end()) {}

  void rewrite(Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (const void *group = getGroupOf(operand.get()))
        operand.set(getAgain(operand.get(), group, op));
  }

private:
  const void *getGroupOf(Value value) {
    Operation *producer = value.getDefiningOp();
    if (!producer || !isForward.contains(producer) ||
        isa<nn::ParameterOp>(producer) || matchPattern(producer, m_Constant()))
      return nullptr;
    return getGroup(producer);
  }

  /// Computes `value`, a value of `group`, again before `user`.
  Value getAgain(Value value, const void *group, Operation *user) {
    if (Value again = computed.lookupOrNull(value))
      return again;
    // Producers first; a chain may be as long as a model is deep.
    SmallVector<std::pair<Operation *, bool>> stack{
        {value.getDefiningOp(), false}};
    while (!stack.empty()) {
      auto [op, areOperandsReady] = stack.pop_back_val();
      if (computed.contains(op->getResult(0)))
        continue;
      if (areOperandsReady) {
        clone(op, group, user);
        continue;
      }
      stack.push_back({op, true});
      for (Value operand : llvm::reverse(op->getOperands()))
        if (getGroupOf(operand) == group)
          stack.push_back({operand.getDefiningOp(), false});
    }
    return computed.lookup(value);
  }

  void clone(Operation *op, const void *group, Operation *user) {
    OpBuilder builder(user);
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, getGroupOf(operand) == group
                               ? computed.lookup(operand)
                               : getInput(operand, group, builder));
    Operation *made = builder.clone(*op, mapping);
    for (auto [old, again] : llvm::zip(op->getResults(), made->getResults()))
      computed.map(old, again);
  }

  /// An input of the group as the second computation reads it.
  Value getInput(Value value, const void *group, OpBuilder &builder) {
    Operation *producer = value.getDefiningOp();
    if (producer && matchPattern(producer, m_Constant()))
      return value;
    Value &input = inputs[{value, group}];
    if (!input) {
      input = readAgain(builder, value, pass);
    }
    return input;
  }

  int64_t pass;
  llvm::function_ref<const void *(Operation *)> getGroup;
  DenseSet<Operation *> isForward;
  IRMapping computed;
  DenseMap<std::pair<Value, const void *>, Value> inputs;
};

} // namespace

Value tp::readAgain(OpBuilder &builder, Value value, int64_t pass) {
  auto again =
      nn::RecomputeOp::create(builder, value.getLoc(), value.getType(), value);
  again->setAttr(kPassAttr, builder.getI64IntegerAttr(pass));
  // A split parameter is gathered again, even if it was cast before.
  Operation *source = value.getDefiningOp();
  if (isa_and_nonnull<nn::CastOp>(source))
    source = source->getOperand(0).getDefiningOp();
  if (Attribute sharding = isa_and_nonnull<nn::ParameterOp>(source)
                               ? source->getAttr(kShardingAttr)
                               : Attribute())
    again->setAttr(kShardingAttr, sharding);
  return again;
}

void tp::recompute(Block &block, Operation *previous, Operation *begin,
                   int64_t pass,
                   llvm::function_ref<const void *(Operation *)> getGroup) {
  Recomputer recomputer(getOpsOfPass(block, previous, begin), pass, getGroup);
  SmallVector<Operation *> backward;
  for (Operation &op : llvm::make_range(begin->getIterator(), block.end()))
    backward.push_back(&op);
  for (Operation *op : backward)
    recomputer.rewrite(op);
}
