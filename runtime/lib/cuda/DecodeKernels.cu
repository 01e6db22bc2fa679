//===- DecodeKernels.cu - Attention of few rows on a CUDA device ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention of few rows takes as long as reading its keys and values. They are
// therefore read once for all queries that share them, up to `numQueries`, in
// accesses of 16 bytes, by enough blocks to keep the memory busy: the columns of
// a key's head are split among blocks, whose partial results the last one of
// them combines (flash-decoding, https://pytorch.org/blog/flash-decoding/).
//
// `lanes` threads together read a row of the key or the value. Each group of
// them handles other columns, with a softmax of its own. For example, 16 lanes
// read 128 elements of bf16:
//
//   warp     columns of a step         queries
//   0        0-3     4-7               each lane holds 8 elements of all
//   1        8-11    12-15             queries, and of their sums of values
//
// Sums are in a fixed order, which depends on the number of splits.
//
//===----------------------------------------------------------------------===//

#include "Warps.cuh"
#include "tprt/abi.h"

namespace tprt_kernels {

constexpr int decodeThreads = 128, decodeWarps = decodeThreads / 32;
constexpr int maxSplits = 64; // maxDecodeSplits of OwnKernels.h

/// DecodeArguments of OwnKernels.h.
struct DecodeArguments {
  tprt_attention_args args;
  const void *query, *key, *value, *mask;
  void *output;
  float *partials;
  uint32_t *counters;
  int32_t numSplits, numQueries, numTiles;
  int32_t numKeyLoops, numLoops;
  int32_t loops[TPRT_ATTENTION_BATCHES];
};

/// The offset of `index`, counted row-major, of the loops first ... end - 1.
__device__ int64_t getLoopOffset(const DecodeArguments &a,
                                 const tprt_attention_strides &strides,
                                 int first, int end, int index) {
  int64_t offset = 0;
#pragma unroll 1
  for (int i = end; i-- > first;) {
    int d = a.loops[i];
    auto size = static_cast<int>(a.args.batch[d]);
    offset += index % size * strides.batch[d];
    index /= size;
  }
  return offset;
}

/// The offset of a query, or of its mask or output.
__device__ int64_t getQueryOffset(const DecodeArguments &a,
                                  const tprt_attention_strides &strides,
                                  int head, int query) {
  auto rows = static_cast<int>(a.args.rows);
  return getLoopOffset(a, strides, 0, a.numKeyLoops, head) +
         getLoopOffset(a, strides, a.numKeyLoops, a.numLoops, query / rows) +
         query % rows * strides.row;
}

__device__ float takeMaximum(float a, float b) { return a > b ? a : b; }
__device__ float add(float a, float b) { return a + b; }

/// exp(a - b) for a <= b, both of which may be -inf.
__device__ float getFactor(float a, float b) {
  return a == b ? 1 : exponential(a - b);
}

template <typename T, int numQueries>
struct DecodeBlock {
  __device__ explicit DecodeBlock(const DecodeArguments &a)
      : tile(static_cast<int>(blockIdx.x) % a.numTiles),
        split(static_cast<int>(blockIdx.x) / a.numTiles % a.numSplits),
        head(static_cast<int>(blockIdx.x) / a.numTiles / a.numSplits),
        width(static_cast<int>(a.args.width)),
        partialSize(static_cast<int64_t>(width) + 4) {}

  /// Where this head's and tile's partial results of a split and a query begin:
  /// `width` sums, the maximum, and the sum of the weights.
  __device__ float *getPartial(const DecodeArguments &a, int ofSplit,
                               int query) const {
    int64_t index = int64_t(head) * a.numTiles + tile;
    return a.partials +
           ((index * a.numSplits + ofSplit) * numQueries + query) * partialSize;
  }

