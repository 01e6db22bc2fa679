//===- SplitSharedInits.cpp - One initial value per op --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
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

/// Whether `op` can be cloned for each op that overwrites its result.
static bool isCheapInit(Operation *op) {
  return isa<tensor::EmptyOp, linalg::FillOp, tensor::InsertSliceOp>(op) ||
         isBroadcast(op);
}

namespace {

class SplitSharedInits
    : public tp::impl::SplitSharedInitsBase<SplitSharedInits> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<DestinationStyleOpInterface, scf::ForOp>(op))
        ops.push_back(op);
    });
    // Go backwards, so that an op is split before its own init.
    OpBuilder builder(&getContext());
    for (Operation *op : llvm::reverse(ops)) {
      builder.setInsertionPoint(op);
      if (auto destination = dyn_cast<DestinationStyleOpInterface>(op))
        split(builder, destination);
      if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
        copy(builder, insert.getDestMutable());
      if (auto loop = dyn_cast<scf::ForOp>(op))
        for (OpOperand &init : loop.getInitArgsMutable())
          copy(builder, init);
    }
    getOperation().walk([&](bufferization::MaterializeInDestinationOp op) {
      beginWithOutput(builder, op);
    });
  }

  /// Lets the insertions that an output consists of begin with its buffer, and
  /// writes what is only reshaped before. `eliminate-empty-tensors` looks
  /// through neither: it would compute the pieces elsewhere, and then copy them.
  static void beginWithOutput(OpBuilder &builder,
                              bufferization::MaterializeInDestinationOp op) {
    auto argument = dyn_cast<BlockArgument>(op.getDest());
    if (!argument || !isa<MemRefType>(argument.getType()))
      return;
    builder.setInsertionPointToStart(argument.getOwner());
    Value source = op.getSource(), buffer = argument;
    while (Operation *reshape = source.getDefiningOp()) {
      if (auto expand = dyn_cast<tensor::ExpandShapeOp>(reshape)) {
        source = expand.getSrc();
        buffer = memref::CollapseShapeOp::create(
            builder, op.getLoc(), buffer, expand.getReassociationIndices());
      } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(reshape)) {
        source = collapse.getSrc();
        buffer = memref::ExpandShapeOp::create(
            builder, op.getLoc(), collapse.getSrcType().getShape(), buffer,
            collapse.getReassociationIndices());
      } else {
        break;
      }
    }
    op.getSourceMutable().assign(source);
    op.getDestMutable().assign(buffer);
    OpOperand *init = nullptr;
    while (auto insert = source.getDefiningOp<tensor::InsertSliceOp>()) {
      init = &insert.getDestMutable();
      source = init->get();
    }
    if (init && source.getDefiningOp<tensor::EmptyOp>())
      init->set(bufferization::ToTensorOp::create(
          builder, op.getLoc(), source.getType(), buffer, op.getRestrict(),
          op.getWritable()));
  }

  void split(OpBuilder &builder, DestinationStyleOpInterface op) {
    for (OpOperand &init : op.getDpsInitsMutable()) {
      Operation *producer = init.get().getDefiningOp();
      if (!producer || producer->hasOneUse() || !isCheapInit(producer))
        continue;
      builder.setInsertionPoint(op);
      Operation *clone = builder.clone(*producer);
      init.set(clone->getResult(0));
      if (auto inner = dyn_cast<DestinationStyleOpInterface>(clone))
        split(builder, inner);
    }
  }

  /// Copies a computed tensor that is written in part, or element by element,
  /// if anything else uses it.
  void copy(OpBuilder &builder, OpOperand &init) {
    auto type = dyn_cast<RankedTensorType>(init.get().getType());
    Operation *producer = init.get().getDefiningOp();
    if (!type || !producer || init.get().hasOneUse() || isCheapInit(producer) ||
        !isa<DestinationStyleOpInterface, RegionBranchOpInterface>(producer))
      return;
    init.set(bufferization::AllocTensorOp::create(
        builder, init.getOwner()->getLoc(), type,
        /*dynamicSizes=*/ValueRange(), /*copy=*/init.get()));
  }
};

} // namespace
