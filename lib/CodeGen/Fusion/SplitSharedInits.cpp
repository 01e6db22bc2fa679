//===- SplitSharedInits.cpp - One initial value per op --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "tp/CodeGen/Passes.h"

namespace mlir::tp {
#define GEN_PASS_DEF_SPLITSHAREDINITS
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;

/// Whether `op` only broadcasts an operand, such as a bias to the initial value
/// of a GEMM.
static bool isBroadcast(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || generic.getNumDpsInits() != 1 ||
      generic.getNumLoops() != generic.getNumParallelLoops())
    return false;
  auto yielded = dyn_cast<BlockArgument>(
      generic.getBody()->getTerminator()->getOperand(0));
  return yielded && yielded.getOwner() == generic.getBody() &&
         yielded.getArgNumber() < generic.getNumDpsInputs();
}

namespace {

class SplitSharedInits
    : public tp::impl::SplitSharedInitsBase<SplitSharedInits> {
  void runOnOperation() override {
    SmallVector<DestinationStyleOpInterface> ops;
    getOperation().walk(
        [&](DestinationStyleOpInterface op) { ops.push_back(op); });
    // Go backwards, so that an op is split before its own init.
    OpBuilder builder(&getContext());
    for (DestinationStyleOpInterface op : llvm::reverse(ops))
      split(builder, op);
  }

  void split(OpBuilder &builder, DestinationStyleOpInterface op) {
    for (OpOperand &init : op.getDpsInitsMutable()) {
      Operation *producer = init.get().getDefiningOp();
      if (!producer || init.get().hasOneUse())
        continue;
      builder.setInsertionPoint(op);
      if (!isa<tensor::EmptyOp, linalg::FillOp, tensor::InsertSliceOp>(
              producer) &&
          !isBroadcast(producer)) {
        init.set(bufferization::AllocTensorOp::create(
            builder, op.getLoc(), cast<RankedTensorType>(init.get().getType()),
            /*dynamicSizes=*/ValueRange(), /*copy=*/init.get()));
        continue;
      }
      Operation *clone = builder.clone(*producer);
      init.set(clone->getResult(0));
      if (auto inner = dyn_cast<DestinationStyleOpInterface>(clone))
        split(builder, inner);
    }
  }
};

} // namespace
