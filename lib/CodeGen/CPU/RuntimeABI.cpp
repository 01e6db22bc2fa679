//===- RuntimeABI.cpp - The runtime's C ABI in MLIR -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RuntimeABI.h"

using namespace mlir;
using namespace mlir::tp;

namespace {
/// The last four loops of attention.
enum Loop { Row, Column, Depth, Width };
} // namespace

static tprt_dtype getDtype(Type type) {
  if (type.isF32())
    return TPRT_F32;
  if (type.isF64())
    return TPRT_F64;
  if (type.isF16())
    return TPRT_F16;
  if (type.isBF16())
    return TPRT_BF16;
  switch (type.getIntOrFloatBitWidth()) {
  case 8:
    return TPRT_I8;
  case 16:
    return TPRT_I16;
  case 32:
    return TPRT_I32;
  default:
    return TPRT_I64;
  }
}

static tprt_activation
getActivation(std::optional<tprt::Activation> activation) {
  if (!activation)
    return TPRT_NO_ACTIVATION;
  switch (*activation) {
  case tprt::Activation::Relu:
    return TPRT_RELU;
  case tprt::Activation::Gelu:
    return TPRT_GELU;
  case tprt::Activation::GeluTanh:
    return TPRT_GELU_TANH;
  case tprt::Activation::Silu:
    return TPRT_SILU;
  }
  llvm_unreachable("all activations have numbers");
}

tprt_gemm_args tp::getRuntimeArguments(tprt::GemmOp op) {
  Type element = cast<MemRefType>(op.getC().getType()).getElementType();
  const int64_t none[] = {0, 0, 0};
  ArrayRef<int64_t> batch = op.getBatch(), sizes = op.getSizes(),
                    left = op.getAStrides(), right = op.getBStrides(),
                    result = op.getCStrides(),
                    addend = op.getAddendStrides().value_or(none),
                    factor = op.getFactorStrides().value_or(none);
  return {.dtype = getDtype(element),
          .accumulate = op.getAccumulate(),
          .batch0 = batch[0],
          .batch1 = batch[1],
          .m = sizes[0],
          .n = sizes[1],
          .k = sizes[2],
          .a_row = left[0],
          .a_col = left[1],
          .a_b0 = left[2],
          .a_b1 = left[3],
          .b_row = right[0],
          .b_col = right[1],
          .b_b0 = right[2],
          .b_b1 = right[3],
          .c_row = result[0],
          .c_b0 = result[1],
          .c_b1 = result[2],
          .activation = getActivation(op.getActivation()),
          .addend_row = addend[0],
          .addend_b0 = addend[1],
          .addend_b1 = addend[2],
          .factor_row = factor[0],
          .factor_b0 = factor[1],
          .factor_b1 = factor[2]};
}

/// The strides of an operand of attention by batch, aligned at the right, and
/// by two of the last four loops.
template <typename OpT>
static tprt_attention_strides getStrides(OpT op, OpOperand &operand, Loop row,
                                         Loop column) {
  AffineMap map = op.getMap(operand.getOperandNumber());
  SmallVector<int64_t> byLoop(map.getNumDims(), 0), strides;
  int64_t offset;
  auto type = cast<MemRefType>(operand.get().getType());
  (void)type.getStridesAndOffset(strides, offset);
  // A buffer without elements may have dynamic strides.
  for (auto [stride, expr] : llvm::zip_equal(strides, map.getResults()))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      byLoop[dim.getPosition()] = type.getNumElements() ? stride : 0;
  ArrayRef<int64_t> batches = ArrayRef(byLoop).drop_back(4),
                    last = ArrayRef(byLoop).take_back(4);
  tprt_attention_strides result = {
      .batch = {}, .row = last[row], .col = last[column]};
  std::copy_backward(batches.begin(), batches.end(), std::end(result.batch));
  return result;
}

/// `output` is the result of attention, or the gradient of it.
template <typename OpT>
static tprt_attention_args getAttentionArgs(OpT op, OpOperand &output) {
  Type element = cast<MemRefType>(op.getQuery().getType()).getElementType();
  SmallVector<int64_t> sizes = op.getLoopSizes();
  ArrayRef<int64_t> batches = ArrayRef(sizes).drop_back(4),
                    last = ArrayRef(sizes).take_back(4);
  tprt_attention_args args = {
      .dtype = getDtype(element),
      .mask = TPRT_NO_MASK,
      .scale = op.getScale().convertToDouble(),
      .causal = op.getCausal(),
      .rows = last[Row],
      .columns = last[Column],
      .depth = last[Depth],
      .width = last[Width],
      .batch = {},
      .query = getStrides(op, op.getQueryMutable(), Row, Depth),
      .key = getStrides(op, op.getKeyMutable(), Column, Depth),
      .value = getStrides(op, op.getValueMutable(), Column, Width),
      .mask_strides = {},
      .output = getStrides(op, output, Row, Width)};
  std::fill(std::begin(args.batch), std::end(args.batch), 1);
  std::copy_backward(batches.begin(), batches.end(), std::end(args.batch));
  if (Value mask = op.getMask()) {
    bool isAdded = cast<MemRefType>(mask.getType()).getElementType() == element;
    args.mask = isAdded ? TPRT_ADDED_MASK : TPRT_BOOLEAN_MASK;
    args.mask_strides =
        getStrides(op, *op.getMaskMutable().begin(), Row, Column);
  }
  return args;
}

