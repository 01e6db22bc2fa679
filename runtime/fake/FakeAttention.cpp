//===- FakeAttention.cpp - Attention's kernels without a device -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sources of the runtime's own kernels, compiled for the emulator.
//
//===----------------------------------------------------------------------===//

#include "CudaOnHost.h"

#include "cuda/AttentionGradientKernels.cu"
#include "cuda/AttentionKernels.cu"
#include "cuda/AttentionTileKernels.cu"
#include "cuda/DecodeKernels.cu"

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt::fake;

/// Whether an operand of `rows` x `columns` by head is allocated.
static bool checkOperand(const tprt_attention_args &args,
                         const tprt_attention_strides &strides,
                         const void *data, int64_t rows, int64_t columns,
                         int64_t width) {
  int64_t last = (rows - 1) * strides.row + (columns - 1) * strides.col;
  bool isEmpty = rows == 0 || columns == 0;
  for (int d = 0; d < TPRT_ATTENTION_BATCHES; ++d) {
    last += (args.batch[d] - 1) * strides.batch[d];
    isEmpty |= args.batch[d] == 0;
  }
  return isEmpty || checkMemory(data, (last + 1) * width);
}

/// The operands that attention and its gradient share.
template <typename Arguments>
static bool checkOperands(const Arguments &a, const tprt_attention_args &args) {
  int64_t width = byteWidth(static_cast<Dtype>(args.dtype));
  bool isAllocated =
      checkOperand(args, args.query, a.query, args.rows, args.depth, width) &&
      checkOperand(args, args.key, a.key, args.columns, args.depth, width) &&
      checkOperand(args, args.value, a.value, args.columns, args.width, width);
  if (args.mask != TPRT_NO_MASK)
    isAllocated &=
        checkOperand(args, args.mask_strides, a.mask, args.rows, args.columns,
                     args.mask == TPRT_BOOLEAN_MASK ? 1 : width);
  return isAllocated;
}

template <typename Arguments>
static bool checkForward(const Arguments &a) {
  return checkOperands(a, a.args) &&
         checkOperand(a.args, a.args.output, a.output, a.args.rows,
                      a.args.width,
                      byteWidth(static_cast<Dtype>(a.args.dtype)));
}

static bool check(const AttentionArguments &a) { return checkForward(a); }

template <int numQueries>
static bool checkDecode(const DecodeArguments &a) {
  if (!checkForward(a))
    return false;
  if (a.numSplits == 1)
    return true;
  int64_t numTiles = a.numTiles;
  for (int i = 0; i < a.numKeyLoops; ++i)
    numTiles *= a.args.batch[a.loops[i]];
  return checkMemory(a.counters, numTiles * sizeof(uint32_t)) &&
         checkMemory(a.partials, numTiles * a.numSplits * numQueries *
                                     (a.args.width + 4) * sizeof(float));
}

static bool check(const AttentionGradientArguments &a) {
  const tprt_attention_args &args = a.args.attention;
  int64_t width = byteWidth(static_cast<Dtype>(args.dtype));
  int64_t numRows = args.rows;
  for (int64_t size : args.batch)
    numRows *= size;
  return checkOperands(a, args) &&
         checkOperand(args, args.output, a.gradient, args.rows, args.width,
                      width) &&
         checkOperand(args, a.args.query_gradient, a.queryGradient, args.rows,
                      args.depth, width) &&
         checkOperand(args, a.args.key_gradient, a.keyGradient, args.columns,
                      args.depth, width) &&
         checkOperand(args, a.args.value_gradient, a.valueGradient,
                      args.columns, args.width, width) &&
         (numRows == 0 ||
          checkMemory(a.statistics,
                      numRows * numStatistics *
                          std::max<int64_t>(width, sizeof(float))));
}

static bool check(const AddedMaskArguments &a) {
  constexpr int64_t width = 2, unit = 8;
  int64_t columns = (a.args.columns + unit - 1) / unit * unit;
  return checkOperand(a.args, a.args.mask_strides, a.mask, a.args.rows,
                      a.args.columns, 1) &&
         checkOperand(a.args, a.result, a.added, a.args.rows, columns, width);
}

static bool check(const HiddenRowsArguments &a) {
  constexpr int64_t width = 2;
  auto count = [&](const int64_t *strides, int64_t columns) {
    return (a.batches - 1) * strides[0] + (a.heads - 1) * strides[1] +
           (a.rows - 1) * strides[2] + (columns - 1) * strides[3] + 1;
  };
  return checkMemory(a.mask, count(a.maskStrides, a.columns) * width) &&
         checkMemory(a.output, count(a.outputStrides, a.width) * width) &&
         checkMemory(a.statistics,
                     a.batches * a.heads * a.rows * sizeof(float));
}

std::optional<CUfunc_st> fake::findAttention(const std::string &name) {
#define FIND(TYPE, KERNEL)                                                     \
  if (name == #KERNEL)                                                         \
    return makeKernel<TYPE, KERNEL>(name, check);
#define FIND_ALL(DTYPE)                                                        \
  FIND(AttentionArguments, tprt_attention_##DTYPE)                             \
  FIND(AttentionGradientArguments, tprt_attention_query_gradient_##DTYPE)      \
  FIND(AttentionGradientArguments, tprt_attention_key_gradient_##DTYPE)
  FIND_ALL(f32)
  FIND_ALL(f64)
  FIND_ALL(f16)
  FIND_ALL(bf16)
  FIND(HiddenRowsArguments, tprt_attention_hidden_rows_f16)
  FIND(HiddenRowsArguments, tprt_attention_hidden_rows_bf16)
  FIND(AddedMaskArguments, tprt_attention_added_mask_f16)
  FIND(AddedMaskArguments, tprt_attention_added_mask_bf16)
#define FIND_TILES(T, DTYPE, SIZE)                                             \
  if (name == "tprt_attention_tiles_" #DTYPE "_" #SIZE)                        \
    return makeKernel<AttentionArguments,                                      \
                      tprt_attention_tiles_##DTYPE##_##SIZE>(                  \
        name, check, TileSizes<sizeof(Traits<T>::Acc), SIZE>::sharedBytes);
  TPRT_TILE_KERNELS(FIND_TILES)
#define FIND_DECODE(T, DTYPE, LANES, QUERIES, STAGES)                          \
  if (name == "tprt_decode_" #DTYPE "_" #LANES "_" #QUERIES "_" #STAGES)       \
    return makeKernel<DecodeArguments,                                         \
                      tprt_decode_##DTYPE##_##LANES##_##QUERIES##_##STAGES>(   \
        name, checkDecode<QUERIES>,                                            \
        DecodeConstants<LANES, QUERIES, STAGES, sizeof(T)>::sharedBytes);
  TPRT_DECODE_KERNELS(FIND_DECODE)
  return std::nullopt;
}