  int tile, split, head;
  int width;
  int64_t partialSize;
};

/// Combines the partial results of all splits.
template <typename T, int numQueries>
__device__ void combineSplits(const DecodeArguments &a,
                              const DecodeBlock<T, numQueries> &block,
                              const int64_t *outputOffsets) {
  __shared__ float weights[maxSplits][numQueries];
  constexpr int perQuery = decodeThreads / numQueries; // lanes of one warp
  static_assert(perQuery <= 32);
  int q = threadIdx.x / perQuery, lane = threadIdx.x % perQuery;
  float maximum = -INFINITY, sum = 0;
#pragma unroll 1
  for (int split = lane; split < a.numSplits; split += perQuery)
    maximum = takeMaximum(maximum,
                          __ldcg(block.getPartial(a, split, q) + block.width));
  maximum = combineLanes(maximum, 1, perQuery, takeMaximum);
#pragma unroll 1
  for (int split = lane; split < a.numSplits; split += perQuery) {
    const float *partial = block.getPartial(a, split, q) + block.width;
    weights[split][q] = getFactor(__ldcg(partial), maximum);
    sum += weights[split][q] * __ldcg(partial + 1);
  }
  sum = combineLanes(sum, 1, perQuery, add);
  float divisor = sum == 0 ? 1 : sum;
  __syncthreads();
  if (block.tile * numQueries + q >= a.numQueries)
    return;
#pragma unroll 1
  for (int e = 4 * lane; e < block.width; e += 4 * perQuery) {
    float4 total = {0, 0, 0, 0};
#pragma unroll 8
    for (int split = 0; split < a.numSplits; ++split) {
      float4 values = __ldcg(
          reinterpret_cast<const float4 *>(block.getPartial(a, split, q) + e));
      float weight = weights[split][q];
      total.x += weight * values.x;
      total.y += weight * values.y;
      total.z += weight * values.z;
      total.w += weight * values.w;
    }
    T *output = static_cast<T *>(a.output) + outputOffsets[q];
    int64_t stride = a.args.output.col;
    store(output, e * stride, total.x / divisor);
    store(output, (e + 1) * stride, total.y / divisor);
    store(output, (e + 2) * stride, total.z / divisor);
    store(output, (e + 3) * stride, total.w / divisor);
  }
}

template <typename T, int lanes, int numQueries>
__device__ void decode(const DecodeArguments &a) {
  constexpr int size = Vector<T>::size;
  constexpr int numColumns = lanes / numQueries < 4 ? lanes / numQueries : 4;
  constexpr int numScores = numColumns * numQueries;
  constexpr int columnsPerStep = decodeThreads / lanes * numColumns;
  __shared__ int64_t queryOffsets[numQueries], outputOffsets[numQueries];
  __shared__ float maxima[decodeWarps][numQueries],
      sums[decodeWarps][numQueries];
  __shared__ float values[decodeWarps][numQueries][lanes * size];
  __shared__ bool isLast;

  const tprt_attention_args &args = a.args;
  const DecodeBlock<T, numQueries> block(a);
  const float lowest = -INFINITY;
  int warp = threadIdx.x / 32, lane = threadIdx.x % lanes;
  int firstQuery = block.tile * numQueries, thread = threadIdx.x;
  if (thread < numQueries && firstQuery + thread < a.numQueries) {
    queryOffsets[thread] =
        getQueryOffset(a, args.query, block.head, firstQuery + thread);
    outputOffsets[thread] =
        getQueryOffset(a, args.output, block.head, firstQuery + thread);
  }
  __syncthreads();

  // This lane's elements of the queries, and of the sums of values.
  float query[numQueries][size], acc[numQueries][size];
#pragma unroll
  for (int q = 0; q < numQueries; ++q)
#pragma unroll
    for (int i = 0; i < size; ++i) {
      int d = lane * size + i;
      query[q][i] = 0;
      acc[q][i] = 0;
      if (firstQuery + q < a.numQueries && d < args.depth)
        query[q][i] = load(static_cast<const T *>(a.query) + queryOffsets[q],
                           d * args.query.col) *
                      static_cast<float>(args.scale);
    }
  const T *key = static_cast<const T *>(a.key) +
                 getLoopOffset(a, args.key, 0, a.numKeyLoops, block.head);
  const T *value = static_cast<const T *>(a.value) +
                   getLoopOffset(a, args.value, 0, a.numKeyLoops, block.head);

  key += lane * size < args.depth ? lane * size : 0;
  value += lane * size < args.width ? lane * size : 0;

  // The columns of this split.
  int64_t columns =
      args.causal && args.rows < args.columns ? args.rows : args.columns;
  int64_t first = columns * block.split / a.numSplits;
  int64_t end = columns * (block.split + 1) / a.numSplits;
  int64_t column = first + threadIdx.x / lanes * numColumns;

  auto clamp = [&](int64_t at) { return at < end ? at : end - 1; };

  // This lane's score of each step: its column and its query.
  int own = lane % numScores / numQueries;
  int ownQuery = firstQuery + lane % numQueries;
  int64_t ownEnd = ownQuery < a.numQueries ? end : 0, mask = 0;
  int64_t numSeen = ownQuery % static_cast<int>(args.rows) + 1;
  if (args.causal && numSeen < ownEnd)
    ownEnd = numSeen;
  if (ownQuery < a.numQueries && args.mask != TPRT_NO_MASK)
    mask = getQueryOffset(a, args.mask_strides, block.head, ownQuery);
  // What is added to the score; -inf if it isn't seen.
  auto getMask = [&](int64_t at) {
    if (at >= ownEnd)
      return lowest;
    int64_t offset = mask + at * args.mask_strides.col;
    if (args.mask == TPRT_ADDED_MASK)
      return static_cast<float>(load(static_cast<const T *>(a.mask), offset));
    return args.mask == TPRT_BOOLEAN_MASK &&
                   !static_cast<const uint8_t *>(a.mask)[offset]
               ? lowest
               : 0.0f;
  };

  float maximum = lowest, sum = 0;
  float nextMask = getMask(column + own);
  int64_t numSteps = (end - first + columnsPerStep - 1) / columnsPerStep;
#pragma unroll 1
  for (int64_t step = 0; step < numSteps; ++step, column += columnsPerStep) {
    float added = nextMask;
    nextMask = getMask(column + columnsPerStep + own);
    // Keys and values that no query of the warp sees aren't read.
    if (!__any_sync(wholeWarp, !(added == lowest)))
      continue;
    // Loads are unconditional, so that all of them are in flight together. What
    // they read beyond the ends isn't used.
    Vector<T> keys[numColumns], rows[numColumns];
#pragma unroll
    for (int c = 0; c < numColumns; ++c)
      keys[c] = Vector<T>(key + clamp(column + c) * args.key.row);
#pragma unroll
    for (int c = 0; c < numColumns; ++c)
      rows[c] = Vector<T>(value + clamp(column + c) * args.value.row);
    float products[numScores];
#pragma unroll
    for (int c = 0; c < numColumns; ++c)
#pragma unroll
      for (int q = 0; q < numQueries; ++q) {
        float dot = 0;
#pragma unroll
        for (int i = 0; i < size; ++i)
          dot += query[q][i] * keys[c][i];
        products[c * numQueries + q] = dot;
      }
    float score = sumLanes<lanes>(products);
    score = added == lowest ? lowest : score + added;

    // The softmax's maximum and sum so far, of this lane's query.
    float highest = takeMaximum(
        combineLanes(score, numQueries, numScores, takeMaximum), maximum);
    bool isEmpty = highest == lowest;
    float correction = isEmpty ? 1 : exponential(maximum - highest);
    float weight =
        isEmpty && score == lowest ? 0 : exponential(score - highest);
    sum = sum * correction + weight;
    maximum = highest;
    if (__any_sync(wholeWarp, correction != 1))
#pragma unroll
      for (int q = 0; q < numQueries; ++q) {
        float factor = __shfl_sync(wholeWarp, correction, q, lanes);
#pragma unroll
        for (int i = 0; i < size; ++i)
          acc[q][i] *= factor;
      }
#pragma unroll
    for (int c = 0; c < numColumns; ++c)
#pragma unroll
      for (int q = 0; q < numQueries; ++q) {
        float factor =
            __shfl_sync(wholeWarp, weight, c * numQueries + q, lanes);
#pragma unroll
        for (int i = 0; i < size; ++i)
          acc[q][i] += factor * rows[c][i];
      }
  }

  // Combine the lanes' sums, then the groups' of a warp, then the warps'.
  sum = combineLanes(sum, numQueries, numScores, add);
#pragma unroll
  for (int mask = lanes; mask < 32; mask *= 2) {
    float highest =
        takeMaximum(maximum, __shfl_xor_sync(wholeWarp, maximum, mask));
    float factor = getFactor(maximum, highest);
    maximum = highest;
    sum = combineLanes(sum * factor, mask, 2 * mask, add);
#pragma unroll
    for (int q = 0; q < numQueries; ++q) {
      float ofQuery = __shfl_sync(wholeWarp, factor, q, lanes);
#pragma unroll
      for (int i = 0; i < size; ++i)
        acc[q][i] = combineLanes(acc[q][i] * ofQuery, mask, 2 * mask, add);
    }
  }
  if (threadIdx.x % 32 < lanes)
#pragma unroll
    for (int q = 0; q < numQueries; ++q)
#pragma unroll
      for (int i = 0; i < size; ++i)
        values[warp][q][lane * size + i] = acc[q][i];
  if (threadIdx.x % 32 < numQueries) {
    maxima[warp][lane] = maximum;
    sums[warp][lane] = sum;
  }
  __syncthreads();
#pragma unroll 1
  for (int q = 0; q < numQueries; ++q) {
    if (firstQuery + q >= a.numQueries)
      break;
    float highest = lowest, total = 0, factors[decodeWarps];
#pragma unroll
    for (int w = 0; w < decodeWarps; ++w)
      highest = takeMaximum(highest, maxima[w][q]);
#pragma unroll
    for (int w = 0; w < decodeWarps; ++w) {
      factors[w] = getFactor(maxima[w][q], highest);
      total += factors[w] * sums[w][q];
    }
    float divisor = total == 0 ? 1 : total;
    float *partial =
        a.numSplits > 1 ? block.getPartial(a, block.split, q) : nullptr;
#pragma unroll 1
    for (int e = threadIdx.x; e < block.width; e += decodeThreads) {
      float result = 0;
#pragma unroll
      for (int w = 0; w < decodeWarps; ++w)
        result += factors[w] * values[w][q][e];
      if (a.numSplits == 1)
        store(static_cast<T *>(a.output) + outputOffsets[q],
              e * args.output.col, result / divisor);
      else
        partial[e] = result;
    }
    if (a.numSplits > 1 && threadIdx.x == 0) {
      partial[block.width] = highest;
      partial[block.width + 1] = total;
    }
  }
  if (a.numSplits == 1)
    return;

  // The block that is done last combines all. It leaves the counter at 0.
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0)
    isLast =
        atomicInc(a.counters + block.head * a.numTiles + block.tile,
                  a.numSplits - 1) == static_cast<uint32_t>(a.numSplits - 1);
  __syncthreads();
  if (!isLast)
    return;
  __threadfence();
  combineSplits<T, numQueries>(a, block, outputOffsets);
}

} // namespace tprt_kernels

