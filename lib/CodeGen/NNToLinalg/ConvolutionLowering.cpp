//===- ConvolutionLowering.cpp - convolutions, windows, pooling -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A convolution is a product of its weight and the windows of its input, which
// are copied. A depthwise one, whose products would be of vectors, reads its
// windows where they are, and so does pooling.
//
//===----------------------------------------------------------------------===//

#include "LinalgBuilders.h"
#include "LoweringPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "tp/Dialect/NN/NN.h"

using namespace mlir;
using namespace mlir::tp::nnlinalg;

/// The input of `op`, whose last dimensions have `counts` windows of `size`
/// elements, with `outside` around it as far as windows go. The loops are those
/// of the other dimensions, of the positions from `firstPosition` on, and of
/// the windows' elements from `firstElement` on.
template <typename OpT>
static Operand readWindows(ImplicitLocOpBuilder &b, OpT op, Value input,
                           ArrayRef<int64_t> size, ArrayRef<int64_t> counts,
                           double outside, unsigned firstPosition,
                           unsigned firstElement) {
  RankedTensorType type = getTensorType(input);
  size_t n = size.size(), lead = type.getRank() - n;
  SmallVector<int64_t> shape(type.getShape()), covered(shape);
  SmallVector<OpFoldResult> low(lead, b.getIndexAttr(0)), high(low);
  SmallVector<AffineExpr> exprs;
  for (size_t dim = 0; dim < lead; ++dim)
    exprs.push_back(b.getAffineDimExpr(dim));
  for (size_t i = 0; i < n; ++i) {
    int64_t stride = op.getStride()[i], dilation = op.getDilation()[i],
            padding = op.getPadding()[i];
    // Exactly what the windows cover: linalg infers it from the loops.
    int64_t end = stride * (counts[i] - 1) + dilation * (size[i] - 1) + 1;
    if (counts[i] == 0)
      end = padding + shape[lead + i];
    int64_t before = std::min(padding, end);
    int64_t inside = std::min(end - before, shape[lead + i]);
    covered[lead + i] = inside;
    shape[lead + i] = end;
    low.push_back(b.getIndexAttr(before));
    high.push_back(b.getIndexAttr(end - before - inside));
    exprs.push_back(b.getAffineDimExpr(firstPosition + i) * stride +
                    b.getAffineDimExpr(firstElement + i) * dilation);
  }
  if (type.getShape() != ArrayRef(covered)) {
    SmallVector<OpFoldResult> offsets(covered.size(), b.getIndexAttr(0)),
        strides(covered.size(), b.getIndexAttr(1));
    input = tensor::ExtractSliceOp::create(
        b, type.clone(covered), input, offsets,
        getAsIndexOpFoldResult(b.getContext(), covered), strides);
  }
  if (covered != shape) {
    Value scalar = getScalar(b, type.getElementType(), outside);
    input =
        tensor::PadOp::create(b, type.clone(shape), input, low, high, scalar);
  }
  return {input, AffineMap::get(lead + 2 * n, 0, exprs, b.getContext())};
}

static AffineMap getLoops(ImplicitLocOpBuilder &b, unsigned numLoops,
                          unsigned first, unsigned count) {
  auto dims = llvm::to_vector(llvm::seq(first, first + count));
  return AffineMap::getMultiDimMapWithTargets(numLoops, dims, b.getContext());
}

namespace {
struct DecomposeConvolution : OpRewritePattern<nn::ConvolutionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::ConvolutionOp op,
                                PatternRewriter &rewriter) const override {
    if (op.isDepthwise())
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, op.decompose(b));
    return success();
  }
};

