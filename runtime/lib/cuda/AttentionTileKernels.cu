//===- AttentionTileKernels.cu - Attention in tiles on a CUDA device ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block of threads computes a tile of rows of the output, in tiles of
// columns (FlashAttention, https://arxiv.org/abs/2205.14135), without tensor
// cores. Queries, keys and weights of a tile lie in shared memory; values take
// the place of keys. In both products a thread computes a tile of its own in
// registers. Of the scores, thread (y, x) of 8 x 16 has rows y, y + 8, ... and
// columns x, x + 16, ...; of the output, elements 4 x ... 4 x + 3 of every 64.
// This way no two threads of a quarter of a warp read the same bank, as rows are
// padded by four elements.
//
//===----------------------------------------------------------------------===//

#include "AttentionKernels.cuh"
#include "TileSizes.h"
#include "Warps.cuh"

namespace tprt_kernels {

/// Four elements, in as few accesses as possible.
template <typename Acc>
struct alignas(16) Four {
  Acc x, y, z, w;
};
template <typename Acc>
__device__ Four<Acc> loadFour(const Acc *data) {
  return *reinterpret_cast<const Four<Acc> *>(data);
}

template <typename Acc>
__device__ void storeFour(Acc *data, Acc x, Acc y, Acc z, Acc w) {
  *reinterpret_cast<Four<Acc> *>(data) = {x, y, z, w};
}

/// Copies rows of an operand to shared memory, `numRows` of `count` elements.
/// The rest of the tile becomes 0. All loads are in flight together if rows
/// consist of vectors.
template <int tileRows, int size, typename T, typename Acc>
__device__ void loadTile(Acc *tile, const T *data,
                         const tprt_attention_strides &strides, int64_t numRows,
                         int64_t count) {
  constexpr int ofVector = Vector<T>::size, perRow = size / ofVector;
  constexpr int numLoads = tileRows * perRow / attentionThreads;
  constexpr int pitch = size + 4;
  if (strides.col == 1 && strides.row % ofVector == 0 && count > 0 &&
      count % ofVector == 0 && reinterpret_cast<uintptr_t>(data) % 16 == 0) {
    Vector<T> vectors[numLoads];
    auto getRow = [](int i) {
      return (threadIdx.x + i * attentionThreads) / perRow;
    };
    int d = threadIdx.x % perRow * ofVector;
    static_assert(attentionThreads % perRow == 0);
    // Loads are unconditional, so that none waits for another.
#pragma unroll
    for (int i = 0; i < numLoads; ++i) {
      int64_t row = getRow(i) < numRows ? getRow(i) : numRows - 1;
      vectors[i] = Vector<T>(data + row * strides.row + (d < count ? d : 0));
    }
#pragma unroll
    for (int i = 0; i < numLoads; ++i) {
      if (getRow(i) >= numRows || d >= count)
        vectors[i] = Vector<T>();
      Acc *at = tile + getRow(i) * pitch + d;
      if constexpr (ofVector < 4) { // f64
        at[0] = vectors[i][0];
        at[1] = vectors[i][1];
      } else {
#pragma unroll
        for (int e = 0; e < ofVector; e += 4)
          storeFour(at + e, vectors[i][e], vectors[i][e + 1], vectors[i][e + 2],
                    vectors[i][e + 3]);
      }
    }
    return;
  }
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll 4
  for (int row = warp; row < tileRows; row += attentionThreads / 32)
#pragma unroll
    for (int d = lane; d < size; d += 32)
      tile[row * pitch + d] =
          row < numRows && d < count
              ? load(data, row * strides.row + d * strides.col)
              : Acc(0);
}

/// The rows of a thread, as far as the columns have been added: the softmax's
/// maxima and sums, and the sums of values.
template <typename Acc, int numRows, int numChunks>
struct TileRows {
  Acc maxima[numRows], sums[numRows], acc[numRows][numChunks][4];