using namespace tprt_kernels;

// All kernels: KERNEL(the element type, its name, lanes, queries).
#define TPRT_DECODE_KERNELS(KERNEL)                                            \
  TPRT_DECODE_LANES(KERNEL, float, f32, 16)                                    \
  TPRT_DECODE_LANES(KERNEL, float, f32, 32)                                    \
  TPRT_DECODE_LANES(KERNEL, __half, f16, 8)                                    \
  TPRT_DECODE_LANES(KERNEL, __half, f16, 16)                                   \
  TPRT_DECODE_LANES(KERNEL, __half, f16, 32)                                   \
  TPRT_DECODE_LANES(KERNEL, __nv_bfloat16, bf16, 8)                            \
  TPRT_DECODE_LANES(KERNEL, __nv_bfloat16, bf16, 16)                           \
  TPRT_DECODE_LANES(KERNEL, __nv_bfloat16, bf16, 32)
#define TPRT_DECODE_LANES(KERNEL, T, DTYPE, LANES)                             \
  KERNEL(T, DTYPE, LANES, 4)                                                   \
  KERNEL(T, DTYPE, LANES, 8)

#define TPRT_DEFINE_DECODE(T, DTYPE, LANES, QUERIES)                           \
  extern "C" __global__ void __launch_bounds__(decodeThreads, 16 / QUERIES)    \
      tprt_decode_##DTYPE##_##LANES##_##QUERIES(                               \
          const __grid_constant__ DecodeArguments a) {                         \
    decode<T, LANES, QUERIES>(a);                                              \
  }
TPRT_DECODE_KERNELS(TPRT_DEFINE_DECODE)
