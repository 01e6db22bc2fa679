//===- Attention.cpp - Fused attention ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Works on blocks of a head's query rows. For each block it computes the scores
// against all keys that the rows see, their exponentials, and the product with
// the values. The gradient recomputes a block's exponentials, then computes
// their gradient and the block's contributions to the gradients of keys and
// values. Only one block of scores exists at a time, and scores that a causal
// mask hides from a whole block aren't computed.
//
//===----------------------------------------------------------------------===//

#include "cpu/Attention.h"

#include "cpu/Softmax.h"
#include "cpu/Tiles.h"
#include "support/Multiversion.h"
#include "support/Parallel.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>

using namespace tprt;

/// A multiple of every tile's rows. Higher blocks read keys and values less
/// often, but compute more scores that a causal mask hides.
static constexpr int64_t queryRows = 48;

/// The type of a dtype's sums and exponentials.
template <typename S>
using Wide = std::conditional_t<std::is_same_v<S, double>, double, float>;

template <typename T>
static constexpr T lowest = -std::numeric_limits<T>::infinity();

TPRT_MULTIVERSION static void addRow(float *row, const float *other,
                                     int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    row[i] += other[i];
}
static void addRow(double *row, const double *other, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    row[i] += other[i];
}

TPRT_MULTIVERSION static void scaleRow(float *row, float factor,
                                       int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    row[i] *= factor;
}
static void scaleRow(double *row, double factor, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    row[i] *= factor;
}

TPRT_MULTIVERSION static void loadKept(const uint8_t *keep, int64_t count,
                                       float *row) {
  for (int64_t i = 0; i < count; ++i)
    row[i] = keep[i] ? 0.0f : lowest<float>;
}
static void loadKept(const uint8_t *keep, int64_t count, double *row) {
  for (int64_t i = 0; i < count; ++i)
    row[i] = keep[i] ? 0.0 : lowest<double>;
}

