//===- DecodePlan.cpp - Attention of few rows on a CUDA device ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/DecodePlan.h"

#include "cuda/DecodeSizes.h"
#include "support/Division.h"
#include "tprt/Dtype.h"

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt_kernels;

static constexpr int64_t maxRows = 8;
static constexpr int64_t vectorBytes = 16; // that a thread reads at once

/// Whether the rows of the key or the value can be read in vectors of `size`
/// elements.
static bool hasVectors(const tprt_attention_args &args,
                       const tprt_attention_strides &strides, int64_t size) {
  if (strides.col != 1 || (args.columns > 1 && strides.row % size != 0))
    return false;
  for (int d = 0; d < TPRT_ATTENTION_BATCHES; ++d)
    if (args.batch[d] > 1 && strides.batch[d] % size != 0)
      return false;
  return true;
}

std::optional<DecodePlan> cuda::planDecode(const tprt_attention_args &args,
                                           const Context &context) {
  if (args.dtype != TPRT_F32 && args.dtype != TPRT_F16 &&
      args.dtype != TPRT_BF16)
    return std::nullopt;
  int64_t size = vectorBytes / byteWidth(static_cast<Dtype>(args.dtype));
  int64_t longest = std::max(args.depth, args.width);
  if (args.rows > maxRows || longest > 32 * size || args.depth % size != 0 ||
      args.width % size != 0 ||
      std::min({args.rows, args.columns, args.depth, args.width}) == 0 ||
      std::find(std::begin(args.batch), std::end(args.batch), 0) !=
          std::end(args.batch) ||
      !hasVectors(args, args.key, size) || !hasVectors(args, args.value, size))
    return std::nullopt;

  DecodePlan plan = {};
  DecodeArguments &arguments = plan.arguments;
  arguments.args = args;
  int64_t numKeys = 1, numQueries = args.rows;
  auto isShared = [&](int d) {
    return args.key.batch[d] == 0 && args.value.batch[d] == 0;
  };
  for (bool takesShared : {false, true}) {
    for (int d = 0; d < TPRT_ATTENTION_BATCHES; ++d) {
      if (args.batch[d] == 1 || isShared(d) != takesShared)
        continue;
      arguments.loops[arguments.numLoops++] = d;
      (takesShared ? numQueries : numKeys) *= args.batch[d];
    }
    if (!takesShared)
      arguments.numKeyLoops = arguments.numLoops;
  }
  int32_t fewestLanes = args.dtype == TPRT_F32 ? 16 : 8;
  for (plan.lanes = fewestLanes; plan.lanes * size < longest;)
    plan.lanes *= 2;
  plan.queries = numQueries <= 4 ? 4 : 8;
  arguments.numQueries = static_cast<int32_t>(numQueries);
  arguments.numTiles =
      static_cast<int32_t>(divideCeil(numQueries, plan.queries));

  // As many stages as fit into the device's shared memory.
  DecodeSizes sizes = {};
  auto fits = [&] {
    sizes = getDecodeSizes(plan.lanes, plan.queries, plan.stages,
                           byteWidth(static_cast<Dtype>(args.dtype)));
    return sizes.sharedBytes + maxDecodeStaticBytes <=
           context.getMaxSharedBytes();
  };
  for (plan.stages = maxDecodeStages; !fits(); --plan.stages)
    if (plan.stages == getFewestDecodeStages(plan.queries))
      return std::nullopt;
  plan.blocks.threads = sizes.threads;
  plan.blocks.sharedBytes = sizes.sharedBytes;

  // A block for each multiprocessor, so that all of them end together.
  int64_t columns =
      args.causal ? std::min(args.rows, args.columns) : args.columns;
  int64_t splits = std::min(
      {context.getNumProcessors() / (numKeys * arguments.numTiles),
       divideCeil(columns, sizes.columnsPerStep), int64_t(maxDecodeSplits)});
  splits = std::max<int64_t>(splits, 1);
  arguments.numSplits = static_cast<int32_t>(splits);
  plan.blocks.count = numKeys * arguments.numTiles * splits;
  if (plan.blocks.count > INT32_MAX)
    return std::nullopt;
  if (splits > 1) {
    int64_t numTiles = numKeys * arguments.numTiles;
    plan.counterBytes = numTiles * static_cast<int64_t>(sizeof(uint32_t));
    // Of each query, and with its maximum and sum, which take a vector.
    plan.partialBytes = numTiles * splits * plan.queries * (args.width + 4) *
                        static_cast<int64_t>(sizeof(float));
  }
  return plan;
}

void cuda::decode(Kernels &kernels, const DecodePlan &plan,
                  const DecodeArguments &arguments, CUstream stream) {
  std::string dtype(toString(static_cast<Dtype>(arguments.args.dtype)));
  kernels.launch(KernelFile::Decode,
                 "tprt_decode_" + dtype + "_" + std::to_string(plan.lanes) +
                     "_" + std::to_string(plan.queries) + "_" +
                     std::to_string(plan.stages),
                 plan.blocks, arguments, stream);
}
