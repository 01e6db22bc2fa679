//===- FuseElementwise.cpp - Fusion of elementwise ops --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CodeGen/Loops/Loops.h"
#include "CodeGen/NNToLinalg/LinalgBuilders.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
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

/// Whether another operand of `op` reads the same elements; the patterns that
/// join the two come first. In a chain of ops that each read the last two, each
/// op would otherwise be computed as often as both of these together.
bool isReadTwice(OpOperand *operand, linalg::GenericOp op) {
  return llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *other) {
    return other != operand && other->get() == operand->get() &&
           op.getMatchingIndexingMap(other) ==
               op.getMatchingIndexingMap(operand);
  });
}

/// Whether to compute the producer of `operand` inside of its reader.
bool shouldFuse(OpOperand *operand) {
  auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
  auto consumer = dyn_cast<linalg::GenericOp>(operand->getOwner());
  if (!producer || !consumer || isReadTwice(operand, consumer))
    return false;
  // A contraction stays a plain sum of products, which GEMM computes.
  if (isContraction(producer))
    return false;
  if (isContraction(consumer))
    return isDataMovement(producer) &&
           llvm::all_of(producer.getIndexingMapsArray(),
                        [](AffineMap m) { return m.isProjectedPermutation(); });

  bool isOnlyReader =
      llvm::all_of(operand->get().getUsers(), [&](Operation *user) {
        return user == consumer.getOperation();
      });
  if (isOnlyReader && visitsEachOnce(consumer, *operand)) // computed once
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

unsigned getRank(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getRank();
}

/// Whether the op is the sum of its two inputs, in types of 16 bits that of
/// their values in f32.
bool isSum(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumResults() != 1 ||
      op.getNumReductionLoops() != 0 ||
      !op.getIndexingMapsArray()[2].isIdentity())
    return false;
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

bool isNarrow(linalg::GenericOp op) {
  return getElementTypeOrSelf(op.getResult(0)).getIntOrFloatBitWidth() == 16;
}

/// Whether the op reads the elements of `operand` in their order. Dimensions of
/// size 1 don't matter.
bool readsInOrder(linalg::GenericOp op, OpOperand &operand) {
  if (!visitsEachOnce(op, operand))
    return false;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  SmallVector<unsigned> loops;
  for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(expr);
        dim && sizes[dim.getPosition()] != 1)
      loops.push_back(dim.getPosition());
  return llvm::is_sorted(loops);
}

/// The dimension that an addend with `map` has alone.
std::optional<unsigned> getBiasDim(AffineMap map) {
  std::optional<unsigned> dim;
  for (AffineExpr expr : map.getResults()) {
    if (expr == getAffineConstantExpr(0, map.getContext()))
      continue;
    auto own = dyn_cast<AffineDimExpr>(expr);
    if (!own || dim)
      return std::nullopt;
    dim = own.getPosition();
  }
  return dim;
}

/// Reshapes in a row that nothing else reads, the last one first.
struct Reshapes {
  SmallVector<Operation *> ops;
  /// What they reshape.
  Value source;

  explicit Reshapes(Value result) : source(result) {
    while (source.hasOneUse() &&
           isa_and_present<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(
               source.getDefiningOp())) {
      ops.push_back(source.getDefiningOp());
      source = ops.back()->getOperand(0);
    }
  }

  /// The dimensions of the source that dimension `dim` of the result consists
  /// of; none if a reshape joins it with others.
  std::optional<SmallVector<unsigned>> getSourceDims(unsigned dim) const {
    SmallVector<unsigned> dims = {dim};
    for (Operation *op : ops) {
      SmallVector<unsigned> before;
      if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
        for (unsigned d : dims)
          llvm::append_range(before, collapse.getReassociationIndices()[d]);
      } else {
        auto groups = cast<tensor::ExpandShapeOp>(op).getReassociationIndices();
        for (auto [i, group] : llvm::enumerate(groups))
          if (group.size() == 1 && llvm::is_contained(dims, group.front()))
            before.push_back(i);
      }
      if (before.size() < dims.size())
        return std::nullopt;
      dims = before;
    }
    return dims;
  }

  /// The same reshapes of `value`, which has the source's shape.
  Value repeat(RewriterBase &rewriter, Value value) const {
    for (Operation *op : llvm::reverse(ops)) {
      Type type = cast<RankedTensorType>(op->getResult(0).getType())
                      .clone(getElementTypeOrSelf(value));
      value = clone(rewriter, op, type, value)->getResult(0);
    }
    return value;
  }
};

