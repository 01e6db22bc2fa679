//===- FewRows.cpp - Attention's products of a few rows -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/FewRows.h"

#include "cpu/Exponential.h"

#include <algorithm>
#include <utility>

using namespace tprt;

/// Lambdas must be compiled for the instruction set of their function.
#define TPRT_INLINE_LAMBDA __attribute__((always_inline))

/// How many rows of keys or values are prefetched ahead of those that are read.
static constexpr int64_t rowsAhead = 32;

template <typename S>
TPRT_INLINE Lanes load(const S *from) {
  if constexpr (std::is_same_v<S, float>) {
    return *reinterpret_cast<const LanesInMemory *>(from);
  } else if constexpr (std::is_same_v<S, Half>) {
    typedef Half Halves __attribute__((vector_size(32), aligned(2), may_alias));
    return __builtin_convertvector(*reinterpret_cast<const Halves *>(from),
                                   Lanes);
  } else {
    typedef uint16_t Words
        __attribute__((vector_size(32), aligned(2), may_alias));
    typedef uint32_t Wide __attribute__((vector_size(64)));
    return reinterpret_cast<Lanes>(
        __builtin_convertvector(*reinterpret_cast<const Words *>(from), Wide)
        << 16);
  }
}

/// Lane i of the result is the sum of the lanes of x[i]. With step d, the
/// results of x[i] and x[i + d] share a vector.
template <int d, int... lane>
TPRT_INLINE Lanes addLanes(Lanes (&x)[numLanes],
                           std::integer_sequence<int, lane...> lanes) {
  constexpr int n = sizeof...(lane);
  for (int i = 0; i < d; ++i)
    x[i] = __builtin_shufflevector(x[i], x[i + d],
                                   (lane & d ? n + lane - d : lane)...) +
           __builtin_shufflevector(x[i], x[i + d],
                                   (lane & d ? n + lane : lane + d)...);
  if constexpr (d > 1)
    return addLanes<d / 2>(x, lanes);
  else
    return x[0];
}

/// The scores of `rows` queries, with as many keys at a time as give one vector
/// of scores.
template <int rows, typename S>
TPRT_INLINE void scoreRows(int64_t columns, int64_t depth, const float *queries,
                           Matrix<const S> keys, float *scores,
                           int64_t rowScores) {
  constexpr int numKeys = numLanes / rows;
  const int64_t whole = depth / numLanes * numLanes;
  for (int64_t j = 0; j < columns; j += numKeys) {
    const S *key[numKeys];
    for (int b = 0; b < numKeys; ++b)
      key[b] = &keys.at(std::min(j + b, columns - 1), 0);
    Lanes sums[numLanes] = {};
    for (int b = 0; b < numKeys; ++b) // in the order of memory
      for (int64_t d = 0; d < whole; d += numLanes) {
        __builtin_prefetch(key[b] + rowsAhead * keys.row + d);
        Lanes right = load(key[b] + d);
        for (int i = 0; i < rows; ++i)
          sums[i * numKeys + b] += load(queries + i * depth + d) * right;
      }
    Lanes all = addLanes<numLanes / 2>(
        sums, std::make_integer_sequence<int, numLanes>());
    int64_t given = std::min<int64_t>(numKeys, columns - j);
    for (int i = 0; i < rows; ++i)
      for (int64_t b = 0; b < given; ++b) {
        float score = all[i * numKeys + b];
        for (int64_t d = whole; d < depth; ++d)
          score += queries[i * depth + d] * castElement<float>(key[b][d]);
        scores[i * rowScores + j + b] = score;
      }
  }
}

/// Adds to `numVectors` vectors of the output of `rows` rows.
template <int rows, int numVectors, typename S>
TPRT_INLINE void addVectors(int64_t columns, const float *weights,
                            int64_t rowWeights, Matrix<const S> values,
                            float *output, int64_t width) {
  auto at = [&](int i, int v) TPRT_INLINE_LAMBDA -> LanesInMemory & {
    return *reinterpret_cast<LanesInMemory *>(output + i * width +
                                              v * numLanes);
  };
  Lanes sums[rows][numVectors];
  for (int i = 0; i < rows; ++i)
    for (int v = 0; v < numVectors; ++v)
      sums[i][v] = at(i, v);
  for (int64_t j = 0; j < columns; ++j) {
    const S *value = &values.at(j, 0);
    Lanes right[numVectors];
    for (int v = 0; v < numVectors; ++v) {
      __builtin_prefetch(value + rowsAhead * values.row + v * numLanes);
      right[v] = load(value + v * numLanes);
    }
    for (int i = 0; i < rows; ++i)
      for (int v = 0; v < numVectors; ++v)
        sums[i][v] += weights[i * rowWeights + j] * right[v];
  }
  for (int i = 0; i < rows; ++i)
    for (int v = 0; v < numVectors; ++v)
      at(i, v) = sums[i][v];
}

