//===- DecodeKernels.cu - Attention of few rows on a CUDA device ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention of few rows takes as long as reading its keys and values. They are
// therefore read once for all queries that share them, up to `numQueries`, in
// accesses of 16 bytes. The columns of a key's head are split among blocks, one
// for each multiprocessor, whose partial results the last one of them combines
// (flash-decoding, https://pytorch.org/blog/flash-decoding/).
//
// `lanes` threads together read a row of the key or the value. Each group of
// them handles other columns, with a softmax of its own. For example, 16 lanes
// read 128 elements of bf16:
//
//   warp     columns of a step         queries
//   0        0, 1    2, 3              each lane holds 8 elements of all
//   1        4, 5    6, 7              queries, and of their sums of values
//
// While a step is computed, the next ones are copied to shared memory. Each
// thread reads only what it has copied itself, so threads don't wait for each
// other until the end. Sums are in a fixed order, which depends on the number of
// splits.
//
//===----------------------------------------------------------------------===//

#include "DecodeArguments.h"
#include "DecodeSizes.h"
#include "Warps.cuh"

namespace tprt_kernels {

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
  __shared__ float weights[numQueries][maxDecodeSplits];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int last = a.numSplits - 1;
  if (warp < numQueries) {
    const float *partial =
        block.getPartial(a, lane < last ? lane : last, warp) + block.width;
    bool isSplit = lane < a.numSplits;
    float own = isSplit ? __ldcg(partial) : -INFINITY;
    float sum = isSplit ? __ldcg(partial + 1) : 0;
    float factor = getFactor(own, combineLanes(own, 1, 32, takeMaximum));
    sum = combineLanes(isSplit ? factor * sum : 0, 1, 32, add);
    weights[warp][lane] = isSplit ? factor / (sum == 0 ? 1 : sum) : 0;
  }
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < numQueries * block.width; i += blockDim.x) {
    int q = i / block.width, e = i % block.width;
    if (block.tile * numQueries + q >= a.numQueries)
      return;
    constexpr int numLoads = 16; // in flight
    float total = 0;
#pragma unroll 1
    for (int first = 0; first < a.numSplits; first += numLoads) {
      float sums[numLoads];
#pragma unroll
      for (int j = 0; j < numLoads; ++j)
        sums[j] = __ldcg(
            block.getPartial(a, first + j < last ? first + j : last, q) + e);
#pragma unroll
      for (int j = 0; j < numLoads; ++j)
        total += first + j <= last ? weights[q][first + j] * sums[j] : 0;
    }
    store(static_cast<T *>(a.output) + outputOffsets[q], e * a.args.output.col,
          total);
  }
}

/// The softmax of a lane's query: the maximum and the sum so far.
struct Softmax {
  float maximum = -INFINITY, sum = 0;
};

/// Adds a step's score to the softmax, whose lanes have every `numQueries`-th of
/// `numScores` scores. Returns the score's weight. What has been added before
/// must be multiplied by `correction`.
template <int numQueries, int numScores>
__device__ __forceinline__ float addScore(Softmax &softmax, float score,
                                          float &correction) {
  const float lowest = -INFINITY;
  float upper = takeMaximum(
      combineLanes(score, numQueries, numScores, takeMaximum), softmax.maximum);
  bool isEmpty = upper == lowest;
  correction = isEmpty ? 1 : exponential(softmax.maximum - upper);
  float weight = isEmpty && score == lowest ? 0 : exponential(score - upper);
  softmax.sum = softmax.sum * correction + weight;
  softmax.maximum = upper;
  return weight;
}

/// Combines the lanes' sums, then the groups' of a warp.
template <int lanes, int numScores, int numQueries, int size>
__device__ __forceinline__ void combineWarp(Softmax &softmax,
                                            float (&acc)[numQueries][size]) {
  softmax.sum = combineLanes(softmax.sum, numQueries, numScores, add);
#pragma unroll
  for (int bit = lanes; bit < 32; bit *= 2) {
    float upper = takeMaximum(softmax.maximum,
                              __shfl_xor_sync(wholeWarp, softmax.maximum, bit));
    float factor = getFactor(softmax.maximum, upper);
    softmax.maximum = upper;
    softmax.sum = combineLanes(softmax.sum * factor, bit, 2 * bit, add);
#pragma unroll
    for (int q = 0; q < numQueries; ++q) {
      float ofQuery = __shfl_sync(wholeWarp, factor, q, lanes);
#pragma unroll
      for (int i = 0; i < size; ++i)
        acc[q][i] = combineLanes(acc[q][i] * ofQuery, bit, 2 * bit, add);
    }
  }
}

/// What a block's warps know of each query's softmax, in shared memory.
template <int numWarps, int numQueries>
struct BlockSoftmax {
  float maxima[numWarps][numQueries], sums[numWarps][numQueries];
  float maximum[numQueries], total[numQueries]; ///< of the block
};

