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
  return type.isF16() ? TPRT_F16 : TPRT_BF16;
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

tprt_attention_gradient_args
tp::getRuntimeArguments(tprt::AttentionGradientOp op) {
  return {.attention = getAttentionArgs(op, op.getGradientMutable()),
          .query_gradient =
              getStrides(op, op.getQueryGradientMutable(), Row, Depth),
          .key_gradient =
              getStrides(op, op.getKeyGradientMutable(), Column, Depth),
          .value_gradient =
              getStrides(op, op.getValueGradientMutable(), Column, Width)};
}