/// contraction(init = 0) + bias along one dimension → contraction(init = bias),
/// if nothing else reads the contraction. It may be reshaped in between, and
/// the dimension may consist of several, a convolution's groups and their
/// channels. In f32 and f64 it is the last one, whose bias a GEMM adds. In
/// types of 16 bits the contraction then rounds once, where a separate sum
/// would round again; the epilogue of a GEMM adds a bias along the last
/// dimension without that.
struct FoldBiasIntoContraction : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp add,
                                PatternRewriter &rewriter) const override {
    if (!isSum(add))
      return failure();
    for (unsigned i : {0, 1}) {
      OpOperand *sum = add.getDpsInputOperand(i);
      OpOperand *bias = add.getDpsInputOperand(1 - i);
      Reshapes reshapes(sum->get());
      Value product = reshapes.source;
      auto contraction = product.getDefiningOp<linalg::GenericOp>();
      if (!contraction || !isContraction(contraction) || !product.hasOneUse() ||
          !readsInOrder(add, *sum))
        continue;
      std::optional<unsigned> dim =
          getBiasDim(add.getMatchingIndexingMap(bias));
      if (dim)
        dim = add.getMatchingIndexingMap(sum).getResultPosition(
            rewriter.getAffineDimExpr(*dim));
      auto dims = dim ? reshapes.getSourceDims(*dim) : std::nullopt;
      if (!dims)
        continue;
      bool isLast = dims->back() + 1 == getRank(product);
      if (isNarrow(add) ? isLast : !isLast || dims->size() > 1)
        continue;
      auto fill = contraction.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
      if (!fill || !isZeroFloat(fill.value()))
        continue;
      rewriter.setInsertionPoint(add);
      Location loc = add.getLoc();
      AffineMap identity = rewriter.getMultiDimIdentityMap(getRank(product));
      SmallVector<utils::IteratorType> parallel(getRank(product),
                                                utils::IteratorType::parallel);
      auto type = cast<RankedTensorType>(product.getType());
      SmallVector<int64_t> shape = llvm::map_to_vector(
          *dims, [&](unsigned d) { return type.getDimSize(d); });
      Value addend = reshapeBias(bias->get(), shape, rewriter, loc);
      auto init = linalg::GenericOp::create(
          rewriter, loc, type, addend, fill.output(),
          ArrayRef<AffineMap>{identity.getSubMap(*dims), identity}, parallel,
          [](OpBuilder &b, Location loc, ValueRange args) {
            linalg::YieldOp::create(b, loc, args[0]);
          });
      auto moved = cast<linalg::GenericOp>(rewriter.clone(*contraction));
      moved.getDpsInitsMutable().assign(init.getResults());
      ImplicitLocOpBuilder b(loc, rewriter);
      rewriter.replaceOp(
          add,
          nnlinalg::buildReshape(
              b, reshapes.repeat(rewriter, moved.getResult(0)),
              cast<RankedTensorType>(add.getResult(0).getType()).getShape()));
      return success();
    }
    return failure();
  }

private:
  /// `bias`, all of whose sizes but one are 1, as a tensor of `shape`.
  static Value reshapeBias(Value bias, ArrayRef<int64_t> shape,
                           RewriterBase &rewriter, Location loc) {
    auto type = cast<RankedTensorType>(bias.getType());
    auto merge = [](int64_t rank) {
      return ReassociationIndices(llvm::to_vector(llvm::seq(rank)));
    };
    if (type.getRank() > 1)
      bias = tensor::CollapseShapeOp::create(
          rewriter, loc, type.clone({type.getNumElements()}), bias,
          merge(type.getRank()));
    if (shape.size() > 1)
      bias = tensor::ExpandShapeOp::create(
          rewriter, loc, type.clone(shape), bias,
          ArrayRef<ReassociationIndices>{merge(shape.size())});
    return bias;
  }

  static bool isZeroFloat(Value value) {
    FloatAttr attr;
    return matchPattern(value, m_Constant(&attr)) && attr.getValue().isZero();
  }
};

/// round(sum) + bias along one dimension, in a type of 16 bits → the sum and
/// the bias in f32, rounded once, as a depthwise convolution with bias needs.
struct AddBiasBeforeRounding : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp add,
                                PatternRewriter &rewriter) const override {
    if (!isSum(add) || !isNarrow(add))
      return failure();
    for (unsigned i : {0, 1}) {
      Reshapes reshapes(add.getDpsInputOperand(i)->get());
      auto round = reshapes.source.getDefiningOp<linalg::GenericOp>();
      if (!round || !reshapes.source.hasOneUse() || !isRoundedSum(round) ||
          !getBiasDim(
              add.getMatchingIndexingMap(add.getDpsInputOperand(1 - i))))
        continue;
      SmallVector<Value> inputs(add.getDpsInputs());
      inputs[i] = reshapes.repeat(rewriter, round.getDpsInputs()[0]);
      rewriter.replaceOpWithNewOp<linalg::GenericOp>(
          add, add.getResultTypes(), inputs, add.getDpsInits(),
          add.getIndexingMapsArray(), add.getIteratorTypesArray(),
          [](OpBuilder &b, Location loc, ValueRange args) {
            SmallVector<Value> wide(args.take_front(2));
            for (Value &value : wide)
              if (!value.getType().isF32())
                value = arith::ExtFOp::create(b, loc, b.getF32Type(), value);
            Value sum = arith::AddFOp::create(b, loc, wide[0], wide[1]);
            linalg::YieldOp::create(
                b, loc,
                arith::TruncFOp::create(b, loc, args[2].getType(), sum)
                    .getResult());
          });
      return success();
    }
    return failure();
  }

private:
  /// Whether `round` rounds the elements of a reduction in f32 in their places.
  static bool isRoundedSum(linalg::GenericOp round) {
    Block &body = round.getRegion().front();
    if (round.getNumDpsInputs() != 1 || body.getOperations().size() != 2 ||
        !isa<arith::TruncFOp>(body.front()) ||
        body.front().getOperand(0) != body.getArgument(0) ||
        !getElementTypeOrSelf(round.getDpsInputs()[0]).isF32() ||
        !llvm::all_of(round.getIndexingMapsArray(),
                      [](AffineMap map) { return map.isIdentity(); }))
      return false;
    auto sum = round.getDpsInputs()[0].getDefiningOp<linalg::LinalgOp>();
    return sum && sum.getNumReductionLoops() > 0;
  }
};

class FuseElementwise : public tp::impl::FuseElementwiseBase<FuseElementwise> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    generalizeNamedOps();

    RewritePatternSet patterns(context);
    linalg::populateElementwiseOpsFusionPatterns(patterns, shouldFuse);
    patterns.add<FoldBiasIntoContraction, AddBiasBeforeRounding>(context,
                                                                 /*benefit=*/2);
    GreedyRewriteConfig config;
    config.setUseTopDownTraversal();
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }

  /// Turns named ops into generic ones, except fills, which are recognized by
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
