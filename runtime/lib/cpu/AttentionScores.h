//===- AttentionScores.h - The scores of fused attention --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What attention and its gradient have in common. Both work on blocks of a
// head's query rows. For each block they compute the scores against all keys
// that the rows see, and their exponentials. Only one block of scores exists at
// a time. Columns before the first one and behind the last one that any row of
// a block sees, by a causal or a boolean mask, are neither read nor computed;
// the results are the same.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_CPU_ATTENTIONSCORES_H
#define TPRT_LIB_CPU_ATTENTIONSCORES_H

#include "cpu/FewRows.h"
#include "cpu/Gemm.h"
#include "cpu/Rows.h"
#include "cpu/Softmax.h"
#include "cpu/Tiles.h"
#include "cpu/VisibleColumns.h"
#include "support/Division.h"
#include "support/Parallel.h"
#include "tprt/abi.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>

namespace tprt::attention_scores {

/// A multiple of every tile's rows. Higher blocks read keys and values less
/// often, but compute more scores that a causal mask hides.
inline constexpr int64_t queryRows = 48;

/// The type of a dtype's sums and exponentials.
template <typename S>
using Wide = std::conditional_t<std::is_same_v<S, double>, double, float>;

template <typename T>
inline constexpr T lowest = -std::numeric_limits<T>::infinity();

/// What a call computes of attention.
struct Problem {
  const tprt_attention_args &args;
  /// In a causal attention, row i sees the columns up to i + offset.
  int64_t offset = 0;
  /// Null unless gradients are computed.
  const tprt_attention_gradient_args *gradient = nullptr;
};

/// One number for each row of a head; null if there are none.
template <typename T>
struct RowValues {
  T *data = nullptr;
  int64_t stride = 0;

  T &operator[](int64_t row) const { return data[row * stride]; }
};

/// The scores of one head after the other, with operands stored as S.
template <typename S>
class Scores {
protected:
  using T = Wide<S>;

  /// Memory of `size` elements, whose address is stored in `at`.
  struct Buffer {
    T **at;
    int64_t size;
  };

  /// `readsInPlace`: the key isn't packed, for which S isn't double, there are
  /// few rows, and the key's column stride is 1.
  Scores(const Problem &problem, bool readsInPlace)
      : args(problem.args), readsInPlace(readsInPlace),
        height(std::min(args.rows, queryRows)),
        paddedColumns(pad(args.columns)), offset(problem.offset),
        visible(args, queryRows, offset) {}

  void allocate(std::initializer_list<Buffer> more, GemmState &state) {
    const std::initializer_list<Buffer> own = {
        {&keys, readsInPlace ? 0 : getPackedSize<T>(args.depth, args.columns)},
        {&scores, height * paddedColumns},
        {&maskRow, paddedColumns},
        {&queries, height * args.depth},
        {&converted, std::is_same_v<S, T> || readsInPlace
                         ? 0
                         : args.columns * std::max(args.depth, args.width)}};
    // Buffers begin at multiples of 64 bytes, which makes the tiles' loads
    // faster.
    auto getSize = [](const Buffer &buffer) {
      constexpr int64_t unit = 64 / sizeof(T);
      return alignTo(buffer.size, unit);
    };
    int64_t total = 0;
    for (auto buffers : {own, more})
      for (const Buffer &buffer : buffers)
        total += getSize(buffer);
    T *at = reinterpret_cast<T *>(
        state.getFloats(total * sizeof(T) / sizeof(float)));
    for (auto buffers : {own, more})
      for (const Buffer &buffer : buffers) {
        *buffer.at = at;
        at += getSize(buffer);
      }
  }

  /// Calls prepare(columns that any row sees), and then visit(first row, number
  /// of rows, columns that any of them sees) for each block of rows.
  template <typename Prepare, typename Visit>
  void forEachBlock(const void *mask, Prepare prepare, Visit visit) {
    visible.setMask(mask);
    Columns all = visible.getAll();
    prepare(all);
    if (args.mask != TPRT_NO_MASK && args.mask_strides.row == 0)
      loadMask(mask, 0, all);
    for (int64_t top = 0; top < args.rows; top += queryRows)
      visit(top, std::min(queryRows, args.rows - top), visible.get(top));
  }

  /// Loads and scales a block of rows of the query, and computes their scores.
  /// Replaces each score by the exponential of its difference from the row's
  /// maximum, and sets `sums` to the rows' sums, and `maxima`.
  void computeExponentials(const S *query, const void *mask, int64_t top,
                           int64_t rows, Columns seen, T *sums) {
    for (int64_t i = 0; i < rows; ++i) {
      T *row = queries + i * args.depth;
      loadRow(query + (top + i) * args.query.row, args.query.col, args.depth,
              row);
      scaleRow(row, static_cast<T>(args.scale), args.depth);
    }
    if constexpr (!std::is_same_v<S, double>)
      if (readsInPlace)
        scoreKeys(
            rows, seen.count(), args.depth, queries,
            Matrix<const S>{key + seen.first * args.key.row, args.key.row, 1},
            scores + seen.first, paddedColumns);
    if (!readsInPlace)
      multiplyPacked<T>(rows, seen.count(), args.depth,
                        {queries, args.depth, 1},
                        Packed<T>{keys, args.depth}.at(0, seen.first),
                        scores + seen.first, paddedColumns,
                        /*accumulate=*/false);
    for (int64_t i = 0; i < rows; ++i)
      sums[i] = exponentiateRow(mask, top + i, seen, i);
  }

  /// Lets the head's key be read, in these columns of the scores.
  void prepareKey(const S *data, Columns seen) {
    if (!readsInPlace && (data != key || !packedKeys.contain(seen))) {
      packedKeys = seen;
      pack(data + seen.first * args.key.row, args.key.col, args.key.row,
           args.depth, seen.count(),
           keys + getPackedSize<T>(args.depth, seen.first));
    }
    key = data;
  }

