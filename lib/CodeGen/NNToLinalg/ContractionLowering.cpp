//===- ContractionLowering.cpp - Linear, outer_sum, matmul ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Contractions read their operands as they lie in memory, and have as few loops
// as the shapes allow: leading dimensions that only the left operand has are
// merged into one loop, m.
//
//===----------------------------------------------------------------------===//

#include "LinalgBuilders.h"
#include "LoweringPatterns.h"

#include "tp/Dialect/NN/NN.h"

using namespace mlir;
using namespace mlir::tp::nnlinalg;

static AffineMap getMap(MLIRContext *context, unsigned numLoops,
                        ArrayRef<unsigned> dims) {
  return AffineMap::getMultiDimMapWithTargets(numLoops, dims, context);
}

/// Collapses all dimensions but the last into one.
static Value collapseLeading(ImplicitLocOpBuilder &b, Value value) {
  RankedTensorType type = getTensorType(value);
  int64_t rows = ShapedType::getNumElements(type.getShape().drop_back());
  return buildReshape(b, value, {rows, type.getShape().back()});
}

/// Whether the result has the operands' element type, so that the contraction
/// itself can round it.
static bool isOfOneType(Operation *op) {
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return getTensorType(operand).getElementType() ==
           getTensorType(op->getResult(0)).getElementType();
  });
}

namespace {
struct LinearPattern : OpRewritePattern<nn::LinearOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::LinearOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getResult());
    Value rows = collapseLeading(b, op.getInput());
    MLIRContext *context = op.getContext();
    enum { m, n, k };
    Value result = buildContraction(
        b, {rows, getMap(context, 3, {m, k})},
        {op.getWeight(), getMap(context, 3, {n, k})},
        {getTensorType(rows).getDimSize(0), type.getShape().back()},
        getMap(context, 3, {m, n}), isOfOneType(op));
    result = buildCast(b, result, type.getElementType());
    rewriter.replaceOp(op, buildReshape(b, result, type.getShape()));
    return success();
  }
};

struct OuterSumPattern : OpRewritePattern<nn::OuterSumOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::OuterSumOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getResult());
    enum { m, n, k };
    MLIRContext *context = op.getContext();
    Value result = buildContraction(
        b, {collapseLeading(b, op.getLhs()), getMap(context, 3, {k, m})},
        {collapseLeading(b, op.getRhs()), getMap(context, 3, {k, n})},
        type.getShape(), getMap(context, 3, {m, n}), isOfOneType(op));
    rewriter.replaceOp(op, buildCast(b, result, type.getElementType()));
    return success();
  }
};

struct MatmulPattern : OpRewritePattern<nn::MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::MatmulOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getResult());
    Value lhs = op.getLhs(), rhs = op.getRhs();
    SmallVector<int64_t> batch(type.getShape().drop_back(2));
    ArrayRef<int64_t> matrix = getTensorType(rhs).getShape().take_back(2);
    bool isMatrix = getTensorType(rhs).getNumElements() ==
                    ShapedType::getNumElements(matrix);
    if (isMatrix && getTensorType(lhs).getRank() == type.getRank() &&
        getTensorType(lhs).getShape().drop_back(2) == ArrayRef(batch)) {
      lhs = collapseLeading(b, lhs);
      rhs = buildReshape(b, rhs, matrix);
      batch.clear();
    }

    unsigned numBatch = batch.size();
    unsigned m = numBatch, n = m + 1, k = m + 2;
    Operand left = getOperand(b, lhs, batch, m, k);
    Operand right = getOperand(b, rhs, batch, k, n);
    SmallVector<int64_t> shape(batch);
    shape.push_back(*std::prev(getTensorType(lhs).getShape().end(), 2));
    shape.push_back(type.getShape().back());
    Value result = buildContraction(
        b, left, right, shape,
        AffineMap::getMultiDimIdentityMap(numBatch + 3, op.getContext())
            .getMajorSubMap(numBatch + 2),
        isOfOneType(op));
    result = buildCast(b, result, type.getElementType());
    rewriter.replaceOp(op, buildReshape(b, result, type.getShape()));
    return success();
  }

private:
  /// An operand on the loops (batch…, m, n, k): its broadcast batch dimensions
  /// are dropped, and its last two dimensions are the loops `row` and `column`.
  static Operand getOperand(ImplicitLocOpBuilder &b, Value value,
                            ArrayRef<int64_t> batch, unsigned row,
                            unsigned column) {
    ArrayRef<int64_t> shape = getTensorType(value).getShape();
    unsigned offset = batch.size() + 2 - shape.size();
    SmallVector<int64_t> kept;
    SmallVector<unsigned> loops;
    for (auto [i, size] : llvm::enumerate(shape.drop_back(2)))
      if (size == batch[offset + i]) {
        kept.push_back(size);
        loops.push_back(offset + i);
      }
    llvm::append_range(kept, shape.take_back(2));
    loops.append({row, column});
    return {buildReshape(b, value, kept),
            getMap(b.getContext(), batch.size() + 3, loops)};
  }
};
} // namespace

void mlir::tp::nnlinalg::populateContractionPatterns(
    RewritePatternSet &patterns) {
  patterns.add<LinearPattern, OuterSumPattern, MatmulPattern>(
      patterns.getContext());
}