struct DepthwisePattern : OpRewritePattern<nn::ConvolutionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::ConvolutionOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getResult());
    RankedTensorType input = getTensorType(op.getInput());
    RankedTensorType weight = getTensorType(op.getWeight());
    unsigned n = op.getStride().size();
    ArrayRef<int64_t> size = weight.getShape().take_back(n),
                      counts = type.getShape().take_back(n);
    // The loops are b, g, the positions and the elements of a window.
    int64_t batch = input.getDimSize(0), groups = input.getDimSize(1);
    SmallVector<int64_t> image{batch, groups}, filter{groups},
        loops{batch, groups};
    llvm::append_range(image, input.getShape().take_back(n));
    llvm::append_range(filter, size);
    llvm::append_range(loops, counts);
    llvm::append_range(loops, size);
    SmallVector<unsigned> filterLoops{1};
    llvm::append_range(filterLoops, llvm::seq(2 + n, 2 + 2 * n));
    Operand windows =
        readWindows(b, op, buildReshape(b, op.getInput(), image), size, counts,
                    /*outside=*/0, /*firstPosition=*/2, /*firstElement=*/2 + n);
    Operand factors{buildReshape(b, op.getWeight(), filter),
                    AffineMap::getMultiDimMapWithTargets(2 + 2 * n, filterLoops,
                                                         b.getContext())};
    Value zero = getScalar(b, getComputeType(type.getElementType()), 0);
    Value result = buildReduction(
        b, {windows, factors}, loops,
        llvm::to_vector(llvm::seq<int64_t>(2 + n, 2 + 2 * n)), zero,
        [](ImplicitLocOpBuilder &b, ArrayRef<Value> args, Value acc) {
          Value product = arith::MulFOp::create(b, args[0], args[1],
                                                arith::FastMathFlags::contract);
          return addToSum(b, acc, product);
        });
    result = buildCast(b, result, type.getElementType());
    rewriter.replaceOp(op, buildReshape(b, result, type.getShape()));
    return success();
  }
};

struct WindowsPattern : OpRewritePattern<nn::WindowsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::WindowsOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getResult());
    unsigned n = op.getStride().size(), lead = type.getRank() - 2 * n;
    if (type.getNumElements() == 0) {
      rewriter.replaceOp(op, buildEmpty(b, type));
      return success();
    }
    ArrayRef<int64_t> size = type.getShape().slice(lead, n);
    Operand windows =
        readWindows(b, op, op.getInput(), size, type.getShape().take_back(n),
                    op.getOutside().convertToDouble(),
                    /*firstPosition=*/lead + n, /*firstElement=*/lead);
    // Windows of one element each are the input itself, with what is around it.
    auto isOne = [](int64_t number) { return number == 1; };
    bool isPadding =
        llvm::all_of(size, isOne) && llvm::all_of(op.getStride(), isOne) &&
        getTensorType(windows.value).getNumElements() == type.getNumElements();
    rewriter.replaceOp(op, isPadding
                               ? buildReshape(b, windows.value, type.getShape())
                               : buildCopy(b, type, windows));
    return success();
  }
};

struct PoolPattern : OpRewritePattern<nn::PoolOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::PoolOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getResult());
    if (type.getNumElements() == 0) {
      rewriter.replaceOp(op, buildEmpty(b, type));
      return success();
    }
    unsigned n = op.getStride().size(), rank = type.getRank();
    bool isMax = op.getKind() == nn::ReduceKind::Max;
    Type computeType = getComputeType(type.getElementType());
    Value identity =
        isMax ? getLowest(b, computeType) : getScalar(b, computeType, 0);
    Operand windows = readWindows(
        b, op, op.getInput(), op.getSize(), type.getShape().take_back(n),
        isMax ? -std::numeric_limits<double>::infinity() : 0.0,
        /*firstPosition=*/rank - n, /*firstElement=*/rank);
    // Only its shape matters: it says how many iterations the loops over a
    // window have.
    Operand shape{
        buildEmpty(b, RankedTensorType::get(op.getSize(), computeType)),
        getLoops(b, rank + n, rank, n)};
    SmallVector<int64_t> loops(type.getShape());
    llvm::append_range(loops, op.getSize());
    Value result = buildReduction(
        b, {windows, shape}, loops,
        llvm::to_vector(llvm::seq<int64_t>(rank, rank + n)), identity,
        [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args, Value acc) -> Value {
          if (isMax)
            return arith::MaximumFOp::create(b, acc, args[0]);
          return addToSum(b, acc, args[0]);
        });
    rewriter.replaceOp(op, buildCast(b, result, type.getElementType()));
    return success();
  }
};

