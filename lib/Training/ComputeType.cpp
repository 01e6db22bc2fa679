//===- ComputeType.cpp - Mixed precision ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TrainingStep.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

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

namespace {

class Converter {
public:
  Converter(FloatType type, Value target) : type(type) {
    if (target)
      getForwardSlice(target, &wide);
  }

  void run(Block &block, Value target) {
    findUpdates(block);
    for (BlockArgument argument : block.getArguments())
      if (argument != target)
        read(argument, OpBuilder::atBlockBegin(&block));
    convert(block);
    widen(block.getTerminator());
  }

private:
  /// Ops that only compute the next values of buffers keep their types.
  void findUpdates(Block &block) {
    DenseSet<Operation *> updates;
    for (Operation &op : llvm::reverse(block)) {
      auto isUpdate = [&](Operation *user) { return updates.contains(user); };
      if (isa<nn::AssignOp>(op) ||
          (!op.use_empty() && llvm::all_of(op.getUsers(), isUpdate)))
        updates.insert(&op);
    }
    wide.insert(updates.begin(), updates.end());
  }

  void convert(Block &block) {
    for (Operation &op :
         llvm::make_early_inc_range(block.without_terminator())) {
      if (isa<nn::ParameterOp>(op)) {
        OpBuilder after(&op);
        after.setInsertionPointAfter(&op);
        read(op.getResult(0), after);
      } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
        convertBranch(branch);
      } else if (llvm::any_of(op.getOperands(), [&](Value operand) {
                   return converted.contains(operand);
                 })) {
        if (wide.contains(&op))
          widen(&op);
        else
          convert(op);
      }
    }
  }

  void convert(Operation &op) {
    narrow(&op);
    for (Value result : op.getResults())
      setNarrow(result);
  }

  /// A result is narrow if one of the branches yields it so.
  void convertBranch(scf::IfOp branch) {
    SmallVector<Operation *, 2> yields;
    for (Region &region : branch->getRegions())
      if (!region.empty()) {
        convert(region.front());
        yields.push_back(region.front().getTerminator());
      }
    for (OpResult result : branch->getResults()) {
      auto yielded = [&](Operation *yield) -> OpOperand & {
        return yield->getOpOperand(result.getResultNumber());
      };
      if (llvm::none_of(yields, [&](Operation *yield) {
            return converted.contains(yielded(yield).get());
          }))
        continue;
      for (Operation *yield : yields)
        narrow(yielded(yield));
      setNarrow(result);
    }
  }

  /// Lets the users of `value`, if it is f32, read it in the compute type. The
  /// updates of a parameter read it as it is.
  void read(Value value, OpBuilder builder) {
    auto isNarrow = [&](Operation *user) {
      return !wide.contains(user) || !value.getDefiningOp<nn::ParameterOp>();
    };
    if (!isF32(value) || llvm::none_of(value.getUsers(), isNarrow))
      return;
    Value narrow = castTo(builder, value, type);
    value.replaceUsesWithIf(narrow, [&](OpOperand &use) {
      return use.getOwner() != narrow.getDefiningOp() &&
             isNarrow(use.getOwner());
    });
    converted.insert(narrow);
  }

  void widen(Operation *op) {
    OpBuilder builder(op);
    for (OpOperand &operand : op->getOpOperands())
      if (converted.contains(operand.get()))
        operand.set(castTo(builder, operand.get(),
                           Float32Type::get(type.getContext())));
  }

  void narrow(OpOperand &operand) {
    OpBuilder builder(operand.getOwner());
    if (isF32(operand.get()))
      operand.set(castTo(builder, operand.get(), type));
  }

  void narrow(Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      narrow(operand);
  }

  void setNarrow(Value result) {
    if (!isF32(result))
      return;
    result.setType(cast<RankedTensorType>(result.getType()).clone(type));
    converted.insert(result);
  }

  FloatType type;
  SetVector<Operation *> wide; ///< what keeps f32
  DenseSet<Value> converted;
};

} // namespace

void tp::setComputeType(Block &block, FloatType type, Value target) {
  if (!type.isF32())
    Converter(type, target).run(block, target);
}
