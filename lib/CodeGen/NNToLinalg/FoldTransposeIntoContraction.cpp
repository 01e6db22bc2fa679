//===- FoldTransposeIntoContraction.cpp - Transposes in contractions ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "tp/CodeGen/Passes.h"
#include "tp/Dialect/TPRT/TPRT.h"

namespace mlir::tp {
#define GEN_PASS_DEF_FOLDTRANSPOSEINTOCONTRACTION
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;

namespace {
/// An op that only permutes dimensions.
struct Transpose {
  linalg::LinalgOp op;
  Value input;
  /// Maps indices of the result to indices of the input.
  AffineMap map;

  /// The dimension of the input that is dimension `dim` of the result.
  unsigned getInputDim(unsigned dim) const {
    return *map.getResultPosition(getAffineDimExpr(dim, map.getContext()));
  }
};
} // namespace

static std::optional<Transpose> matchTranspose(Operation *op) {
  auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
  if (!linalgOp || !isa<linalg::TransposeOp, linalg::GenericOp>(op) ||
      linalgOp.getNumDpsInputs() != 1 || linalgOp.getNumDpsInits() != 1 ||
      linalgOp.getNumParallelLoops() != linalgOp.getNumLoops() ||
      op->getNumResults() != 1)
    return std::nullopt;
  auto yield = cast<linalg::YieldOp>(linalgOp.getBlock()->getTerminator());
  if (yield.getOperand(0) != linalgOp.getBlock()->getArgument(0))
    return std::nullopt;
  AffineMap in =
      linalgOp.getMatchingIndexingMap(linalgOp.getDpsInputOperand(0));
  AffineMap out =
      linalgOp.getMatchingIndexingMap(linalgOp.getDpsInitOperand(0));
  if (!in.isPermutation() || !out.isPermutation())
    return std::nullopt;
  return Transpose{linalgOp, linalgOp->getOperand(0),
                   in.compose(inversePermutation(out))};
}

static Value buildTranspose(PatternRewriter &rewriter, Location loc,
                            Value value, ArrayRef<int64_t> permutation) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(type.getDimSize(dim));
  Value empty =
      tensor::EmptyOp::create(rewriter, loc, shape, type.getElementType());
  return linalg::TransposeOp::create(rewriter, loc, value, empty, permutation)
      ->getResult(0);
}

/// Whether the innermost dimension under `map` is a loop of the matrix instead
/// of the batch. GEMM needs this, because one of the matrix's strides must be
/// 1.
static bool isMatrixInnermost(linalg::LinalgOp contraction, AffineMap map) {
  FailureOr<linalg::ContractionDimensions> dims =
      linalg::inferContractionDims(contraction);
  if (failed(dims) || map.getNumResults() == 0)
    return false;
  return !llvm::is_contained(dims->batch,
                             map.getDimPosition(map.getNumResults() - 1));
}

namespace {
/// contraction(transpose(x)) reads x through another map.
struct FoldOperand : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!linalg::isaContractionOpInterface(op))
      return failure();
    for (OpOperand *operand : op.getDpsInputOperands()) {
      std::optional<Transpose> transpose =
          matchTranspose(operand->get().getDefiningOp());
      if (!transpose)
        continue;
      AffineMap map =
          transpose->map.compose(op.getMatchingIndexingMap(operand));
      if (!isMatrixInnermost(op, map))
        continue;
      SmallVector<AffineMap> maps = op.getIndexingMapsArray();
      maps[operand->getOperandNumber()] = map;
      rewriter.modifyOpInPlace(op, [&] {
        operand->set(transpose->input);
        op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
      });
      return success();
    }
    return failure();
  }
};

