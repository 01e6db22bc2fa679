//===- ComputeType.cpp - mixed precision ----------------------------------===//

#include "ComputeType.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "tp/Dialect/NN/NN.h"

using namespace mlir;
using namespace mlir::tp;

static bool isF32(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getElementType().isF32();
}

static Value castTo(OpBuilder &builder, Value value, FloatType type) {
  auto tensor = cast<RankedTensorType>(value.getType());
  return nn::CastOp::create(builder, value.getLoc(), tensor.clone(type), value);
}

void tp::setComputeType(Block &block, FloatType type, Value target) {
  if (type.isF32())
    return;
  SetVector<Operation *> loss;
  if (target)
    getForwardSlice(target, &loss);
  DenseSet<Value> converted;
  auto widen = [&](Operation *op) {
    OpBuilder builder(op);
    for (OpOperand &operand : op->getOpOperands())
      if (converted.contains(operand.get()))
        operand.set(castTo(builder, operand.get(),
                           Float32Type::get(type.getContext())));
  };
  auto read = [&](Value value, OpBuilder builder) {
    if (!isF32(value) || value.use_empty())
      return;
    Value narrow = castTo(builder, value, type);
    value.replaceAllUsesExcept(narrow, narrow.getDefiningOp());
    converted.insert(narrow);
  };
  for (BlockArgument argument : block.getArguments())
    if (argument != target)
      read(argument, OpBuilder::atBlockBegin(&block));
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    if (isa<nn::ParameterOp>(op)) {
      OpBuilder after(&op);
      after.setInsertionPointAfter(&op);
      read(op.getResult(0), after);
      continue;
    }
    if (llvm::none_of(op.getOperands(), [&](Value operand) {
          return converted.contains(operand);
        }))
      continue;
    if (loss.contains(&op)) {
      widen(&op);
      continue;
    }
    OpBuilder builder(&op);
    for (OpOperand &operand : op.getOpOperands())
      if (isF32(operand.get()))
        operand.set(castTo(builder, operand.get(), type));
    for (Value result : op.getResults())
      if (isF32(result)) {
        result.setType(cast<RankedTensorType>(result.getType()).clone(type));
        converted.insert(result);
      }
  }
  widen(block.getTerminator());
}