/// Combines the warps' sums, as far as they don't depend on each other: scales
/// those of values to the block's maximum, and writes them to `values`, by warp,
/// query and element.
template <int lanes, int numWarps, int numQueries, int size>
__device__ __forceinline__ void
combineWarps(BlockSoftmax<numWarps, numQueries> &block, const Softmax &softmax,
             const float (&acc)[numQueries][size], float *values) {
  constexpr int perQuery = lanes * size, perWarp = numQueries * perQuery;
  int thread = threadIdx.x, warp = thread / 32, lane = thread % lanes;
  if (thread % 32 < numQueries) {
    block.maxima[warp][lane] = softmax.maximum;
    block.sums[warp][lane] = softmax.sum;
  }
  __pipeline_wait_prior(0);
  __syncthreads(); // the ring is used, whose place `values` takes
  if (thread % 32 < lanes)
#pragma unroll
    for (int q = 0; q < numQueries; ++q) {
      float upper = -INFINITY;
#pragma unroll
      for (int w = 0; w < numWarps; ++w)
        upper = takeMaximum(upper, block.maxima[w][q]);
      float factor = getFactor(block.maxima[warp][q], upper);
      if (lane == 0)
        block.sums[warp][q] *= factor;
      if (thread == 0)
        block.maximum[q] = upper;
#pragma unroll
      for (int i = 0; i < size; ++i)
        values[warp * perWarp + q * perQuery + lane * size + i] =
            acc[q][i] * factor;
    }
  __syncthreads();
}

/// Writes the results, or those of the split.
template <int perQuery, typename T, int numWarps, int numQueries>
__device__ __forceinline__ void
writeResults(const DecodeArguments &a, const DecodeBlock<T, numQueries> &block,
             BlockSoftmax<numWarps, numQueries> &softmax, const float *values,
             const int64_t *outputOffsets) {
  int thread = threadIdx.x;
  if (thread < numQueries) {
    float total = 0;
#pragma unroll
    for (int w = 0; w < numWarps; ++w)
      total += softmax.sums[w][thread];
    softmax.total[thread] = total;
    if (a.numSplits > 1) {
      float *partial = block.getPartial(a, block.split, thread) + block.width;
      partial[0] = softmax.maximum[thread];
      partial[1] = total;
    }
  }
  if (a.numSplits == 1)
    __syncthreads();
#pragma unroll 1
  for (int i = thread; i < numQueries * block.width; i += numWarps * 32) {
    int q = i / block.width, e = i % block.width;
    if (block.tile * numQueries + q >= a.numQueries)
      break;
    float result = 0;
#pragma unroll
    for (int w = 0; w < numWarps; ++w)
      result += values[w * numQueries * perQuery + q * perQuery + e];
    if (a.numSplits > 1)
      block.getPartial(a, block.split, q)[e] = result;
    else
      store(static_cast<T *>(a.output) + outputOffsets[q],
            e * a.args.output.col,
            result / (softmax.total[q] == 0 ? 1 : softmax.total[q]));
  }
}

/// Publishes the split's results. Returns whether the other splits' are there.
/// The block that is last leaves the counter at 0.
template <typename T, int numQueries>
__device__ __forceinline__ bool
isLastSplit(const DecodeArguments &a, const DecodeBlock<T, numQueries> &block) {
  __shared__ bool isLast;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0)
    isLast =
        atomicInc(a.counters + block.head * a.numTiles + block.tile,
                  a.numSplits - 1) == static_cast<uint32_t>(a.numSplits - 1);
  __syncthreads();
  bool result = isLast;
  if (result)
    __threadfence();
  return result;
}