/// Lets a contraction whose only user reads its result permuted write it
/// permuted.
struct FoldResult : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!linalg::isaContractionOpInterface(op) || !op->hasOneUse())
      return failure();
    OpOperand &use = *op->getUses().begin();
    auto user = dyn_cast<linalg::LinalgOp>(use.getOwner());
    auto fill = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
    if (!user || !fill || !isElementwise(user) || !user.isDpsInput(&use))
      return failure();
    AffineMap read = user.getMatchingIndexingMap(&use);
    AffineMap write = user.getMatchingIndexingMap(user.getDpsInitOperand(0));
    if (!read.isPermutation() || read == write)
      return failure();

    // Dimension i of the new result is the dimension that the user reads with
    // the loop of its own dimension i.
    OpOperand *init = op.getDpsInitOperand(0);
    AffineMap map = op.getMatchingIndexingMap(init);
    auto type = cast<RankedTensorType>(op.getResult(0).getType());
    SmallVector<AffineExpr> exprs;
    SmallVector<int64_t> shape;
    for (AffineExpr loop : write.getResults()) {
      unsigned dim = *read.getResultPosition(loop);
      exprs.push_back(map.getResult(dim));
      shape.push_back(type.getDimSize(dim));
    }
    if (exprs.empty() || exprs.back() != map.getResults().back())
      return failure();

    std::optional<Transpose> transpose = matchTranspose(user);
    auto generic = dyn_cast<linalg::GenericOp>(user.getOperation());
    if (!transpose && !generic)
      return failure();

    rewriter.setInsertionPoint(op);
    Value empty = tensor::EmptyOp::create(rewriter, op.getLoc(), shape,
                                          type.getElementType());
    Value zeros = linalg::FillOp::create(rewriter, op.getLoc(),
                                         fill.getInputs()[0], empty)
                      .getResult(0);
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    maps.back() = AffineMap::get(map.getNumDims(), 0, exprs, op.getContext());
    auto contraction = linalg::GenericOp::create(
        rewriter, op.getLoc(), type.clone(shape), op.getInputs(), zeros, maps,
        op.getIteratorTypesArray());
    contraction->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    rewriter.inlineRegionBefore(op.getRegion(), contraction.getRegion(),
                                contraction.getRegion().begin());

    if (transpose) {
      rewriter.replaceOp(user, contraction.getResults());
    } else {
      SmallVector<AffineMap> userMaps = generic.getIndexingMapsArray();
      userMaps[use.getOperandNumber()] = write;
      rewriter.modifyOpInPlace(generic, [&] {
        use.set(contraction.getResult(0));
        generic.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(userMaps));
      });
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  static bool isElementwise(linalg::LinalgOp op) {
    return op.getNumDpsInits() == 1 &&
           op.getNumParallelLoops() == op.getNumLoops() &&
           op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isPermutation();
  }
};

/// attention(transpose(x)) reads x through another map, and so does a product of
/// groups.
template <typename OpT>
struct FoldCallOperand : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpT op,
                                PatternRewriter &rewriter) const override {
    for (auto [number, operand] : llvm::enumerate(getMapped(op))) {
      std::optional<Transpose> transpose =
          matchTranspose(operand->get().getDefiningOp());
      if (!transpose || op.isDpsInit(operand))
        continue;
      AffineMap map = transpose->map.compose(op.getMap(number));
      if (!isReadable(op, map))
        continue;
      SmallVector<Attribute> maps(op.getMaps().getValue());
      maps[number] = AffineMapAttr::get(map);
      rewriter.modifyOpInPlace(op, [&] {
        operand->set(transpose->input);
        op.setMapsAttr(rewriter.getArrayAttr(maps));
      });
      return success();
    }
    return failure();
  }

private:
  /// The operands that `maps` are for.
  static SmallVector<OpOperand *, 3> getMapped(tprt::GroupedGemmOp op) {
    return op.getMapped();
  }
  static SmallVector<OpOperand *> getMapped(Operation *op) {
    return llvm::map_to_vector(op->getOpOperands(),
                               [](OpOperand &operand) { return &operand; });
  }
  static bool isReadable(tprt::GroupedGemmOp op, AffineMap map) {
    return map.getDimPosition(map.getNumResults() - 1) != op.Group;
  }
  static bool isReadable(Operation *, AffineMap) { return true; }
};

/// transpose(attention) is attention that writes through another map.
template <typename OpT>
struct FoldAttentionResult : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpT op,
                                PatternRewriter &rewriter) const override {
    for (OpResult result : op->getResults())
      if (result.hasOneUse() && succeeded(fold(op, result, rewriter)))
        return success();
    return failure();
  }

private:
  static LogicalResult fold(OpT op, OpResult result,
                            PatternRewriter &rewriter) {
    Operation *user = *result.user_begin();
    std::optional<Transpose> transpose = matchTranspose(user);
    if (!transpose || transpose->input != result)
      return failure();
    auto type = cast<RankedTensorType>(user->getResult(0).getType());
    unsigned number = op.getTiedOpOperand(result)->getOperandNumber();
    SmallVector<Attribute> maps(op.getMaps().getValue());
    maps[number] = AffineMapAttr::get(
        inversePermutation(transpose->map).compose(op.getMap(number)));
    SmallVector<Value> operands(op->getOperands());
    operands[number] = tensor::EmptyOp::create(
        rewriter, op.getLoc(), type.getShape(), type.getElementType());
    SmallVector<Type> types(op->getResultTypes());
    types[result.getResultNumber()] = type;
    auto folded = cast<OpT>(clone(rewriter, op, types, operands));
    folded.setMapsAttr(rewriter.getArrayAttr(maps));
    rewriter.replaceOp(user, folded->getResult(result.getResultNumber()));
    for (auto [old, other] :
         llvm::zip_equal(op->getResults(), folded->getResults()))
      if (old != result)
        rewriter.replaceAllUsesWith(old, other);
    rewriter.eraseOp(op);
    return success();
  }
};