  __device__ __forceinline__ TileRows() {
#pragma unroll
    for (int i = 0; i < numRows; ++i) {
      maxima[i] = -INFINITY;
      sums[i] = 0;
#pragma unroll
      for (int c = 0; c < numChunks; ++c)
        acc[i][c][0] = acc[i][c][1] = acc[i][c][2] = acc[i][c][3] = 0;
    }
  }
};

/// Adds the products of queries and keys to the thread's scores.
template <int pitch, typename Acc, int numRows, int numColumns>
__device__ __forceinline__ void multiplyKeys(Acc (&scores)[numRows][numColumns],
                                             const Acc *query, const Acc *keys,
                                             int depth) {
  int x = threadIdx.x % 16, y = threadIdx.x / 16;
#pragma unroll 1
  for (int d = 0; d < depth; d += 4) {
    Four<Acc> others[numColumns];
#pragma unroll
    for (int j = 0; j < numColumns; ++j)
      others[j] = loadFour(keys + (x + 16 * j) * pitch + d);
#pragma unroll
    for (int i = 0; i < numRows; ++i) {
      Four<Acc> own = loadFour(query + (y + 8 * i) * pitch + d);
#pragma unroll
      for (int j = 0; j < numColumns; ++j)
        scores[i][j] += own.x * others[j].x + own.y * others[j].y +
                        own.z * others[j].z + own.w * others[j].w;
    }
  }
}

/// Adds a row's scores to its softmax, and writes their weights, of every 16th
/// column.
template <typename Acc, int numRows, int numColumns, int numChunks>
__device__ __forceinline__ void
addScores(TileRows<Acc, numRows, numChunks> &rows, int i,
          const Acc (&scores)[numColumns], Acc *weights) {
  const Acc lowest = -INFINITY;
  Acc highest = rows.maxima[i];
#pragma unroll
  for (int j = 0; j < numColumns; ++j)
    highest = scores[j] > highest ? scores[j] : highest;
  highest =
      combineLanes(highest, 1, 16, [](Acc a, Acc b) { return a > b ? a : b; });
  bool isEmpty = highest == lowest;
  Acc correction = isEmpty ? Acc(1) : exponential(rows.maxima[i] - highest);
  rows.maxima[i] = highest;
  rows.sums[i] *= correction;
#pragma unroll
  for (int j = 0; j < numColumns; ++j) {
    Acc weight = isEmpty && scores[j] == lowest
                     ? Acc(0)
                     : exponential(scores[j] - highest);
    rows.sums[i] += weight;
    weights[16 * j] = weight;
  }
#pragma unroll
  for (int c = 0; c < numChunks; ++c)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      rows.acc[i][c][e] *= correction;
}

/// Adds the products of weights and values.
template <typename Sizes, typename Acc, int numRows, int numChunks>
__device__ __forceinline__ void
addValues(TileRows<Acc, numRows, numChunks> &rows, const Acc *weights,
          const Acc *tile) {
  int x = threadIdx.x % 16, y = threadIdx.x / 16;
#pragma unroll 1
  for (int j = 0; j < Sizes::columns; j += 4) {
    Four<Acc> own[numRows];
#pragma unroll
    for (int i = 0; i < numRows; ++i)
      own[i] = loadFour(weights + (y + 8 * i) * Sizes::weightsPitch + j);
#pragma unroll
    for (int c = 0; c < numChunks; ++c) {
      const Acc *values = tile + j * Sizes::pitch + 64 * c + 4 * x;
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        Four<Acc> value = loadFour(values + n * Sizes::pitch);
#pragma unroll
        for (int i = 0; i < numRows; ++i) {
          Acc weight = n == 0   ? own[i].x
                       : n == 1 ? own[i].y
                       : n == 2 ? own[i].z
                                : own[i].w;
          rows.acc[i][c][0] += weight * value.x;
          rows.acc[i][c][1] += weight * value.y;
          rows.acc[i][c][2] += weight * value.z;
          rows.acc[i][c][3] += weight * value.w;
        }
      }
    }
  }
}

/// Divides the sums of values by those of the weights, and stores them.
template <typename T, typename Acc, int numRows, int numChunks>
__device__ __forceinline__ void
storeRows(const TileRows<Acc, numRows, numChunks> &rows,
          const tprt_attention_args &args, int64_t firstRow, T *output) {
  int x = threadIdx.x % 16, y = threadIdx.x / 16;
#pragma unroll
  for (int i = 0; i < numRows; ++i) {
    Acc sum =
        combineLanes(rows.sums[i], 1, 16, [](Acc a, Acc b) { return a + b; });
    Acc divisor = sum == 0 ? Acc(1) : sum;
    int64_t row = y + 8 * i;
    if (firstRow + row >= args.rows)
      continue;
#pragma unroll
    for (int c = 0; c < numChunks; ++c)
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        int64_t e = 64 * c + 4 * x + n;
        if (e < args.width)
          store(output, row * args.output.row + e * args.output.col,
                rows.acc[i][c][n] / divisor);
      }
  }
}