/// The sums of the spatial dimensions are separate, so one dimension is folded
/// after the other, the last one first.
struct FoldPattern : OpRewritePattern<nn::FoldOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::FoldOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getResult());
    if (getTensorType(op.getInput()).getNumElements() == 0 ||
        type.getNumElements() == 0) {
      rewriter.replaceOp(op,
                         buildFilled(b, type.getShape(),
                                     getScalar(b, type.getElementType(), 0)));
      return success();
    }
    int64_t n = op.getStride().size(), lead = type.getRank() - n;
    Value value = op.getInput();
    // (l…, k0…ki, p0…pi, s…) → (l…, k0…k(i-1), p0…p(i-1), si, s…)
    for (int64_t i = n; i-- > 0;)
      value = foldLast(b, value, lead + i, lead + 2 * i + 1, op.getStride()[i],
                       op.getPadding()[i], op.getDilation()[i],
                       type.getDimSize(lead + i));
    rewriter.replaceOp(op, buildCast(b, value, type.getElementType()));
    return success();
  }

private:
  /// Dimension `element` disappears, and dimension `position` gets `size`
  /// elements.
  static Value foldLast(ImplicitLocOpBuilder &b, Value value, int64_t element,
                        int64_t position, int64_t stride, int64_t padding,
                        int64_t dilation, int64_t size) {
    RankedTensorType type = getTensorType(value);
    int64_t rank = type.getRank(), elements = type.getDimSize(element),
            counts = type.getDimSize(position);
    SmallVector<int64_t> shape(type.getShape());
    if (padding == 0 && stride == elements && size == counts * elements &&
        (dilation == 1 || elements == 1)) {
      // Windows side by side.
      auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
      permutation.erase(permutation.begin() + element);
      permutation.insert(permutation.begin() + position, element);
      shape[position] = size;
      shape.erase(shape.begin() + element);
      return buildReshape(b, buildTranspose(b, value, permutation), shape);
    }
    // Windows `stride` apart, with zeros between, before and after:
    // result[i] = Σ spread[k, i + before + padding - k * dilation]
    int64_t before = std::max<int64_t>((elements - 1) * dilation - padding, 0);
    counts =
        std::min<int64_t>(counts, llvm::divideCeil(size + padding, stride));
    shape[position] = before + padding + size;
    value = slice(b, value, position, counts);
    SmallVector<OpFoldResult> offsets(rank, b.getIndexAttr(0)),
        strides(rank, b.getIndexAttr(1));
    offsets[position] = b.getIndexAttr(before);
    strides[position] = b.getIndexAttr(stride);
    SmallVector<OpFoldResult> sizes =
        getAsIndexOpFoldResult(b.getContext(), getTensorType(value).getShape());
    Value spread = tensor::InsertSliceOp::create(
        b, value, buildFilled(b, shape, getScalar(b, type.getElementType(), 0)),
        offsets, sizes, strides);
    AffineMap map = b.getMultiDimIdentityMap(rank);
    SmallVector<AffineExpr> exprs(map.getResults());
    exprs[position] =
        exprs[position] + (before + padding) - exprs[element] * dilation;
    shape[position] = size;
    return buildReduction(
        b, Operand{spread, AffineMap::get(rank, 0, exprs, b.getContext())},
        shape, element, getScalar(b, getComputeType(type.getElementType()), 0),
        [](ImplicitLocOpBuilder &b, ArrayRef<Value> args, Value acc) {
          return addToSum(b, acc, args[0]);
        });
  }

  /// The first `count` elements along `dim`.
  static Value slice(ImplicitLocOpBuilder &b, Value value, int64_t dim,
                     int64_t count) {
    RankedTensorType type = getTensorType(value);
    if (type.getDimSize(dim) == count)
      return value;
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = count;
    SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0)),
        strides(shape.size(), b.getIndexAttr(1));
    return tensor::ExtractSliceOp::create(
        b, type.clone(shape), value, offsets,
        getAsIndexOpFoldResult(b.getContext(), shape), strides);
  }
};
} // namespace

void mlir::tp::nnlinalg::populateConvolutionDecompositions(
    RewritePatternSet &patterns) {
  patterns.add<DecomposeConvolution>(patterns.getContext());
}

void mlir::tp::nnlinalg::populateConvolutionPatterns(
    RewritePatternSet &patterns) {
  patterns.add<DepthwisePattern, WindowsPattern, PoolPattern, FoldPattern>(
      patterns.getContext());
}