  static int64_t pad(int64_t columns) {
    return alignTo(columns, softmaxPadding);
  }

  void pack(const S *data, int64_t row, int64_t col, int64_t k, int64_t n,
            T *packed) {
    if constexpr (std::is_same_v<S, T>) {
      tprt::pack<T>({data, row, col}, k, n, packed);
    } else if (row == 1) { // densely, in the source's order
      for (int64_t j = 0; j < n; ++j)
        loadRow(data + j * col, row, k, converted + j * k);
      tprt::pack<T>({converted, 1, k}, k, n, packed);
    } else {
      for (int64_t p = 0; p < k; ++p)
        loadRow(data + p * row, col, n, converted + p * n);
      tprt::pack<T>({converted, n, 1}, k, n, packed);
    }
  }

  const tprt_attention_args &args;
  bool readsInPlace;
  int64_t height; ///< of a block
  int64_t paddedColumns;
  T maxima[queryRows];    ///< of the scores of a block's rows
  const S *key = nullptr; ///< of the head
  T *keys;                ///< packed, in the columns of `packedKeys`
  T *scores;              ///< of a block of rows
  T *maskRow, *queries, *converted;

private:
  T exponentiateRow(const void *mask, int64_t i, Columns seen, int64_t at) {
    T *row = scores + at * paddedColumns;
    int64_t last = args.causal
                       ? std::clamp(i + 1 + offset, seen.first, seen.last)
                       : seen.last;
    if (args.mask != TPRT_NO_MASK) {
      if (args.mask_strides.row != 0)
        loadMask(mask, i, seen);
      addRow(row + seen.first, maskRow + seen.first, last - seen.first);
    }
    int64_t count = pad(seen.count());
    std::fill(row + last, row + seen.first + count, lowest<T>);
    return exponentiate(row + seen.first, count, maxima[at]);
  }

  void loadMask(const void *mask, int64_t i, Columns seen) {
    int64_t stride = args.mask_strides.col;
    int64_t offset = i * args.mask_strides.row + seen.first * stride;
    T *row = maskRow + seen.first;
    if (args.mask == TPRT_ADDED_MASK)
      return loadRow(static_cast<const S *>(mask) + offset, stride,
                     seen.count(), row);
    const uint8_t *keep = static_cast<const uint8_t *>(mask) + offset;
    if (stride == 1)
      return loadKept(keep, seen.count(), row);
    for (int64_t j = 0; j < seen.count(); ++j)
      row[j] = keep[j * stride] ? T(0) : lowest<T>;
  }

  int64_t offset;
  Columns packedKeys{0, 0};
  VisibleColumns visible;
};

/// The addresses of the operands for one index of the batches.
class Head {
public:
  Head(const tprt_attention_args &args, int64_t number) : args(args) {
    for (int i = TPRT_ATTENTION_BATCHES; i-- > 0; number /= args.batch[i])
      index[i] = number % args.batch[i];
  }

  template <typename S>
  S *at(S *data, const tprt_attention_strides &strides) const {
    int64_t offset = 0;
    for (int i = 0; i < TPRT_ATTENTION_BATCHES; ++i)
      offset += index[i] * strides.batch[i];
    return data + offset;
  }

  template <typename S>
  const void *getMask(const void *mask) const {
    if (args.mask == TPRT_NO_MASK)
      return nullptr;
    if (args.mask == TPRT_BOOLEAN_MASK)
      return at(static_cast<const uint8_t *>(mask), args.mask_strides);
    return at(static_cast<const S *>(mask), args.mask_strides);
  }

private:
  const tprt_attention_args &args;
  int64_t index[TPRT_ATTENTION_BATCHES] = {};
};

/// Calls `run(kernel, head)` for all heads. Each thread has its own kernel.
/// `work` is the number of operations per score and element of depth or width.
template <typename Kernel, typename Run>
void forEachHead(const Problem &problem, double work, GemmState &state,
                 Run run) {
  const tprt_attention_args &args = problem.args;
  int64_t numHeads = 1;
  for (int64_t size : args.batch)
    numHeads *= size;
  double operations =
      work * (args.depth + args.width) * args.rows * args.columns * numHeads;
  int64_t numParts = state.countThreads(operations, numHeads);
  for (int64_t part = 0; part < numParts; ++part)
    state.getHelper(part);
  parallelFor(numParts, numParts, [&](int64_t part) {
    Kernel kernel(problem, state.getHelper(part));
    for (int64_t i = numHeads * part / numParts;
         i < numHeads * (part + 1) / numParts; ++i)
      run(kernel, Head(args, i));
  });
}

/// Throws an execution error that begins with the function's name.
void check(const tprt_attention_args &args, const void *mask,
           const std::string &function);

/// Calls `run` with a value of the type that elements are stored as.
template <typename Run>
void dispatch(int32_t dtype, Run run) {
  switch (static_cast<Dtype>(dtype)) {
  case Dtype::F32:
    return run(float());
  case Dtype::F64:
    return run(double());
  case Dtype::F16:
    return run(Half());
  default:
    return run(BFloat16());
  }
}

bool hasNoBatch(const tprt_attention_args &args);

/// The address of an operand with one number for each row.
template <typename T>
RowValues<T> getRows(T *data, const tprt_attention_strides &strides,
                     const Head &head) {
  return {head.at(data, strides), strides.row};
}

/// Checks the offset of attention to a block, and returns it.
int64_t getOffset(const tprt_attention_args &args, const int64_t *offset,
                  const std::string &function);

} // namespace tprt::attention_scores

#endif // TPRT_LIB_CPU_ATTENTIONSCORES_H
