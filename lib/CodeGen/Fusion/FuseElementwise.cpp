//===- FuseElementwise.cpp - Fusion of elementwise ops --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CodeGen/Loops/Loops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "tp/CodeGen/Passes.h"

namespace mlir::tp {
#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

/// Whether `op` consists of casts, comparisons and selects, which cost less
/// than reading another operand.
bool isNearlyFree(linalg::GenericOp op) {
  for (Operation &inner : op.getRegion().front().without_terminator())
    if (!isa<arith::ConstantOp, arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp,
             arith::ExtUIOp, arith::TruncIOp, arith::SIToFPOp, arith::UIToFPOp,
             arith::IndexCastOp, arith::CmpIOp, arith::CmpFOp, arith::SelectOp,
             arith::AddIOp, arith::SubIOp, arith::NegFOp, linalg::IndexOp>(
            inner))
      return false;
  return true;
}

/// Whether `op` consists of cheap arithmetic, without divisions. It costs less
/// to repeat this for each element of a broadcast than to use a buffer.
bool isCheap(linalg::GenericOp op) {
  for (Operation &inner : op.getRegion().front().without_terminator())
    if (!isa<arith::ArithDialect>(inner.getDialect()) &&
        !isa<linalg::IndexOp>(inner))
      return false;
    else if (isa<arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::RemFOp,
                 arith::RemSIOp, arith::RemUIOp>(inner))
      return false;
  return true;
}

/// Whether computing the result of `op` again reads hardly more bytes than
/// reading it, because the operands are narrower or have one element per row.
bool isSmallerBefore(linalg::GenericOp op) {
  auto countBytes = [](Value value) -> int64_t {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type ? llvm::divideCeil(
                      type.getNumElements() * type.getElementTypeBitWidth(), 8)
                : 0;
  };
  int64_t read = 0, result = countBytes(op.getResult(0));
  for (Value input : op.getDpsInputs())
    read += countBytes(input);
  return read <= result + result / 16;
}

/// Whether to compute the producer of `operand` inside of its reader.
bool shouldFuse(OpOperand *operand) {
  auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
  auto consumer = dyn_cast<linalg::GenericOp>(operand->getOwner());
  if (!producer || !consumer)
    return false;
  // A contraction stays a plain sum of products, which GEMM computes.
  if (isContraction(producer))
    return false;
  AffineMap map = consumer.getMatchingIndexingMap(operand);
  if (isContraction(consumer))
    return isDataMovement(producer) &&
           llvm::all_of(producer.getIndexingMapsArray(),
                        [](AffineMap m) { return m.isProjectedPermutation(); });

  bool isOnlyReader =
      llvm::all_of(operand->get().getUsers(), [&](Operation *user) {
        return user == consumer.getOperation();
      });
  // Each element is computed once if the reader has the same loops as the
  // producer.
  bool isComputedOnce = map.isPermutation();
  if (isOnlyReader && isComputedOnce)
    return true;
  if (producer.getNumDpsInputs() <= 1 && isNearlyFree(producer))
    return true;
  // In a chain of ops that are all read elsewhere too, each op would otherwise
  // repeat all ops before it.
  constexpr size_t kMaxRepeatedOps = 8;
  bool isShort =
      producer.getRegion().front().getOperations().size() <= kMaxRepeatedOps;
  return isCheap(producer) &&
         (isOnlyReader || (isShort && isSmallerBefore(producer)));
}

/// contraction(init = 0) + bias along the last dimension → contraction(init =
/// bias), if nothing else reads the contraction. The rows may be reshaped in
/// between.
struct FoldBiasIntoContraction : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp add,
                                PatternRewriter &rewriter) const override {
    Block &body = add.getRegion().front();
    if (add.getNumDpsInputs() != 2 || add.getNumResults() != 1 ||
        add.getNumReductionLoops() != 0 || body.getOperations().size() != 2 ||
        !isa<arith::AddFOp>(body.front()) ||
        body.getTerminator()->getOperand(0) != body.front().getResult(0))
      return failure();
    Value x = body.front().getOperand(0), y = body.front().getOperand(1);
    if (x == y || !isa<BlockArgument>(x) || !isa<BlockArgument>(y) ||
        cast<BlockArgument>(x).getArgNumber() > 1 ||
        cast<BlockArgument>(y).getArgNumber() > 1 ||
        !add.getIndexingMapsArray()[2].isIdentity())
      return failure();
    for (unsigned i : {0, 1}) {
      OpOperand *sum = add.getDpsInputOperand(i);
      OpOperand *bias = add.getDpsInputOperand(1 - i);
      tensor::ExpandShapeOp expand = getRowsReshape(sum->get());
      Value product = expand ? expand.getSrc() : sum->get();
      auto contraction = product.getDefiningOp<linalg::GenericOp>();
      if (!contraction || !isContraction(contraction) || !product.hasOneUse() ||
          !sum->get().hasOneUse() ||
          !add.getMatchingIndexingMap(sum).isIdentity())
        continue;
      AffineMap biasMap = add.getMatchingIndexingMap(bias);
      unsigned last = add.getNumLoops() - 1;
      if (biasMap.getNumResults() != 1 || !biasMap.isFunctionOfDim(last) ||
          !biasMap.isProjectedPermutation())
        continue;
      auto fill = contraction.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
      if (!fill || !isZeroFloat(fill.value()))
        continue;
      rewriter.setInsertionPoint(add);
      Location loc = add.getLoc();
      int64_t rank = cast<RankedTensorType>(product.getType()).getRank();
      AffineMap identity = rewriter.getMultiDimIdentityMap(rank);
      SmallVector<utils::IteratorType> parallel(rank,
                                                utils::IteratorType::parallel);
      auto init = linalg::GenericOp::create(
          rewriter, loc, product.getType(), bias->get(), fill.output(),
          ArrayRef<AffineMap>{identity.getMinorSubMap(1), identity}, parallel,
          [](OpBuilder &b, Location loc, ValueRange args) {
            linalg::YieldOp::create(b, loc, args[0]);
          });
      auto moved = cast<linalg::GenericOp>(rewriter.clone(*contraction));
      moved.getDpsInitsMutable().assign(init.getResults());
      if (expand)
        rewriter.replaceOpWithNewOp<tensor::ExpandShapeOp>(
            add, expand.getResultType(), moved.getResult(0),
            expand.getReassociationIndices());
      else
        rewriter.replaceOp(add, moved.getResults());
      return success();
    }
    return failure();
  }

  /// The reshape that gives `value`, if it keeps the last dimension.
  static tensor::ExpandShapeOp getRowsReshape(Value value) {
    auto expand = value.getDefiningOp<tensor::ExpandShapeOp>();
    if (!expand || expand.getSrcType().getRank() == 0 ||
        expand.getReassociationIndices().back().size() != 1)
      return nullptr;
    return expand;
  }

  static bool isZeroFloat(Value value) {
    FloatAttr attr;
    return matchPattern(value, m_Constant(&attr)) && attr.getValue().isZero();
  }
};

class FuseElementwise : public tp::impl::FuseElementwiseBase<FuseElementwise> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    generalizeNamedOps();

    RewritePatternSet patterns(context);
    linalg::populateElementwiseOpsFusionPatterns(patterns, shouldFuse);
    patterns.add<FoldBiasIntoContraction>(context, /*benefit=*/2);
    GreedyRewriteConfig config;
    config.setUseTopDownTraversal();
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }

  /// Turns named ops into generic ones, except fills, which are recognised by
  /// name.
  void generalizeNamedOps() {
    IRRewriter rewriter(&getContext());
    SmallVector<linalg::LinalgOp> named;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (!isa<linalg::GenericOp, linalg::FillOp>(op))
        named.push_back(op);
    });
    for (linalg::LinalgOp op : named) {
      rewriter.setInsertionPoint(op);
      (void)linalg::generalizeNamedOp(rewriter, op);
    }
  }
};

} // namespace