/// `count` elements, `stride` apart.
template <typename S, typename T>
static void loadRow(const S *source, int64_t stride, int64_t count, T *row) {
  if (stride == 1) {
    if constexpr (std::is_same_v<S, T>)
      std::copy_n(source, count, row);
    else
      convertToF32(std::is_same_v<S, Half> ? Dtype::F16 : Dtype::BF16, source,
                   row, count);
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    row[i] = castElement<T>(source[i * stride]);
}

template <typename S, typename T>
static void storeRow(const T *row, int64_t count, S *target, int64_t stride) {
  if (stride == 1) {
    if constexpr (std::is_same_v<S, T>)
      std::copy_n(row, count, target);
    else
      convertFromF32(std::is_same_v<S, Half> ? Dtype::F16 : Dtype::BF16, row,
                     target, count);
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    target[i * stride] = castElement<S>(row[i]);
}

namespace {

/// The common part of attention and its gradient: one head after the other,
/// with operands stored as S.
template <typename S>
class Scores {
protected:
  using T = Wide<S>;

  /// Memory of `size` elements, whose address is stored in `at`.
  struct Buffer {
    T **at;
    int64_t size;
  };

  explicit Scores(const tprt_attention_args &args)
      : args(args), height(std::min(args.rows, queryRows)),
        paddedColumns(pad(args.columns)) {}

  void allocate(std::initializer_list<Buffer> more, GemmState &state) {
    const std::initializer_list<Buffer> own = {
        {&keys, getPackedSize<T>(args.depth, args.columns)},
        {&scores, height * paddedColumns},
        {&maskRow, paddedColumns},
        {&queries, height * args.depth},
        {&converted, std::is_same_v<S, T>
                         ? 0
                         : args.columns * std::max(args.depth, args.width)}};
    // Buffers begin at multiples of 64 bytes, which makes the tiles' loads
    // faster.
    auto getSize = [](const Buffer &buffer) {
      constexpr int64_t unit = 64 / sizeof(T);
      return (buffer.size + unit - 1) / unit * unit;
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

  /// Calls visit(first row, number of rows, number of columns that they see)
  /// for each block of rows.
  template <typename Visit>
  void forEachBlock(const void *mask, Visit visit) {
    if (args.mask != TPRT_NO_MASK && args.mask_strides.row == 0)
      loadMask(mask, 0);
    for (int64_t top = 0; top < args.rows; top += queryRows) {
      int64_t rows = std::min(queryRows, args.rows - top);
      visit(top, rows,
            args.causal ? std::min(args.columns, top + rows) : args.columns);
    }
  }

  /// Loads and scales a block of rows of the query, and computes their scores.
  /// Replaces each score by the exponential of its difference from the row's
  /// maximum, and sets `sums` to the rows' sums.
  void computeExponentials(const S *query, const void *mask, int64_t top,
                           int64_t rows, int64_t seen, T *sums) {
    for (int64_t i = 0; i < rows; ++i) {
      T *row = queries + i * args.depth;
      loadRow(query + (top + i) * args.query.row, args.query.col, args.depth,
              row);
      scaleRow(row, static_cast<T>(args.scale), args.depth);
    }
    multiplyPacked<T>(rows, seen, args.depth, {queries, args.depth, 1},
                      {keys, args.depth}, scores, paddedColumns,
                      /*accumulate=*/false);
    for (int64_t i = 0; i < rows; ++i)
      sums[i] = exponentiateRow(mask, top + i, seen, i);
  }

  static int64_t pad(int64_t columns) {
    return (columns + softmaxPadding - 1) / softmaxPadding * softmaxPadding;
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
  int64_t height; ///< of a block
  int64_t paddedColumns;
  T *keys;   ///< packed
  T *scores; ///< of a block of rows
  T *maskRow, *queries, *converted;

private:
  T exponentiateRow(const void *mask, int64_t i, int64_t seen, int64_t at) {
    T *row = scores + at * paddedColumns;
    int64_t last = args.causal ? std::min(seen, i + 1) : seen;
    if (args.mask != TPRT_NO_MASK) {
      if (args.mask_strides.row != 0)
        loadMask(mask, i);
      addRow(row, maskRow, last);
    }
    std::fill(row + last, row + pad(seen), lowest<T>);
    return exponentiate(row, pad(seen));
  }

  void loadMask(const void *mask, int64_t i) {
    int64_t stride = args.mask_strides.col, offset = i * args.mask_strides.row;
    if (args.mask == TPRT_ADDED_MASK)
      return loadRow(static_cast<const S *>(mask) + offset, stride,
                     args.columns, maskRow);
    const uint8_t *keep = static_cast<const uint8_t *>(mask) + offset;
    if (stride == 1)
      return loadKept(keep, args.columns, maskRow);
    for (int64_t j = 0; j < args.columns; ++j)
      maskRow[j] = keep[j * stride] ? T(0) : lowest<T>;
  }
};

template <typename S>
class Attention : Scores<S> {
  using Scores<S>::args;
  using Scores<S>::scores;
  using typename Scores<S>::T;

public:
  Attention(const tprt_attention_args &args, GemmState &state)
      : Scores<S>(args) {
    this->allocate({{&values, getPackedSize<T>(args.columns, args.width)},
                    {&output, this->height * args.width}},
                   state);
  }

  void setKey(const S *data) {
    this->pack(data, args.key.col, args.key.row, args.depth, args.columns,
               this->keys);
  }
  void setValue(const S *data) {
    this->pack(data, args.value.row, args.value.col, args.columns, args.width,
               values);
  }

  void run(const S *query, const void *mask, S *result) {
    this->forEachBlock(mask, [&](int64_t top, int64_t rows, int64_t seen) {
      T sums[queryRows];
      this->computeExponentials(query, mask, top, rows, seen, sums);
      multiplyPacked<T>(rows, args.width, seen,
                        {scores, this->paddedColumns, 1},
                        {values, args.columns}, output, args.width,
                        /*accumulate=*/false);
      for (int64_t i = 0; i < rows; ++i) {
        T *row = output + i * args.width;
        scaleRow(row, T(1) / sums[i], args.width);
        storeRow(row, args.width, result + (top + i) * args.output.row,
                 args.output.col);
      }
    });
  }

private:
  T *values; ///< packed
  T *output;
};

template <typename S>
class AttentionGradient : Scores<S> {
  using Scores<S>::args;
  using Scores<S>::paddedColumns;
  using Scores<S>::queries;
  using Scores<S>::scores;
  using typename Scores<S>::T;

public:
  AttentionGradient(const tprt_attention_gradient_args &all, GemmState &state)
      : Scores<S>(all.attention), all(all) {
    const int64_t height = this->height;
    this->allocate(
        {{&values, getPackedSize<T>(args.width, args.columns)},
         {&keysByColumn, getPackedSize<T>(args.columns, args.depth)},
         {&scoreGradients, height * paddedColumns},
         {&gradients, height * args.width},
         {&packedRows,
          getPackedSize<T>(height, std::max(args.depth, args.width))},
         {&queryGradients, height * args.depth},
         {&keyGradients, args.columns * args.depth},
         {&valueGradients, args.columns * args.width}},
        state);
  }

  void setKey(const S *data) {
    this->pack(data, args.key.col, args.key.row, args.depth, args.columns,
               this->keys);
    this->pack(data, args.key.row, args.key.col, args.columns, args.depth,
               keysByColumn);
  }
  void setValue(const S *data) {
    this->pack(data, args.value.col, args.value.row, args.width, args.columns,
               values);
  }

  void run(const S *query, const void *mask, const S *gradient,
           S *queryGradient, S *keyGradient, S *valueGradient) {
    std::fill_n(keyGradients, args.columns * args.depth, T(0));
    std::fill_n(valueGradients, args.columns * args.width, T(0));
    this->forEachBlock(mask, [&](int64_t top, int64_t rows, int64_t seen) {
      T sums[queryRows];
      this->computeExponentials(query, mask, top, rows, seen, sums);
      computeScoreGradients(gradient, top, rows, seen, sums);
      addTransposed(scores, gradients, rows, seen, args.width, valueGradients);
      addTransposed(scoreGradients, queries, rows, seen, args.depth,
                    keyGradients);
      multiplyPacked<T>(rows, args.depth, seen,
                        {scoreGradients, paddedColumns, 1},
                        {keysByColumn, args.columns}, queryGradients,
                        args.depth, /*accumulate=*/false);
      scaleRow(queryGradients, static_cast<T>(args.scale), rows * args.depth);
      store(queryGradients, rows, args.depth, queryGradient, all.query_gradient,
            top);
    });
    store(keyGradients, args.columns, args.depth, keyGradient,
          all.key_gradient);
    store(valueGradients, args.columns, args.width, valueGradient,
          all.value_gradient);
  }

private:
  /// Computes the gradients of a block's scores. Replaces the block's
  /// exponentials by probabilities.
  void computeScoreGradients(const S *gradient, int64_t top, int64_t rows,
                             int64_t seen, const T *sums) {
    for (int64_t i = 0; i < rows; ++i)
      loadRow(gradient + (top + i) * args.output.row, args.output.col,
              args.width, gradients + i * args.width);
    multiplyPacked<T>(rows, seen, args.width, {gradients, args.width, 1},
                      {values, args.width}, scoreGradients, paddedColumns,
                      /*accumulate=*/false);
    for (int64_t i = 0; i < rows; ++i) {
      T *row = scoreGradients + i * paddedColumns;
      std::fill(row + seen, row + this->pad(seen), T(0));
      softmaxGradient(scores + i * paddedColumns, sums[i], row,
                      this->pad(seen));
    }
  }

  /// result += leftᵀ * right. Both have `rows` rows; left has `seen` columns,
  /// and right `columns`.
  void addTransposed(const T *left, const T *right, int64_t rows, int64_t seen,
                     int64_t columns, T *result) {
    tprt::pack<T>({right, columns, 1}, rows, columns, packedRows);
    multiplyPacked<T>(seen, columns, rows, {left, 1, paddedColumns},
                      {packedRows, rows}, result, columns,
                      /*accumulate=*/true);
  }

  static void store(const T *rows, int64_t count, int64_t columns, S *target,
                    const tprt_attention_strides &strides, int64_t top = 0) {
    for (int64_t i = 0; i < count; ++i)
      storeRow(rows + i * columns, columns, target + (top + i) * strides.row,
               strides.col);
  }

  const tprt_attention_gradient_args &all;
  T *values, *keysByColumn, *packedRows;          ///< packed
  T *scoreGradients, *gradients, *queryGradients; ///< of a block of rows
  T *keyGradients, *valueGradients;               ///< of a head
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

} // namespace

/// Calls `run(kernel, head)` for all heads, after the head's key and value have
/// been set. Each thread has its own kernel. `work` is the number of operations
/// per score and element of depth or width.
template <typename S, typename Kernel, typename Args, typename Run>
static void forEachHead(const Args &all, const tprt_attention_args &args,
                        const void *key, const void *value, double work,
                        GemmState &state, Run run) {
  int64_t numHeads = 1;
  for (int64_t size : args.batch)
    numHeads *= size;
  double operations =
      work * (args.depth + args.width) * args.rows * args.columns * numHeads;
  int64_t numParts = state.countThreads(operations, numHeads);
  for (int64_t part = 0; part < numParts; ++part)
    state.getHelper(part);
  parallelFor(numParts, numParts, [&](int64_t part) {
    Kernel kernel(all, state.getHelper(part));
    const S *lastKey = nullptr, *lastValue = nullptr;
    for (int64_t i = numHeads * part / numParts;
         i < numHeads * (part + 1) / numParts; ++i) {
      Head head(args, i);
      const S *keyHead = head.at(static_cast<const S *>(key), args.key);
      if (keyHead != lastKey)
        kernel.setKey(lastKey = keyHead);
      const S *valueHead = head.at(static_cast<const S *>(value), args.value);
      if (valueHead != lastValue)
        kernel.setValue(lastValue = valueHead);
      run(kernel, head);
    }
  });
}

static void check(const tprt_attention_args &args, const void *mask,
                  const std::string &function) {
  auto require = [&](bool holds, const char *what) {
    if (!holds)
      throw executionError(function + ": " + what);
  };
  require(args.dtype >= TPRT_F32 && args.dtype <= TPRT_BF16,
          "dtype is not f32, f64, f16 or bf16");
  require(args.mask >= TPRT_NO_MASK && args.mask <= TPRT_BOOLEAN_MASK,
          "the kind of mask is unknown");
  require((args.mask == TPRT_NO_MASK) == !mask,
          "the mask's address and kind don't agree");
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  for (int64_t size : {args.rows, args.columns, args.depth, args.width})
    require(size >= 0 && size <= limit, "a size is out of range");
  for (int64_t size : args.batch)
    require(size >= 0 && size <= limit, "a batch size is out of range");
}

/// Calls `run` with a value of the type that elements are stored as.
template <typename Run>
static void dispatch(int32_t dtype, Run run) {
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

static bool hasNoBatch(const tprt_attention_args &args) {
  return std::find(std::begin(args.batch), std::end(args.batch), 0) !=
         std::end(args.batch);
}

void tprt::attention(const tprt_attention_args &args, const void *query,
                     const void *key, const void *value, const void *mask,
                     void *output, GemmState &state) {
  check(args, mask, "tprt_attention");
  if (args.rows == 0 || args.width == 0 || hasNoBatch(args))
    return;
  dispatch(args.dtype, [&](auto element) {
    using S = decltype(element);
    auto run = [&](Attention<S> &kernel, const Head &head) {
      kernel.run(head.at(static_cast<const S *>(query), args.query),
                 head.getMask<S>(mask),
                 head.at(static_cast<S *>(output), args.output));
    };
    forEachHead<S, Attention<S>>(args, args, key, value, 2, state, run);
  });
}

void tprt::attentionGradient(const tprt_attention_gradient_args &all,
                             const void *query, const void *key,
                             const void *value, const void *mask,
                             const void *gradient, void *queryGradient,
                             void *keyGradient, void *valueGradient,
                             GemmState &state) {
  const tprt_attention_args &args = all.attention;
  check(args, mask, "tprt_attention_gradient");
  if (hasNoBatch(args))
    return;
  dispatch(args.dtype, [&](auto element) {
    using S = decltype(element);
    auto run = [&](AttentionGradient<S> &kernel, const Head &head) {
      kernel.run(head.at(static_cast<const S *>(query), args.query),
                 head.getMask<S>(mask),
                 head.at(static_cast<const S *>(gradient), args.output),
                 head.at(static_cast<S *>(queryGradient), all.query_gradient),
                 head.at(static_cast<S *>(keyGradient), all.key_gradient),
                 head.at(static_cast<S *>(valueGradient), all.value_gradient));
    };
    forEachHead<S, AttentionGradient<S>>(all, args, key, value, 5, state, run);
  });
}