tprt_attention_args tp::getRuntimeArguments(tprt::AttentionOp op) {
  return getAttentionArgs(op, op.getOutputMutable());
}

template <typename OpT>
static tprt_attention_gradient_args getGradientArgs(OpT op) {
  return {.attention = getAttentionArgs(op, op.getGradientMutable()),
          .query_gradient =
              getStrides(op, op.getQueryGradientMutable(), Row, Depth),
          .key_gradient =
              getStrides(op, op.getKeyGradientMutable(), Column, Depth),
          .value_gradient =
              getStrides(op, op.getValueGradientMutable(), Column, Width)};
}

tprt_attention_gradient_args
tp::getRuntimeArguments(tprt::AttentionGradientOp op) {
  return getGradientArgs(op);
}

tprt_attention_block_args tp::getRuntimeArguments(tprt::AttentionBlockOp op) {
  return {.attention = getAttentionArgs(op, op.getOutputMutable()),
          .lse = getStrides(op, op.getLseMutable(), Row, Column)};
}

tprt_attention_block_gradient_args
tp::getRuntimeArguments(tprt::AttentionBlockGradientOp op) {
  return {.gradient = getGradientArgs(op),
          .lse = getStrides(op, op.getLseMutable(), Row, Column),
          .delta = getStrides(op, op.getDeltaMutable(), Row, Column)};
}

tprt_convolution_args tp::getRuntimeArguments(tprt::ConvolutionOp op) {
  auto input = cast<MemRefType>(op.getInput().getType()),
       weight = cast<MemRefType>(op.getWeight().getType()),
       output = cast<MemRefType>(op.getOutput().getType());
  int64_t groups = op.getGroups();
  tprt_convolution_args args = {.dtype = getDtype(input.getElementType()),
                                .activation = getActivation(op.getActivation()),
                                .batch = input.getDimSize(0),
                                .groups = groups,
                                .in_channels = weight.getDimSize(1),
                                .out_channels = weight.getDimSize(0) / groups};
  size_t n = op.getStride().size(), missing = TPRT_CONVOLUTION_DIMS - n;
  auto fill = [&](int64_t *list, ArrayRef<int64_t> values, int64_t other) {
    std::fill_n(list, missing, other);
    llvm::copy(values.take_back(n), list + missing);
  };
  fill(args.size, input.getShape(), 1);
  fill(args.window, weight.getShape(), 1);
  fill(args.count, output.getShape(), 1);
  fill(args.stride, op.getStride(), 1);
  fill(args.padding, op.getPadding(), 0);
  fill(args.dilation, op.getDilation(), 1);
  return args;
}

tprt_grouped_gemm_args tp::getRuntimeArguments(tprt::GroupedGemmOp op) {
  using Op = tprt::GroupedGemmOp;
  SmallVector<int64_t> sizes = op.getLoopSizes();
  // The strides of an operand, which is dense, by loop.
  std::array<std::array<int64_t, 4>, 3> strides = {};
  for (auto [number, operand] : llvm::enumerate(op.getMapped())) {
    auto type = cast<MemRefType>(operand->get().getType());
    AffineMap map = op.getMap(number);
    int64_t stride = 1;
    for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
      strides[number][map.getDimPosition(dim)] = stride;
      stride *= type.getDimSize(dim);
    }
  }
  auto &[a, b, c] = strides;
  auto getElement = [](Value buffer) {
    return getDtype(cast<MemRefType>(buffer.getType()).getElementType());
  };
  bool sumsRows = op.sumsRows();
  return {.dtype = getElement(op.getA()),
          .bounds_dtype = getElement(op.getBounds()),
          .sums_rows = sumsRows,
          .groups = sizes[Op::Group],
          .m = sizes[Op::Row],
          .n = sizes[Op::Column],
          .k = sizes[Op::Depth],
          .a_row = a[Op::Row],
          .a_col = a[Op::Depth],
          .b_group = b[Op::Group],
          .b_row = b[sumsRows ? Op::Row : Op::Depth],
          .b_col = b[Op::Column],
          .c_group = c[Op::Group],
          .c_row = c[sumsRows ? Op::Depth : Op::Row]};
}

tprt_sort_args tp::getRuntimeArguments(tprt::SortOp op) {
  auto input = cast<MemRefType>(op.getInput().getType());
  ArrayRef<int64_t> shape = input.getShape();
  int64_t dim = op.getDim();
  return {.dtype = getDtype(input.getElementType()),
          .descending = op.getDescending(),
          .outer = ShapedType::getNumElements(shape.take_front(dim)),
          .size = shape[dim],
          .inner = ShapedType::getNumElements(shape.drop_front(dim + 1)),
          .count = cast<MemRefType>(op.getValues().getType()).getDimSize(dim)};
}
