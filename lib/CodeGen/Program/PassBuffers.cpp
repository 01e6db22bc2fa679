//===- PassBuffers.cpp - Buffers as operands of calls ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   %w = bufferization.to_tensor %arg restrict writable
//   %y = tprt.call @forward ins(%w) outs(%0)
//   %n, %z = tprt.call @backward ins(%y) updates(%w) outs(%1)
//   %m = bufferization.materialize_in_destination %n in %w
//   bufferization.materialize_in_destination %m in restrict writable %arg
//
// becomes
//
//   %y = tprt.call @forward ins(%arg) outs(%0)
//   %z = tprt.call @backward ins(%y) updates(%arg) outs(%1)
//
// Bufferization doesn't see what happens to %arg. That is safe if nothing writes
// it. Otherwise, no other op may use it, and no call may read it after the one
// that updates it: calls stay in order.
//
//===----------------------------------------------------------------------===//

#include "PassBuffers.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "tp/Dialect/TPRT/TPRT.h"

using namespace mlir;
using namespace mlir::tp;
using bufferization::MaterializeInDestinationOp;
using bufferization::ToTensorOp;

namespace {

/// An argument whose buffer calls may take.
struct Argument {
  Value buffer;
  tprt::CallOp updatedBy; ///< null if it is only read
  /// Into the tensor, and of that into the buffer; null if it is only read.
  MaterializeInDestinationOp write, finalWrite;
};

class BufferPasser {
public:
  void run(func::FuncOp program);

private:
  static std::optional<Argument> describe(ToTensorOp op);
  bool takesBuffer(Value tensor) const { return arguments.contains(tensor); }
  void rewrite(tprt::CallOp call);

  llvm::MapVector<Value, Argument> arguments; ///< by the tensor
};

} // namespace

/// What the calls do to the buffer that `op` reads; none if they can't take it.
std::optional<Argument> BufferPasser::describe(ToTensorOp op) {
  Argument argument{op.getBuffer(), {}, {}, {}};
  if (!op.getWritable() && llvm::none_of(op->getUses(), [](OpOperand &use) {
        auto call = dyn_cast<tprt::CallOp>(use.getOwner());
        return call && call.isUpdated(use);
      }))
    return argument;
  SmallVector<tprt::CallOp> readers;
  for (OpOperand &use : op->getUses()) {
    if (auto call = dyn_cast<tprt::CallOp>(use.getOwner())) {
      if (!call.isUpdated(use))
        readers.push_back(call);
      else if (argument.updatedBy)
        return std::nullopt;
      else
        argument.updatedBy = call;
      continue;
    }
    auto write = dyn_cast<MaterializeInDestinationOp>(use.getOwner());
    if (!write || argument.write || use.get() != write.getDest() ||
        use.get() == write.getSource())
      return std::nullopt;
    argument.write = write;
  }
  size_t numUses = llvm::range_size(argument.buffer.getUses());
  if (!argument.updatedBy && !argument.write)
    return numUses == 1 ? std::optional(argument) : std::nullopt;
  if (!argument.updatedBy || !argument.write || numUses != 2)
    return std::nullopt;
  // The next value is the call's, and is only written back.
  auto next = dyn_cast<OpResult>(argument.write.getSource());
  if (!next || next.getOwner() != argument.updatedBy || !next.hasOneUse() ||
      argument.updatedBy.getTiedOpOperand(next)->get() != op.getResult() ||
      !argument.write->hasOneUse())
    return std::nullopt;
  argument.finalWrite =
      dyn_cast<MaterializeInDestinationOp>(*argument.write->user_begin());
  if (!argument.finalWrite ||
      argument.finalWrite.getDest() != argument.buffer ||
      llvm::any_of(readers, [&](tprt::CallOp reader) {
        return !reader->isBeforeInBlock(argument.updatedBy);
      }))
    return std::nullopt;
  return argument;
}

void BufferPasser::run(func::FuncOp program) {
  for (auto op : program.getOps<ToTensorOp>())
    if (isa<BlockArgument>(op.getBuffer()))
      if (std::optional<Argument> argument = describe(op))
        arguments.insert({op.getResult(), *argument});
  // A call updates either tensors or buffers.
  SmallVector<tprt::CallOp> calls(program.getOps<tprt::CallOp>());
  for (tprt::CallOp call : calls)
    if (!llvm::all_of(call.getUpdated(),
                      [&](Value tensor) { return takesBuffer(tensor); }))
      for (Value tensor : call.getUpdated())
        arguments.erase(tensor);
  for (auto &[tensor, argument] : arguments)
    if (argument.updatedBy) {
      argument.finalWrite.erase();
      argument.write.erase();
    }
  for (tprt::CallOp call : calls)
    rewrite(call);
  for (auto &[tensor, argument] : arguments)
    if (tensor.use_empty())
      tensor.getDefiningOp()->erase();
}

void BufferPasser::rewrite(tprt::CallOp call) {
  SmallVector<Value> operands(call->getOperands());
  for (Value &operand : operands)
    if (auto it = arguments.find(operand); it != arguments.end())
      operand = it->second.buffer;
  size_t numUpdated = llvm::count_if(
      call.getUpdated(), [&](Value tensor) { return takesBuffer(tensor); });
  ResultRange results = call.getResults().drop_front(numUpdated);
  OpBuilder b(call);
  auto rewritten = tprt::CallOp::create(b, call.getLoc(), TypeRange(results),
                                        operands, call->getAttrs());
  results.replaceAllUsesWith(rewritten.getResults());
  call.erase();
}

void tp::passBuffersToCalls(func::FuncOp program) {
  BufferPasser().run(program);
}
