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

/// contraction(init = 0) + bias along one dimension → contraction(init = bias),
/// if nothing else reads the contraction. The other dimensions may be reshaped
/// in between. In f32 and f64 the dimension is the last one, whose bias a GEMM
/// adds. In types of 16 bits the contraction then rounds once, where a separate
/// sum would round again; the epilogue of a GEMM adds a bias along the last
/// dimension without that.
struct FoldBiasIntoContraction : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp add,
                                PatternRewriter &rewriter) const override {
    if (add.getNumDpsInputs() != 2 || add.getNumResults() != 1 ||
        add.getNumReductionLoops() != 0 || !isSum(add) ||
        !add.getIndexingMapsArray()[2].isIdentity())
      return failure();
    bool isNarrow =
        getElementTypeOrSelf(add.getResult(0)).getIntOrFloatBitWidth() == 16;
    for (unsigned i : {0, 1}) {
      OpOperand *sum = add.getDpsInputOperand(i);
      OpOperand *bias = add.getDpsInputOperand(1 - i);
      auto expand = sum->get().getDefiningOp<tensor::ExpandShapeOp>();
      Value product = expand ? expand.getSrc() : sum->get();
      auto contraction = product.getDefiningOp<linalg::GenericOp>();
      if (!contraction || !isContraction(contraction) || !product.hasOneUse() ||
          !sum->get().hasOneUse() ||
          !add.getMatchingIndexingMap(sum).isIdentity())
        continue;
      std::optional<unsigned> dim =
          getBiasDim(add.getMatchingIndexingMap(bias), expand);
      if (!dim || isNarrow == (*dim + 1 == getRank(product)))
        continue;
      auto fill = contraction.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
      if (!fill || !isZeroFloat(fill.value()))
        continue;
      rewriter.setInsertionPoint(add);
      Location loc = add.getLoc();
      AffineMap identity = rewriter.getMultiDimIdentityMap(getRank(product));
      SmallVector<utils::IteratorType> parallel(getRank(product),
                                                utils::IteratorType::parallel);
      Value vector = dropUnits(bias->get(), rewriter, loc);
      auto init = linalg::GenericOp::create(
          rewriter, loc, product.getType(), vector, fill.output(),
          ArrayRef<AffineMap>{identity.getSubMap(*dim), identity}, parallel,
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

private:
  static unsigned getRank(Value tensor) {
    return cast<RankedTensorType>(tensor.getType()).getRank();
  }

  /// Whether the op is the sum of its two inputs, in types of 16 bits that of
  /// their values in f32.
  static bool isSum(linalg::GenericOp op) {
    Block &body = op.getRegion().front();
    Value sum = body.getTerminator()->getOperand(0);
    if (auto round = sum.getDefiningOp<arith::TruncFOp>())
      sum = round.getIn();
    auto add = sum.getDefiningOp<arith::AddFOp>();
    if (!add)
      return false;
    auto isInput = [&](Value value, unsigned number) {
      if (auto extend = value.getDefiningOp<arith::ExtFOp>())
        value = extend.getIn();
      return value == body.getArgument(number);
    };
    return (isInput(add.getLhs(), 0) && isInput(add.getRhs(), 1)) ||
           (isInput(add.getLhs(), 1) && isInput(add.getRhs(), 0));
  }

  /// The dimension of the product that an addend with `map` has alone, if the
  /// product's reshape keeps this dimension.
  static std::optional<unsigned> getBiasDim(AffineMap map,
                                            tensor::ExpandShapeOp expand) {
    std::optional<unsigned> dim;
    for (AffineExpr expr : map.getResults()) {
      if (expr == getAffineConstantExpr(0, map.getContext()))
        continue;
      auto own = dyn_cast<AffineDimExpr>(expr);
      if (!own || dim)
        return std::nullopt;
      dim = own.getPosition();
    }
    if (!dim || !expand)
      return dim;
    for (auto [i, group] : llvm::enumerate(expand.getReassociationIndices()))
      if (group.size() == 1 && group.front() == int64_t(*dim))
        return i;
    return std::nullopt;
  }

  /// `bias`, all of whose sizes but one are 1, as a vector.
  static Value dropUnits(Value bias, RewriterBase &rewriter, Location loc) {
    auto type = cast<RankedTensorType>(bias.getType());
    if (type.getRank() == 1)
      return bias;
    return tensor::CollapseShapeOp::create(
        rewriter, loc, type.clone({type.getNumElements()}), bias,
        ReassociationIndices(llvm::to_vector(llvm::seq(type.getRank()))));
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
