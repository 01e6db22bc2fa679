//===- SinkConcatenations.cpp - Elementwise ops before concatenations -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CodeGen/Loops/Loops.h"
#include "Insertions.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/TilingInterface.h"
#include "tp/CodeGen/Passes.h"

namespace mlir::tp {
#define GEN_PASS_DEF_SINKCONCATENATIONS
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

/// Each piece becomes an op of its own.
constexpr size_t kMaxPieces = 4;

bool isElementwise(linalg::GenericOp op) {
  return op.hasPureTensorSemantics() && op.getNumResults() == 1 &&
         op.getNumParallelLoops() == op.getNumLoops() &&
         !op.payloadUsesValueFromOperand(op.getDpsInitOperand(0));
}

/// A concatenation that an op reads, and the op's loop along it.
struct Operand {
  unsigned number;
  Concatenation concatenation;
  unsigned loop;
};

std::optional<Operand> matchOperand(linalg::GenericOp op, OpOperand &operand) {
  auto concatenation = matchConcatenation(operand.get(), kMaxPieces);
  if (!concatenation)
    return std::nullopt;
  auto loop = dyn_cast<AffineDimExpr>(
      op.getMatchingIndexingMap(&operand).getResult(concatenation->dim));
  if (!loop)
    return std::nullopt;
  return Operand{operand.getOperandNumber(), std::move(*concatenation),
                 loop.getPosition()};
}

class SinkConcatenations
    : public tp::impl::SinkConcatenationsBase<SinkConcatenations> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<linalg::GenericOp> ops;
    getOperation().walk([&](linalg::GenericOp op) { ops.push_back(op); });
    for (linalg::GenericOp op : ops)
      sink(rewriter, op);
    // What an op doesn't read anymore isn't a use.
    for (Operation &op : llvm::make_early_inc_range(
             llvm::reverse(getOperation().getBody().front())))
      if (isOpTriviallyDead(&op))
        rewriter.eraseOp(&op);
    SmallVector<tensor::ExtractSliceOp> slices;
    getOperation().walk(
        [&](tensor::ExtractSliceOp op) { slices.push_back(op); });
    for (tensor::ExtractSliceOp slice : slices)
      sliceBefore(rewriter, slice);
  }

  void sink(RewriterBase &rewriter, linalg::GenericOp op) {
    if (!isElementwise(op) ||
        !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isPermutation() ||
        llvm::any_of(op.getIndexingMapsArray(), [](AffineMap map) {
          return !map.isProjectedPermutation(/*allowZeroInResults=*/true);
        }))
      return;
    // The operands that have the first one's pieces.
    SmallVector<Operand> operands;
    auto getSizes = [](const Operand &operand) {
      return llvm::map_to_vector(
          operand.concatenation.pieces,
          [](const Concatenation::Piece &piece) { return piece.size; });
    };
    for (OpOperand *input : op.getDpsInputOperands())
      if (auto operand = matchOperand(op, *input);
          operand && (operands.empty() ||
                      (operand->loop == operands.front().loop &&
                       getSizes(*operand) == getSizes(operands.front()))))
        operands.push_back(std::move(*operand));
    if (operands.empty())
      return;

    rewriter.setInsertionPoint(op);
    unsigned loop = operands.front().loop;
    SmallVector<OpFoldResult> offsets(op.getNumLoops(),
                                      rewriter.getIndexAttr(0)),
        ones(op.getNumLoops(), rewriter.getIndexAttr(1)),
        sizes = getAsIndexOpFoldResult(rewriter.getContext(),
                                       op.getStaticLoopRanges());
    AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
    auto ofResult = [&](ArrayRef<OpFoldResult> ofLoops) {
      return applyPermutationMap(written, ofLoops);
    };
    Value joined = op.getDpsInits()[0];
    for (size_t i = 0; i < operands.front().concatenation.pieces.size(); ++i) {
      const auto &piece = operands.front().concatenation.pieces[i];
      offsets[loop] = rewriter.getIndexAttr(piece.offset);
      sizes[loop] = rewriter.getIndexAttr(piece.size);
      auto tile = cast<linalg::GenericOp>(
          cast<TilingInterface>(op.getOperation())
              .getTiledImplementation(rewriter, offsets, sizes)
              ->tiledOps.front());
      auto type = cast<RankedTensorType>(tile.getResult(0).getType());
      rewriter.setInsertionPoint(tile);
      Value empty = tensor::EmptyOp::create(
          rewriter, op.getLoc(), type.getShape(), type.getElementType());
      rewriter.setInsertionPointAfter(tile);
      rewriter.modifyOpInPlace(tile, [&] {
        for (const Operand &operand : operands)
          tile->setOperand(operand.number,
                           operand.concatenation.pieces[i].value);
        tile.getDpsInitsMutable().assign(empty);
      });
      joined = tensor::InsertSliceOp::create(
          rewriter, op.getLoc(), tile.getResult(0), joined, ofResult(offsets),
          ofResult(sizes), ofResult(ones));
    }
    rewriter.replaceOp(op, joined);
    ++numSunk;
  }

  /// Slices the source of a copy, transpose or broadcast instead of its result,
  /// for elementwise ops, which read through it.
  void sliceBefore(RewriterBase &rewriter, tensor::ExtractSliceOp slice) {
    auto source = slice.getSource().getDefiningOp<linalg::GenericOp>();
    if (!source || !isElementwise(source) || !isDataMovement(source) ||
        !isPlain(slice, slice.getResultType(), slice.getSourceType()) ||
        !llvm::all_of(slice->getUsers(), [](Operation *user) {
          auto op = dyn_cast<linalg::GenericOp>(user);
          return op && isElementwise(op);
        }))
      return;
    rewriter.setInsertionPoint(slice);
    FailureOr<TilingResult> tile =
        cast<TilingInterface>(source.getOperation())
            .generateResultTileValue(rewriter, 0, slice.getMixedOffsets(),
                                     slice.getMixedSizes());
    if (succeeded(tile))
      rewriter.replaceOp(slice, tile->tiledValues);
  }
};

} // namespace
