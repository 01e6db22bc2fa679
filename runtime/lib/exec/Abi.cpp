//===- Abi.cpp - The C functions that programs call -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exceptions end here: each call keeps the error's text in the rank and returns
// a status.
//
//===----------------------------------------------------------------------===//

#include "cpu/Attention.h"
#include "cpu/Convolution.h"
#include "cpu/GroupedGemm.h"
#include "cpu/Sort.h"
#include "exec/Rank.h"
#include "support/Parallel.h"

#include <algorithm>

using namespace tprt;

static int32_t fail(tprt_rank &rank, int32_t status, const char *message) {
  if (rank.error.empty())
    rank.error = message;
  return status;
}

/// Runs `body` and turns exceptions into a status.
template <typename Body>
static int32_t guarded(tprt_rank &rank, Body body) noexcept {
  try {
    body();
    return TPRT_OK;
  } catch (const AbortedError &error) {
    rank.isAborted = true;
    return fail(rank, TPRT_ABORTED, error.what());
  } catch (const Error &error) {
    return fail(rank, TPRT_INVALID_ARGUMENT, error.what());
  } catch (const std::exception &error) {
    return fail(rank, TPRT_INTERNAL, error.what());
  }
}

/// Enters collective `own` of the program, and returns its number in the
/// manifest. `what` names the call for errors.
static int64_t enterCollective(tprt_rank &rank, int32_t own, const char *what) {
  const auto &[first, count] = rank.program->collectives;
  if (own < 0 || own >= count)
    throw executionError(std::string("the program ") + what + " collective " +
                         std::to_string(own) + ", but its manifest lists " +
                         std::to_string(count));
  rank.lastCollective = first + own;
  rank.isInCollective = true;
  return rank.lastCollective;
}

/// Leaves collective `id` when it is complete.
static void leaveCollective(tprt_rank &rank, int64_t id, int64_t bytes) {
  rank.isInCollective = false;
  if (rank.flight)
    rank.flight->end(id, bytes);
  ++rank.counts[id].calls;
  rank.counts[id].bytes += bytes;
}

int32_t tprt_collective(tprt_rank *ctx, int32_t own, const void *src,
                        void *dst) {
  return guarded(*ctx, [&] {
    int64_t id = enterCollective(*ctx, own, "runs");
    if (ctx->flight)
      ctx->flight->begin(id);
    if (ctx->recorder)
      ctx->recorder->beginCollective(id);
    int64_t bytes = ctx->communicator.run(
        id, static_cast<const std::byte *>(src), static_cast<std::byte *>(dst));
    if (ctx->recorder)
      ctx->recorder->endCollective(bytes);
    leaveCollective(*ctx, id, bytes);
  });
}

int32_t tprt_collective_start(tprt_rank *ctx, int32_t own, const void *src,
                              void *dst) {
  return guarded(*ctx, [&] {
    int64_t id = enterCollective(*ctx, own, "starts");
    const Collective &collective = ctx->manifest.collectives[id];
    if (!collective.isStarted)
      throw executionError("the program starts it, but its manifest doesn't "
                           "say that it is started");
    if (ctx->isUnderWay[id])
      throw executionError("the program starts it again before it has waited "
                           "for it");
    if (src == dst && collective.kind != CollectiveKind::AllReduce)
      throw executionError("only an all_reduce can be started in place");
    if (ctx->flight)
      ctx->flight->begin(id);
    if (ctx->recorder)
      ctx->recorder->startCollective(id);
    ctx->communicator.start(id, static_cast<const std::byte *>(src),
                            static_cast<std::byte *>(dst));
    ctx->isUnderWay[id] = true;
    ctx->isInCollective = false;
  });
}

int32_t tprt_collective_wait(tprt_rank *ctx, int32_t own) {
  return guarded(*ctx, [&] {
    int64_t id = enterCollective(*ctx, own, "waits for");
    if (!ctx->isUnderWay[id])
      throw executionError("the program waits for it, but hasn't started it");
    if (ctx->recorder)
      ctx->recorder->beginWait(id);
    int64_t bytes = ctx->communicator.wait(id);
    if (ctx->recorder)
      ctx->recorder->endCollective(bytes, ctx->communicator.getStream(id));
    ctx->isUnderWay[id] = false;
    leaveCollective(*ctx, id, bytes);
  });
}

int32_t tprt_gemm(tprt_rank *ctx, const tprt_gemm_args *args, const void *a,
                  const void *b, void *c, const void *bias, const void *addend,
                  const void *factor) {
  return guarded(*ctx, [&] {
    GemmOperands operands{a, b, c, bias, addend, factor};
    if (ctx->stream)
      ctx->stream->gemm(*args, operands);
    else
      gemm(*args, operands, ctx->gemm);
  });
}

int32_t tprt_attention(tprt_rank *ctx, const tprt_attention_args *args,
                       const void *query, const void *key, const void *value,
                       const void *mask, void *output) {
  return guarded(*ctx, [&] {
    if (ctx->stream)
      ctx->stream->attention(*args, query, key, value, mask, output);
    else
      attention(*args, query, key, value, mask, output, ctx->gemm);
  });
}

int32_t tprt_attention_gradient(tprt_rank *ctx,
                                const tprt_attention_gradient_args *args,
                                const void *query, const void *key,
                                const void *value, const void *mask,
                                const void *gradient, void *queryGradient,
                                void *keyGradient, void *valueGradient) {
  return guarded(*ctx, [&] {
    if (ctx->stream)
      ctx->stream->attentionGradient(*args, query, key, value, mask, gradient,
                                     queryGradient, keyGradient, valueGradient);
    else
      attentionGradient(*args, query, key, value, mask, gradient, queryGradient,
                        keyGradient, valueGradient, ctx->gemm);
  });
}

