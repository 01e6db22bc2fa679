//===- ShapeLowering.cpp - Constants, reshapes, slices, concatenation -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LinalgBuilders.h"
#include "LoweringPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "tp/Dialect/NN/NN.h"

using namespace mlir;
using namespace mlir::tp::nnlinalg;

namespace {
struct ConstantPattern : OpRewritePattern<nn::ConstantOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::ConstantOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, buildConstant(b, cast<TypedAttr>(op.getValue())));
    return success();
  }
};

struct IotaPattern : OpRewritePattern<nn::IotaOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::IotaOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getResult());
    double start = op.getStart().convertToDouble();
    double step = op.getStep().convertToDouble();
    rewriter.replaceOp(
        op,
        buildElementwise(
            b, type, ArrayRef<Operand>(),
            [&](ImplicitLocOpBuilder &b, ArrayRef<Value>) -> Value {
              Value index = linalg::IndexOp::create(b, op.getDim());
              index = arith::IndexCastOp::create(b, b.getI64Type(), index);
              if (type.getElementType().isInteger()) {
                Type i64 = b.getI64Type();
                Value scaled =
                    arith::MulIOp::create(b, index, getScalar(b, i64, step));
                return arith::AddIOp::create(b, scaled,
                                             getScalar(b, i64, start));
              }
              // As in PyTorch's arange: in f64, rounded once.
              Type f64 = b.getF64Type();
              Value number = arith::SIToFPOp::create(b, f64, index);
              number =
                  arith::MulFOp::create(b, number, getScalar(b, f64, step));
              return arith::AddFOp::create(b, number, getScalar(b, f64, start));
            }));
    return success();
  }
};

struct ReshapePattern : OpRewritePattern<nn::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op,
                       buildReshape(b, op.getInput(),
                                    getTensorType(op.getResult()).getShape()));
    return success();
  }
};

struct TransposePattern : OpRewritePattern<nn::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::TransposeOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op,
                       buildTranspose(b, op.getInput(), op.getPermutation()));
    return success();
  }
};

struct BroadcastPattern : OpRewritePattern<nn::BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::BroadcastOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getResult());
    Value input = op.getInput();
    if (TypedAttr splat = getSplat(input)) {
      rewriter.replaceOp(
          op, buildConstant(b, DenseElementsAttr::get(type, Attribute(splat))));
      return success();
    }
    Value result =
        getTensorType(input).getNumElements() == type.getNumElements()
            ? buildReshape(b, input, type.getShape())
            : buildCopy(b, type, broadcastTo(input, type.getShape()));
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// The offsets, sizes and strides of the part, of this type, that `op` reads or
/// writes.
template <typename OpT>
std::array<SmallVector<OpFoldResult>, 3> getRange(OpT op,
                                                  RankedTensorType part) {
  Builder b(op.getContext());
  SmallVector<OpFoldResult> offsets(part.getRank(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(part.getRank(), b.getIndexAttr(1));
  offsets[op.getDim()] = b.getIndexAttr(op.getStart());
  strides[op.getDim()] = b.getIndexAttr(op.getStep());
  return {offsets, getAsIndexOpFoldResult(op.getContext(), part.getShape()),
          strides};
}

struct SlicePattern : OpRewritePattern<nn::SliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::SliceOp op,
                                PatternRewriter &rewriter) const override {
    RankedTensorType type = getTensorType(op.getResult());
    if (type.getNumElements() == 0) {
      // extract_slice rejects an offset at the end.
      rewriter.replaceOpWithNewOp<tensor::EmptyOp>(op, type.getShape(),
                                                   type.getElementType());
      return success();
    }
    auto [offsets, sizes, strides] = getRange(op, type);
    rewriter.replaceOpWithNewOp<tensor::ExtractSliceOp>(
        op, type, op.getInput(), offsets, sizes, strides);
    return success();
  }
};

/// The insertion bufferizes in place if nothing reads the input later.
struct SliceScatterPattern : OpRewritePattern<nn::SliceScatterOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::SliceScatterOp op,
                                PatternRewriter &rewriter) const override {
    RankedTensorType type = getTensorType(op.getSource());
    if (type.getNumElements() == 0) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    auto [offsets, sizes, strides] = getRange(op, type);
    rewriter.replaceOpWithNewOp<tensor::InsertSliceOp>(
        op, op.getSource(), op.getInput(), offsets, sizes, strides);
    return success();
  }
};

/// The inputs are inserted one by one into an empty tensor, which bufferizes in
/// place.
struct ConcatPattern : OpRewritePattern<nn::ConcatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::ConcatOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getResult());
    if (op.getInputs().size() == 1) {
      rewriter.replaceOp(op, op.getInputs().front());
      return success();
    }
    SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
    Value result = buildEmpty(b, type);
    int64_t offset = 0;
    for (Value input : op.getInputs()) {
      ArrayRef<int64_t> shape = getTensorType(input).getShape();
      if (getTensorType(input).getNumElements() == 0)
        continue;
      offsets[op.getDim()] = b.getIndexAttr(offset);
      offset += shape[op.getDim()];
      result = tensor::InsertSliceOp::create(
          b, input, result, offsets,
          getAsIndexOpFoldResult(op.getContext(), shape), strides);
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};
} // namespace

void mlir::tp::nnlinalg::populateShapePatterns(RewritePatternSet &patterns) {
  patterns
      .add<ConstantPattern, IotaPattern, ReshapePattern, TransposePattern,
           BroadcastPattern, SlicePattern, SliceScatterPattern, ConcatPattern>(
          patterns.getContext());
}