template <typename T, int size>
__device__ void attendTile(const AttentionArguments &arguments) {
  using Acc = typename Traits<T>::Acc;
  using Sizes = TileSizes<sizeof(Acc), size>;
  constexpr int numRows = Sizes::rows / 8, numColumns = Sizes::columns / 16;
  constexpr int numChunks = size / 64;
  constexpr int pitch = Sizes::pitch, weightsPitch = Sizes::weightsPitch;
  const tprt_attention_args &args = arguments.args;
  auto *query = static_cast<Acc *>(getDynamicShared());
  Acc *tile = query + Sizes::rows * pitch; // keys, then values
  Acc *weights = tile + Sizes::columns * pitch;
  int x = threadIdx.x % 16, y = threadIdx.x / 16;

  // With a causal mask the last tiles take longest, so they begin first.
  int64_t numTiles = (args.rows + Sizes::rows - 1) / Sizes::rows;
  int64_t batch = blockIdx.x / numTiles;
  int64_t firstRow = (numTiles - 1 - blockIdx.x % numTiles) * Sizes::rows;
  const T *q = static_cast<const T *>(arguments.query) +
               getOffset(args, args.query, batch) + firstRow * args.query.row;
  const T *k =
      static_cast<const T *>(arguments.key) + getOffset(args, args.key, batch);
  const T *v = static_cast<const T *>(arguments.value) +
               getOffset(args, args.value, batch);
  T *output = static_cast<T *>(arguments.output) +
              getOffset(args, args.output, batch) + firstRow * args.output.row;
  int64_t mask = getOffset(args, args.mask_strides, batch) +
                 firstRow * args.mask_strides.row;
  const Acc lowest = -INFINITY;
  int depth = static_cast<int>((args.depth + 3) / 4 * 4);
  int64_t columns = args.columns;
  if (args.causal && firstRow + Sizes::rows < columns)
    columns = firstRow + Sizes::rows;
  loadTile<Sizes::rows, size>(query, q, args.query, args.rows - firstRow,
                              args.depth);

  TileRows<Acc, numRows, numChunks> rows;
#pragma unroll 1
  for (int64_t first = 0; first < columns; first += Sizes::columns) {
    __syncthreads(); // the last tile's values are used
    loadTile<Sizes::columns, size>(tile, k + first * args.key.row, args.key,
                                   args.columns - first, args.depth);
    __syncthreads();
    Acc scores[numRows][numColumns] = {};
    multiplyKeys<pitch>(scores, query, tile, depth);
#pragma unroll
    for (int i = 0; i < numRows; ++i) {
      int64_t row = firstRow + y + 8 * i;
#pragma unroll
      for (int j = 0; j < numColumns; ++j) {
        int64_t column = first + x + 16 * j;
        Acc score = lowest;
        if (row < args.rows && column < args.columns &&
            !(args.causal && column > row))
          score = addMask<T>(args, arguments.mask,
                             mask + (y + 8 * i) * args.mask_strides.row +
                                 column * args.mask_strides.col,
                             scores[i][j] * static_cast<Acc>(args.scale));
        scores[i][j] = score;
      }
      addScores(rows, i, scores[i], weights + (y + 8 * i) * weightsPitch + x);
    }
    __syncthreads(); // the keys are used, the weights complete
    loadTile<Sizes::columns, size>(tile, v + first * args.value.row, args.value,
                                   args.columns - first, args.width);
    __syncthreads();
    addValues<Sizes>(rows, weights, tile);
  }
  storeRows(rows, args, firstRow, output);
}

} // namespace tprt_kernels

using namespace tprt_kernels;

// All kernels: KERNEL(the element type, its name, the largest head).
#define TPRT_TILE_KERNELS(KERNEL)                                              \
  KERNEL(float, f32, 64)                                                       \
  KERNEL(float, f32, 128)                                                      \
  KERNEL(double, f64, 64)                                                      \
  KERNEL(__half, f16, 64)                                                      \
  KERNEL(__half, f16, 128)                                                     \
  KERNEL(__nv_bfloat16, bf16, 64)                                              \
  KERNEL(__nv_bfloat16, bf16, 128)

#define TPRT_DEFINE_TILES(T, DTYPE, SIZE)                                      \
  extern "C" __global__ void __launch_bounds__(attentionThreads, 2)            \
      tprt_attention_tiles_##DTYPE##_##SIZE(                                   \
          const __grid_constant__ AttentionArguments a) {                      \
    attendTile<T, SIZE>(a);                                                    \
  }
TPRT_TILE_KERNELS(TPRT_DEFINE_TILES)
