//===- SplitReductions.cpp - Reductions in two steps ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ThreadLoops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "tp/CodeGen/Passes.h"

namespace mlir::tp {
#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

/// The number of result elements, one block each, that keeps a device busy.
constexpr int64_t kEnoughElements = 128;
/// How many elements one block may reduce.
constexpr int64_t kMaxReduced = 16384;
/// The least size of a dimension that is worth another op.
constexpr int64_t kMinParts = 32;

class SplitReductions : public tp::impl::SplitReductionsBase<SplitReductions> {
  void runOnOperation() override {
    SmallVector<linalg::GenericOp> ops;
    getOperation().walk([&](linalg::GenericOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (linalg::GenericOp op : ops)
      if (std::optional<unsigned> dim = getDimToKeep(op)) {
        split(rewriter, op, *dim);
        ++numSplit;
      }
  }

  static std::optional<unsigned> getDimToKeep(linalg::GenericOp op) {
    if (!op.hasPureTensorSemantics() || op.getNumResults() != 1 ||
        op.getNumReductionLoops() < 2 || !getCombiner(op, 0) ||
        !op.getMatchingIndexingMap(op.getDpsInitOperand(0))
             .isProjectedPermutation())
      return std::nullopt;
    int64_t elements = 1, reduced = 1;
    std::optional<unsigned> dim;
    for (auto [d, size] : llvm::enumerate(op.getStaticLoopRanges())) {
      if (op.getIteratorTypesArray()[d] == utils::IteratorType::parallel) {
        elements *= size;
        continue;
      }
      reduced *= size;
      if (!dim && size >= kMinParts)
        dim = d;
    }
    if (elements >= kEnoughElements || reduced < kMaxReduced)
      return std::nullopt;
    return dim;
  }

  /// Keeps `dim` as the last dimension of partial results, then reduces these.
  static void split(IRRewriter &rewriter, linalg::GenericOp op, unsigned dim) {
    Location loc = op.getLoc();
    rewriter.setInsertionPoint(op);
    Operation *combiner = getCombiner(op, 0);
    OpOperand *init = op.getDpsInitOperand(0);
    auto type = cast<RankedTensorType>(init->get().getType());
    SmallVector<int64_t> shape(type.getShape());
    shape.push_back(op.getStaticLoopRanges()[dim]);
    Value empty =
        tensor::EmptyOp::create(rewriter, loc, shape, type.getElementType());
    Value neutral = arith::ConstantOp::create(
        rewriter, loc, *arith::getNeutralElement(combiner));
    Value start =
        linalg::FillOp::create(rewriter, loc, neutral, empty).getResult(0);

    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    AffineMap partialMap = maps.back().insertResult(
        rewriter.getAffineDimExpr(dim), type.getRank());
    maps.back() = partialMap;
    SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
    iterators[dim] = utils::IteratorType::parallel;
    auto partial = linalg::GenericOp::create(
        rewriter, loc, start.getType(), op.getInputs(), start, maps, iterators);
    rewriter.cloneRegionBefore(op.getRegion(), partial.getRegion(),
                               partial.getRegion().begin());

    unsigned rank = shape.size();
    SmallVector<utils::IteratorType> last(rank, utils::IteratorType::parallel);
    last.back() = utils::IteratorType::reduction;
    AffineMap identity = rewriter.getMultiDimIdentityMap(rank);
    auto sum = linalg::GenericOp::create(
        rewriter, loc, type, partial.getResult(0), init->get(),
        ArrayRef<AffineMap>{identity, identity.dropResult(rank - 1)}, last,
        [&](OpBuilder &b, Location, ValueRange arguments) {
          IRMapping mapping;
          mapping.map(combiner->getOperands(), arguments);
          linalg::YieldOp::create(b, loc,
                                  b.clone(*combiner, mapping)->getResults());
        });
    rewriter.replaceOp(op, sum);
  }
};

} // namespace