template <int rows, typename S>
TPRT_INLINE void addRows(int64_t columns, int64_t width, const float *weights,
                         int64_t rowWeights, Matrix<const S> values,
                         float *output) {
  constexpr int numVectors = 4;
  constexpr int64_t block = numVectors * numLanes;
  int64_t at = 0;
  auto rest = [&]() TPRT_INLINE_LAMBDA {
    return Matrix<const S>{&values.at(0, at), values.row, 1};
  };
  for (; at + block <= width; at += block)
    addVectors<rows, numVectors>(columns, weights, rowWeights, rest(),
                                 output + at, width);
  for (; at + numLanes <= width; at += numLanes)
    addVectors<rows, 1>(columns, weights, rowWeights, rest(), output + at,
                        width);
  for (; at < width; ++at)
    for (int i = 0; i < rows; ++i) {
      float sum = output[i * width + at];
      for (int64_t j = 0; j < columns; ++j)
        sum +=
            weights[i * rowWeights + j] * castElement<float>(values.at(j, at));
      output[i * width + at] = sum;
    }
}

/// Calls body with a number of rows as a constant, and the first of them, until
/// all rows have had their turn.
template <typename Body>
TPRT_INLINE void forRows(int64_t rows, Body body) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4)
    body(std::integral_constant<int, 4>(), i);
  for (; i + 2 <= rows; i += 2)
    body(std::integral_constant<int, 2>(), i);
  if (i < rows)
    body(std::integral_constant<int, 1>(), i);
}

/// Calls body with the first column and the number of columns of each block.
/// The keys and values of a block stay in the first-level cache until all rows
/// have read them.
template <typename Body>
TPRT_INLINE void forBlocks(int64_t columns, Body body) {
  constexpr int64_t blockColumns = 32;
  for (int64_t j = 0; j < columns; j += blockColumns)
    body(j, std::min(blockColumns, columns - j));
}

// Functions that are compiled for several instruction sets can't be templates.
#define TPRT_FEW_ROWS(S)                                                       \
  TPRT_MULTIVERSION static void score(                                         \
      int64_t rows, int64_t columns, int64_t depth, const float *queries,      \
      Matrix<const S> keys, float *scores, int64_t rowScores) {                \
    forBlocks(columns, [&](int64_t j, int64_t count) TPRT_INLINE_LAMBDA {      \
      forRows(rows, [&](auto number, int64_t i) TPRT_INLINE_LAMBDA {           \
        scoreRows<number>(count, depth, queries + i * depth,                   \
                          Matrix<const S>{&keys.at(j, 0), keys.row, 1},        \
                          scores + i * rowScores + j, rowScores);              \
      });                                                                      \
    });                                                                        \
  }                                                                            \
  TPRT_MULTIVERSION static void add(                                           \
      int64_t rows, int64_t columns, int64_t width, const float *weights,      \
      int64_t rowWeights, Matrix<const S> values, float *output) {             \
    std::fill_n(output, rows * width, 0.0f);                                   \
    forBlocks(columns, [&](int64_t j, int64_t count) TPRT_INLINE_LAMBDA {      \
      forRows(rows, [&](auto number, int64_t i) TPRT_INLINE_LAMBDA {           \
        addRows<number>(count, width, weights + i * rowWeights + j,            \
                        rowWeights,                                            \
                        Matrix<const S>{&values.at(j, 0), values.row, 1},      \
                        output + i * width);                                   \
      });                                                                      \
    });                                                                        \
  }                                                                            \
  void tprt::scoreKeys(int64_t rows, int64_t columns, int64_t depth,           \
                       const float *queries, Matrix<const S> keys,             \
                       float *scores, int64_t rowScores) {                     \
    score(rows, columns, depth, queries, keys, scores, rowScores);             \
  }                                                                            \
  void tprt::addValues(int64_t rows, int64_t columns, int64_t width,           \
                       const float *weights, int64_t rowWeights,               \
                       Matrix<const S> values, float *output) {                \
    add(rows, columns, width, weights, rowWeights, values, output);            \
  }
TPRT_FEW_ROWS(float)
TPRT_FEW_ROWS(Half)
TPRT_FEW_ROWS(BFloat16)
