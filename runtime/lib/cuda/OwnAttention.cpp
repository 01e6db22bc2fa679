//===- OwnAttention.cpp - The runtime's own kernels of attention ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/OwnAttention.h"

#include "cuda/TileSizes.h"
#include "support/Division.h"

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt_kernels;

static int64_t countHeads(const tprt_attention_args &args) {
  int64_t count = 1;
  for (int64_t size : args.batch)
    count *= size;
  return count;
}

static std::string getName(const char *prefix, int64_t dtype) {
  return prefix + std::string(toString(static_cast<Dtype>(dtype)));
}

void cuda::checkAttention(const tprt_attention_args &args) {
  if (args.dtype < TPRT_F32 || args.dtype > TPRT_BF16)
    throw executionError("tprt_attention: dtype is not f32, f64, f16 or bf16");
  if (std::max(args.depth, args.width) > maxAttentionDepth)
    throw executionError("tprt_attention: heads of " +
                         std::to_string(std::max(args.depth, args.width)) +
                         " elements aren't supported on CUDA devices, the "
                         "limit is " +
                         std::to_string(maxAttentionDepth));
  int64_t numRows = countHeads(args) * std::max(args.rows, args.columns);
  if (numRows > INT32_MAX)
    throw executionError(
        "tprt_attention: " + std::to_string(numRows) +
        " rows aren't supported on CUDA devices, the limit is " +
        std::to_string(INT32_MAX));
}

void cuda::attend(Kernels &kernels, const AttentionArguments &arguments,
                  CUstream stream) {
  const tprt_attention_args &args = arguments.args;
  if (args.width == 0)
    return;
  int64_t longest = std::max(args.depth, args.width);
  auto runTiles = [&](auto sizes, const char *size) {
    kernels.launch(KernelFile::AttentionTile,
                   getName("tprt_attention_tiles_", args.dtype) + size,
                   {countHeads(args) * divideCeil(args.rows, sizes.rows),
                    attentionThreads, sizes.sharedBytes},
                   arguments, stream);
  };
  constexpr int floatBytes = sizeof(float), doubleBytes = sizeof(double);
  if (args.dtype == TPRT_F64 && longest <= 64)
    runTiles(TileSizes<doubleBytes, 64>(), "_64");
  else if (args.dtype != TPRT_F64 && longest <= 64)
    runTiles(TileSizes<floatBytes, 64>(), "_64");
  else if (args.dtype != TPRT_F64 && longest <= 128)
    runTiles(TileSizes<floatBytes, 128>(), "_128");
  else
    kernels.launch(
        KernelFile::Attention, getName("tprt_attention_", args.dtype),
        {countHeads(args) * args.rows, attentionThreads}, arguments, stream);
}

void cuda::attendBackwards(Kernels &kernels,
                           const AttentionGradientArguments &arguments,
                           CUstream stream) {
  const tprt_attention_args &args = arguments.args.attention;
  auto launch = [&](const char *prefix, int64_t count) {
    kernels.launch(KernelFile::AttentionGradient, getName(prefix, args.dtype),
                   {countHeads(args) * count, attentionThreads}, arguments,
                   stream);
  };
  launch("tprt_attention_query_gradient_", args.rows);
  launch("tprt_attention_key_gradient_", args.columns);
}

int64_t cuda::getStatisticsBytes(const tprt_attention_args &args) {
  constexpr int64_t largestBytes = sizeof(double);
  return countHeads(args) * args.rows * numStatistics * largestBytes;
}

void cuda::clearHiddenRows(Kernels &kernels,
                           const HiddenRowsArguments &arguments, Dtype dtype,
                           CUstream stream) {
  kernels.launch(
      KernelFile::Attention,
      "tprt_attention_hidden_rows_" + std::string(toString(dtype)),
      {arguments.batches * arguments.heads * arguments.rows, attentionThreads},
      arguments, stream);
}

void cuda::addMask(Kernels &kernels, const AddedMaskArguments &arguments,
                   int64_t numRows, CUstream stream) {
  kernels.launch(KernelFile::Attention,
                 getName("tprt_attention_added_mask_", arguments.args.dtype),
                 {numRows, attentionThreads}, arguments, stream);
}