template <typename T, int lanes, int numQueries, int numStages>
__device__ void decode(const DecodeArguments &a) {
  constexpr int size = Vector<T>::size;
  using Sizes = DecodeConstants<lanes, numQueries, numStages, sizeof(T)>;
  constexpr int numColumns = Sizes::columns;
  constexpr int numScores = numColumns * numQueries;
  __shared__ int64_t queryOffsets[numQueries], outputOffsets[numQueries];
  __shared__ BlockSoftmax<Sizes::threads / 32, numQueries> shared;

  const tprt_attention_args &args = a.args;
  const DecodeBlock<T, numQueries> block(a);
  const float lowest = -INFINITY;
  int thread = threadIdx.x, lane = thread % lanes;
  int firstQuery = block.tile * numQueries;

  // The columns of this split. What is read beyond the ends isn't used.
  int64_t columns =
      args.causal && args.rows < args.columns ? args.rows : args.columns;
  int64_t first = columns * block.split / a.numSplits;
  int64_t end = columns * (block.split + 1) / a.numSplits;
  int64_t column = first + thread / lanes * numColumns;
  int64_t numSteps =
      (end - first + Sizes::columnsPerStep - 1) / Sizes::columnsPerStep;
  auto clamp = [&](int64_t at) { return at < end ? at : end - 1; };
  const T *key = static_cast<const T *>(a.key) +
                 getLoopOffset(a, args.key, 0, a.numKeyLoops, block.head) +
                 (lane * size < args.depth ? lane * size : 0);
  const T *value = static_cast<const T *>(a.value) +
                   getLoopOffset(a, args.value, 0, a.numKeyLoops, block.head) +
                   (lane * size < args.width ? lane * size : 0);

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

  // This thread's vectors of keys and values, by stage.
  auto *ring = static_cast<uint4 *>(getDynamicShared());
  auto getSlot = [&](int stage, int i) {
    return ring + (stage * 2 * numColumns + i) * Sizes::threads + thread;
  };
  int64_t toCopy = column;
  float maskAhead = getMask(toCopy + own);
  // Starts to copy the next step. Keys and values that no query of the warp
  // sees aren't read.
  auto copyStep = [&](int stage) {
    if (__any_sync(wholeWarp, !(maskAhead == lowest)))
#pragma unroll
      for (int c = 0; c < numColumns; ++c) {
        int64_t at = clamp(toCopy + c);
        __pipeline_memcpy_async(getSlot(stage, 2 * c), key + at * args.key.row,
                                16);
        __pipeline_memcpy_async(getSlot(stage, 2 * c + 1),
                                value + at * args.value.row, 16);
      }
    __pipeline_commit();
    toCopy += Sizes::columnsPerStep;
    maskAhead = getMask(toCopy + own);
  };
#pragma unroll
  for (int stage = 0; stage < numStages - 1; ++stage)
    copyStep(stage);

  // This lane's elements of the queries, and of the sums of values.
  if (thread < numQueries && firstQuery + thread < a.numQueries) {
    queryOffsets[thread] =
        getQueryOffset(a, args.query, block.head, firstQuery + thread);
    outputOffsets[thread] =
        getQueryOffset(a, args.output, block.head, firstQuery + thread);
  }
  __syncthreads();
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

  Softmax softmax;
  int stage = 0;
#pragma unroll 1
  for (int64_t step = 0; step < numSteps;
       ++step, column += Sizes::columnsPerStep) {
    copyStep(stage == 0 ? numStages - 1 : stage - 1);
    __pipeline_wait_prior(numStages - 1);
    int current = stage;
    stage = stage == numStages - 1 ? 0 : stage + 1;
    float added = getMask(column + own);
    if (!__any_sync(wholeWarp, !(added == lowest)))
      continue;
    float products[numScores];
#pragma unroll
    for (int c = 0; c < numColumns; ++c) {
      Vector<T> keys(reinterpret_cast<const T *>(getSlot(current, 2 * c)));
#pragma unroll
      for (int q = 0; q < numQueries; ++q) {
        float dot = 0;
#pragma unroll
        for (int i = 0; i < size; ++i)
          dot += query[q][i] * keys[i];
        products[c * numQueries + q] = dot;
      }
    }
    float score = sumLanes<lanes>(products);
    score = added == lowest ? lowest : score + added;

    float correction;
    float weight = addScore<numQueries, numScores>(softmax, score, correction);
    if (__any_sync(wholeWarp, correction != 1))
#pragma unroll
      for (int q = 0; q < numQueries; ++q) {
        float factor = __shfl_sync(wholeWarp, correction, q, lanes);
#pragma unroll
        for (int i = 0; i < size; ++i)
          acc[q][i] *= factor;
      }
#pragma unroll
    for (int c = 0; c < numColumns; ++c) {
      Vector<T> values(
          reinterpret_cast<const T *>(getSlot(current, 2 * c + 1)));
#pragma unroll
      for (int q = 0; q < numQueries; ++q) {
        float factor =
            __shfl_sync(wholeWarp, weight, c * numQueries + q, lanes);
#pragma unroll
        for (int i = 0; i < size; ++i)
          acc[q][i] += factor * values[i];
      }
    }
  }

  combineWarp<lanes, numScores>(softmax, acc);
  auto *values = static_cast<float *>(getDynamicShared());
  combineWarps<lanes>(shared, softmax, acc, values);
  writeResults<lanes * size>(a, block, shared, values, outputOffsets);
  if (a.numSplits > 1 && isLastSplit(a, block))
    combineSplits<T, numQueries>(a, block, outputOffsets);
}

} // namespace tprt_kernels

using namespace tprt_kernels;

// All kernels: KERNEL(the element type, its name, lanes, queries, stages).
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
  KERNEL(T, DTYPE, LANES, 4, 4)                                                \
  KERNEL(T, DTYPE, LANES, 4, 3)                                                \
  KERNEL(T, DTYPE, LANES, 8, 4)

#define TPRT_DEFINE_DECODE(T, DTYPE, LANES, QUERIES, STAGES)                   \
  extern "C" __global__ void __launch_bounds__(                                \
      DecodeConstants<LANES, QUERIES, STAGES, sizeof(T)>::threads, 1)          \
      tprt_decode_##DTYPE##_##LANES##_##QUERIES##_##STAGES(                    \
          const __grid_constant__ DecodeArguments a) {                         \
    decode<T, LANES, QUERIES, STAGES>(a);                                      \
  }
TPRT_DECODE_KERNELS(TPRT_DEFINE_DECODE)