/// expand(transpose(x)) is transpose(expand(x)).
struct MoveTransposeBelowExpand : OpRewritePattern<tensor::ExpandShapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ExpandShapeOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<Transpose> transpose =
        matchTranspose(op.getSrc().getDefiningOp());
    if (!transpose || !op.getSrc().hasOneUse() ||
        !op.getResultType().hasStaticShape() || op.getSrcType().getRank() == 0)
      return failure();

    // Expand each dimension of the input like the result's dimension that it
    // becomes.
    SmallVector<ReassociationIndices> groups = op.getReassociationIndices();
    SmallVector<unsigned> resultDims(groups.size());
    for (unsigned dim = 0; dim < groups.size(); ++dim)
      resultDims[transpose->getInputDim(dim)] = dim;
    SmallVector<ReassociationIndices> inputGroups;
    SmallVector<int64_t> shape, permutation(op.getResultType().getRank());
    for (unsigned resultDim : resultDims) {
      ReassociationIndices &group = inputGroups.emplace_back();
      for (int64_t dim : groups[resultDim]) {
        permutation[dim] = shape.size();
        group.push_back(shape.size());
        shape.push_back(op.getResultType().getDimSize(dim));
      }
    }
    Value expanded = tensor::ExpandShapeOp::create(
        rewriter, op.getLoc(), op.getResultType().clone(shape),
        transpose->input, inputGroups);
    rewriter.replaceOp(
        op, buildTranspose(rewriter, op.getLoc(), expanded, permutation));
    return success();
  }
};

/// transpose(collapse(x)) is collapse(transpose(x)).
template <typename OpTy>
struct MoveTransposeAboveCollapse : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    std::optional<Transpose> transpose = matchTranspose(op);
    if (!transpose)
      return failure();
    auto collapse =
        transpose->input.template getDefiningOp<tensor::CollapseShapeOp>();
    if (!collapse || !collapse->hasOneUse() ||
        collapse.getResultType().getRank() == 0)
      return failure();

    SmallVector<ReassociationIndices> groups =
        collapse.getReassociationIndices();
    SmallVector<ReassociationIndices> resultGroups;
    SmallVector<int64_t> permutation;
    for (unsigned dim = 0; dim < groups.size(); ++dim) {
      ReassociationIndices &group = resultGroups.emplace_back();
      for (int64_t sourceDim : groups[transpose->getInputDim(dim)]) {
        group.push_back(permutation.size());
        permutation.push_back(sourceDim);
      }
    }
    Value moved =
        buildTranspose(rewriter, op.getLoc(), collapse.getSrc(), permutation);
    rewriter.replaceOpWithNewOp<tensor::CollapseShapeOp>(
        op, op->getResult(0).getType(), moved, resultGroups);
    return success();
  }
};

struct FoldTransposeIntoContraction
    : tp::impl::FoldTransposeIntoContractionBase<FoldTransposeIntoContraction> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FoldOperand, FoldResult, FoldCallOperand<tprt::AttentionOp>,
                 FoldCallOperand<tprt::AttentionGradientOp>,
                 FoldCallOperand<tprt::AttentionBlockOp>,
                 FoldCallOperand<tprt::AttentionBlockGradientOp>,
                 FoldCallOperand<tprt::GroupedGemmOp>,
                 FoldAttentionResult<tprt::AttentionOp>,
                 FoldAttentionResult<tprt::AttentionGradientOp>,
                 FoldAttentionResult<tprt::AttentionBlockOp>,
                 FoldAttentionResult<tprt::AttentionBlockGradientOp>,
                 MoveTransposeBelowExpand,
                 MoveTransposeAboveCollapse<linalg::TransposeOp>,
                 MoveTransposeAboveCollapse<linalg::GenericOp>>(&getContext());
    // Erases copies that no longer move anything.
    linalg::GenericOp::getCanonicalizationPatterns(patterns, &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
