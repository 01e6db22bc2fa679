//===- LowerKernels.cpp - Loops in kernels --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CodeGen/Loops/Loops.h"
#include "CodeGen/Loops/MathEdges.h"
#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "tp/CodeGen/Passes.h"

namespace mlir::tp {
#define GEN_PASS_DEF_LOWERKERNELS
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;

namespace {

/// integer → bf16 goes through f32, as in PyTorch.
template <typename Op>
struct ConvertThroughF32 : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isBF16())
      return failure();
    Value wide =
        Op::create(rewriter, op.getLoc(), rewriter.getF32Type(), op.getIn());
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), wide);
    return success();
  }
};

class LowerKernels : public tp::impl::LowerKernelsBase<LowerKernels> {
  /// Whether the innermost loop of `op` reduces, in any order.
  static bool reducesInnermost(linalg::GenericOp op) {
    if (op.getNumLoops() == 0 ||
        op.getIteratorTypesArray().back() != utils::IteratorType::reduction)
      return false;
    for (unsigned i = 0; i < op.getNumDpsInits(); ++i)
      if (!tp::getCombiner(op, i))
        return false;
    return true;
  }

  /// The order of each reduction is decided; LLVM must not choose another.
  void keepOrder() {
    getOperation().walk([](arith::ArithFastMathInterface op) {
      auto flags = op.getFastMathFlagsAttr();
      if (flags && arith::bitEnumContainsAny(flags.getValue(),
                                             arith::FastMathFlags::reassoc))
        op->setAttr(op.getFastMathAttrName(),
                    arith::FastMathFlagsAttr::get(
                        op->getContext(),
                        flags.getValue() & ~arith::FastMathFlags::reassoc));
    });
  }

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    IRRewriter rewriter(context);
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    for (linalg::LinalgOp op : ops) {
      rewriter.setInsertionPoint(op);
      FailureOr<linalg::GenericOp> generic =
          isa<linalg::GenericOp>(op) ? cast<linalg::GenericOp>(op)
                                     : linalg::generalizeNamedOp(rewriter, op);
      if (failed(generic))
        return signalPassFailure();
      rewriter.setInsertionPoint(*generic);
      SmallVector<unsigned> order = tp::getLoopOrder(*generic);
      if (!llvm::is_sorted(order))
        generic = linalg::interchangeGenericOp(rewriter, *generic, order);
      if (failed(generic))
        return signalPassFailure();
      bool isReduced = reducesInnermost(*generic);
      FailureOr<linalg::LinalgLoops> loops =
          linalg::linalgOpToLoops(rewriter, *generic);
      if (failed(loops))
        return signalPassFailure();
      SmallVector<Value> results(generic->getDpsInits());
      rewriter.eraseOp(*generic);
      if (isReduced)
        tp::splitIntoLanes(rewriter, cast<scf::ForOp>(loops->back()), results);
    }
    keepOrder();
    tp::expandMathEdges(getOperation(), rewriter);

    RewritePatternSet patterns(context);
    // LLVM would call a function that not every libgcc has.
    arith::populateExpandBFloat16Patterns(patterns);
    patterns.add<ConvertThroughF32<arith::SIToFPOp>,
                 ConvertThroughF32<arith::UIToFPOp>>(context);
    // The C library has no rsqrt.
    math::populateExpansionPatterns(patterns, {StringRef("rsqrt")});
    auto isApproximated = [](StringRef name) {
      return name == math::LogOp::getOperationName() ||
             name == math::TanhOp::getOperationName() ||
             name == math::ErfOp::getOperationName();
    };
    populateMathPolynomialApproximationPatterns(patterns, isApproximated);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();

    // Turn views into strides and offsets, and these into arithmetic.
    RewritePatternSet expand(context);
    memref::populateExpandStridedMetadataPatterns(expand);
    if (failed(applyPatternsGreedily(getOperation(), std::move(expand))))
      return signalPassFailure();
    RewritePatternSet affine(context);
    populateAffineToStdConversionPatterns(affine);
    if (failed(applyPatternsGreedily(getOperation(), std::move(affine))))
      signalPassFailure();
  }
};

} // namespace