/// For calls that only programs for the host make.
static void requireHost(const tprt_rank &rank) {
  if (rank.stream)
    throw executionError("the program makes a call for the host, but its "
                         "manifest says that it is for a device");
}

int32_t tprt_attention_block(tprt_rank *ctx,
                             const tprt_attention_block_args *args,
                             const void *query, const void *key,
                             const void *value, const void *mask,
                             const int64_t *offset, void *output, void *lse) {
  return guarded(*ctx, [&] {
    requireHost(*ctx);
    attentionBlock(*args, query, key, value, mask, offset, output, lse,
                   ctx->gemm);
  });
}

int32_t tprt_attention_block_gradient(
    tprt_rank *ctx, const tprt_attention_block_gradient_args *args,
    const void *query, const void *key, const void *value, const void *mask,
    const int64_t *offset, const void *gradient, const void *lse,
    const void *delta, void *queryGradient, void *keyGradient,
    void *valueGradient) {
  return guarded(*ctx, [&] {
    requireHost(*ctx);
    attentionBlockGradient(*args, query, key, value, mask, offset, gradient,
                           lse, delta, queryGradient, keyGradient,
                           valueGradient, ctx->gemm);
  });
}

int32_t tprt_convolution(tprt_rank *ctx, const tprt_convolution_args *args,
                         const void *input, const void *weight,
                         const void *scale, const void *bias,
                         const void *addend, void *output) {
  return guarded(*ctx, [&] {
    requireHost(*ctx);
    convolution(*args, {input, weight, scale, bias, addend, output}, ctx->gemm);
  });
}

int32_t tprt_grouped_gemm(tprt_rank *ctx, const tprt_grouped_gemm_args *args,
                          const void *a, const void *b, const void *bounds,
                          void *c) {
  return guarded(*ctx, [&] {
    requireHost(*ctx);
    groupedGemm(*args, a, b, bounds, c, ctx->gemm);
  });
}

int32_t tprt_sort(tprt_rank *ctx, const tprt_sort_args *args, const void *input,
                  void *values, void *indices) {
  return guarded(*ctx, [&] {
    requireHost(*ctx);
    sort(*args, input, values, static_cast<int64_t *>(indices),
         ctx->gemm.getThreads());
  });
}

/// Less work isn't worth waking a thread for, or splitting off a part.
static constexpr int64_t minNanosecondsOfThread = 20000;
static constexpr int64_t minNanosecondsOfPart = 5000;
/// Several parts per thread: if a thread is delayed, the others take its
/// remaining parts.
static constexpr int64_t partsPerThread = 4;

int32_t tprt_parallel(tprt_rank *ctx, tprt_range_function kernel,
                      const uint64_t *arguments, int64_t count,
                      int64_t nanoseconds) {
  int64_t numThreads =
      std::min(ctx->gemm.getThreads(), nanoseconds / minNanosecondsOfThread);
  if (numThreads <= 1) {
    kernel(arguments, 0, count);
    return TPRT_OK;
  }
  return guarded(*ctx, [&] {
    int64_t numParts =
        std::min({count, numThreads * partsPerThread,
                  std::max(numThreads, nanoseconds / minNanosecondsOfPart)});
    parallelFor(numParts, numThreads, [&](int64_t part) {
      kernel(arguments, count * part / numParts, count * (part + 1) / numParts);
    });
  });
}

/// The rank's stream, for a program for devices.
static DeviceStream &getStream(tprt_rank &rank) {
  if (!rank.stream)
    throw executionError("the program calls a device, but its manifest says "
                         "that it is for the host");
  return *rank.stream;
}

int32_t tprt_launch(tprt_rank *ctx, int32_t kernel,
                    const tprt_launch_args *args, void *const *arguments) {
  return guarded(*ctx,
                 [&] { getStream(*ctx).launch(kernel, *args, arguments); });
}

int32_t tprt_copy(tprt_rank *ctx, void *dst, const void *src, int64_t bytes) {
  return guarded(*ctx, [&] { getStream(*ctx).copy(dst, src, bytes); });
}

int32_t tprt_fill(tprt_rank *ctx, void *dst, uint64_t pattern, int32_t width,
                  int64_t count) {
  return guarded(*ctx,
                 [&] { getStream(*ctx).fill(dst, pattern, width, count); });
}

void *tprt_error_record(tprt_rank *ctx) {
  void *record = nullptr;
  guarded(*ctx, [&] { record = getStream(*ctx).getErrorRecord(); });
  return record;
}

void tprt_mark(tprt_rank *ctx, int32_t op) {
  if (ctx->recorder)
    guarded(*ctx, [&] {
      const auto &[first, count] = ctx->program->ops;
      if (op < 0 || op >= count)
        throw executionError("the program runs op " + std::to_string(op) +
                             ", but its manifest lists " +
                             std::to_string(count));
      ctx->recorder->beginOp(first + op);
    });
}

int32_t tprt_index_error(tprt_rank *ctx, const char *what, int64_t index,
                         int64_t bound) {
  guarded(*ctx, [&] {
    throw executionError(std::string(what) + ": index " +
                         std::to_string(index) + " is out of range [0, " +
                         std::to_string(bound) + ")");
  });
  return TPRT_INDEX_OUT_OF_RANGE;
}
