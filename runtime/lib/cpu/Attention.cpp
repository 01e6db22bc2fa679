//===- Attention.cpp - Fused attention ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Works on blocks of a head's query rows. For each block it computes the scores
// against all keys that the rows see, their exponentials, and the product with
// the values. The gradient recomputes a block's exponentials, then computes
// their gradient and the block's contributions to the gradients of keys and
// values. Only one block of scores exists at a time. Columns before the first
// and behind the last one that any row of a block sees, by a causal or a boolean
// mask, are neither read nor computed; the results are the same.
//
//===----------------------------------------------------------------------===//

#include "cpu/Attention.h"

#include "cpu/FewRows.h"
#include "cpu/Rows.h"
#include "cpu/Softmax.h"
#include "cpu/Tiles.h"
#include "cpu/VisibleColumns.h"
#include "support/Division.h"
#include "support/Parallel.h"

#include <algorithm>
#include <cmath>
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

namespace {

/// The common part of attention and its gradient: one head after the other,
/// with operands stored as S.
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

template <typename S>
class Attention : Scores<S> {
  using Scores<S>::args;
  using Scores<S>::readsInPlace;
  using Scores<S>::scores;
  using typename Scores<S>::T;

public:
  Attention(const Problem &problem, GemmState &state)
      : Scores<S>(problem, !std::is_same_v<S, double> &&
                               problem.args.rows <= maxFewRows &&
                               problem.args.key.col == 1 &&
                               problem.args.value.col == 1) {
    this->allocate(
        {{&values,
          readsInPlace ? 0 : getPackedSize<T>(args.columns, args.width)},
         {&output, this->height * args.width}},
        state);
  }

  void run(const S *query, const S *key, const S *value, const void *mask,
           S *result, RowValues<T> lse) {
    auto prepare = [&](Columns seen) {
      this->prepareKey(key, seen);
      if (!readsInPlace && (value != lastValue || !packed.contain(seen))) {
        packed = seen;
        this->pack(value + seen.first * args.value.row, args.value.row,
                   args.value.col, seen.count(), args.width, values);
      }
      lastValue = value;
    };
    this->forEachBlock(
        mask, prepare, [&](int64_t top, int64_t rows, Columns seen) {
          T sums[queryRows];
          this->computeExponentials(query, mask, top, rows, seen, sums);
          multiplyValues(rows, seen);
          for (int64_t i = 0; i < rows; ++i) {
            T *row = output + i * args.width;
            scaleRow(row, T(1) / sums[i], args.width);
            storeRow(row, args.width, result + (top + i) * args.output.row,
                     args.output.col);
            if (lse.data)
              lse[top + i] = this->maxima[i] + std::log(sums[i]);
          }
        });
  }

private:
  /// output = exponentials * values. The sums of tiles begin at the same columns
  /// as if all were seen.
  void multiplyValues(int64_t rows, Columns seen) {
    if constexpr (!std::is_same_v<S, double>)
      if (readsInPlace)
        return addValues(
            rows, seen.count(), args.width, scores + seen.first,
            this->paddedColumns,
            Matrix<const S>{lastValue + seen.first * args.value.row,
                            args.value.row, 1},
            output);
    int64_t begin = seen.first;
    if (seen.count() == 0)
      std::fill_n(output, rows * args.width, T(0));
    while (begin < seen.last) {
      int64_t end = std::min((begin / sumDepth + 1) * sumDepth, seen.last);
      if (begin > seen.first)
        end = seen.last;
      multiplyPacked<T>(
          rows, args.width, end - begin,
          {scores + begin, this->paddedColumns, 1},
          Packed<T>{values, packed.count()}.at(begin - packed.first, 0), output,
          args.width, /*accumulate=*/begin > seen.first);
      begin = end;
    }
  }

  const S *lastValue = nullptr;
  Columns packed{0, 0};
  T *values; ///< packed, in the rows of `packed`
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
  AttentionGradient(const Problem &problem, GemmState &state)
      : Scores<S>(problem, /*readsInPlace=*/false), all(*problem.gradient) {
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

  /// `lse` and `delta` are null unless the columns are a block of all columns.
  void run(const S *query, const S *key, const S *value, const void *mask,
           const S *gradient, RowValues<const T> lse, RowValues<const T> delta,
           S *queryGradient, S *keyGradient, S *valueGradient) {
    std::fill_n(keyGradients, args.columns * args.depth, T(0));
    std::fill_n(valueGradients, args.columns * args.width, T(0));
    auto prepare = [&](Columns) {
      const Columns all{0, args.columns};
      if (key != this->key)
        this->pack(key, args.key.row, args.key.col, args.columns, args.depth,
                   keysByColumn);
      this->prepareKey(key, all);
      if (value != lastValue)
        this->pack(value, args.value.col, args.value.row, args.width,
                   args.columns, values);
      lastValue = value;
    };
    this->forEachBlock(
        mask, prepare, [&](int64_t top, int64_t rows, Columns columns) {
          // Gradients of all columns are computed from the first one on.
          const int64_t seen = columns.last;
          T sums[queryRows];
          this->computeExponentials(query, mask, top, rows, {0, seen}, sums);
          computeProbabilityGradients(gradient, top, rows, seen);
          for (int64_t i = 0; i < rows; ++i)
            if (lse.data)
              softmaxGradient(
                  scores + i * paddedColumns,
                  getFactor(this->maxima[i], lse[top + i]), delta[top + i],
                  scoreGradients + i * paddedColumns, this->pad(seen));
            else
              softmaxGradient(scores + i * paddedColumns, sums[i],
                              scoreGradients + i * paddedColumns,
                              this->pad(seen));
          addTransposed(scores, gradients, rows, seen, args.width,
                        valueGradients);
          addTransposed(scoreGradients, queries, rows, seen, args.depth,
                        keyGradients);
          multiplyPacked<T>(rows, args.depth, seen,
                            {scoreGradients, paddedColumns, 1},
                            {keysByColumn, args.columns}, queryGradients,
                            args.depth, /*accumulate=*/false);
          scaleRow(queryGradients, static_cast<T>(args.scale),
                   rows * args.depth);
          store(queryGradients, rows, args.depth, queryGradient,
                all.query_gradient, top);
        });
    store(keyGradients, args.columns, args.depth, keyGradient,
          all.key_gradient);
    store(valueGradients, args.columns, args.width, valueGradient,
          all.value_gradient);
  }

private:
  /// What exponentials of differences from `maximum` are multiplied by to become
  /// probabilities. A row without any columns has none.
  static T getFactor(T maximum, T lse) {
    return lse == lowest<T> ? T(0) : std::exp(maximum - lse);
  }

  /// Computes the gradients of a block's probabilities, padded with zeros.
  void computeProbabilityGradients(const S *gradient, int64_t top, int64_t rows,
                                   int64_t seen) {
    for (int64_t i = 0; i < rows; ++i)
      loadRow(gradient + (top + i) * args.output.row, args.output.col,
              args.width, gradients + i * args.width);
    multiplyPacked<T>(rows, seen, args.width, {gradients, args.width, 1},
                      {values, args.width}, scoreGradients, paddedColumns,
                      /*accumulate=*/false);
    for (int64_t i = 0; i < rows; ++i) {
      T *row = scoreGradients + i * paddedColumns;
      std::fill(row + seen, row + this->pad(seen), T(0));
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
  const S *lastValue = nullptr;
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

/// Calls `run(kernel, head)` for all heads. Each thread has its own kernel.
/// `work` is the number of operations per score and element of depth or width.
template <typename Kernel, typename Run>
static void forEachHead(const Problem &problem, double work, GemmState &state,
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

/// Makes heads of one row, with the same key and value, rows of one head, so
/// that they read the key and value together.
static tprt_attention_args foldGroup(const tprt_attention_args &given) {
  tprt_attention_args args = given;
  if (args.rows != 1 || args.causal)
    return args;
  int i = TPRT_ATTENTION_BATCHES - 1;
  while (i > 0 && args.batch[i] == 1)
    --i;
  if (args.key.batch[i] != 0 || args.value.batch[i] != 0)
    return args;
  std::swap(args.rows, args.batch[i]);
  for (tprt_attention_strides *strides :
       {&args.query, &args.mask_strides, &args.output})
    strides->row = strides->batch[i];
  return args;
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

/// The address of an operand with one number for each row.
template <typename T>
static RowValues<T> getRows(T *data, const tprt_attention_strides &strides,
                            const Head &head) {
  return {head.at(data, strides), strides.row};
}

/// `lse` may be null.
static void compute(const Problem &problem, const void *query, const void *key,
                    const void *value, const void *mask, void *output,
                    void *lse, const tprt_attention_strides &lseStrides,
                    GemmState &state) {
  const tprt_attention_args &args = problem.args;
  dispatch(args.dtype, [&](auto element) {
    using S = decltype(element);
    using T = Wide<S>;
    auto run = [&](Attention<S> &kernel, const Head &head) {
      kernel.run(head.at(static_cast<const S *>(query), args.query),
                 head.at(static_cast<const S *>(key), args.key),
                 head.at(static_cast<const S *>(value), args.value),
                 head.getMask<S>(mask),
                 head.at(static_cast<S *>(output), args.output),
                 lse ? getRows(static_cast<T *>(lse), lseStrides, head)
                     : RowValues<T>());
    };
    forEachHead<Attention<S>>(problem, 2, state, run);
  });
}

void tprt::attention(const tprt_attention_args &given, const void *query,
                     const void *key, const void *value, const void *mask,
                     void *output, GemmState &state) {
  check(given, mask, "tprt_attention");
  const tprt_attention_args args = foldGroup(given);
  if (args.rows == 0 || args.width == 0 || hasNoBatch(args))
    return;
  compute({args}, query, key, value, mask, output, nullptr, {}, state);
}

/// Checks the offset of attention to a block, and returns it.
static int64_t getOffset(const tprt_attention_args &args, const int64_t *offset,
                         const std::string &function) {
  if ((args.causal != 0) != (offset != nullptr))
    throw executionError(function +
                         ": the offset's address and causal don't agree");
  // Further ones hide or show as much.
  return offset ? std::clamp(*offset, -args.rows, args.columns) : 0;
}

void tprt::attentionBlock(const tprt_attention_block_args &all,
                          const void *query, const void *key, const void *value,
                          const void *mask, const int64_t *offset, void *output,
                          void *lse, GemmState &state) {
  const tprt_attention_args &args = all.attention;
  check(args, mask, "tprt_attention_block");
  int64_t distance = getOffset(args, offset, "tprt_attention_block");
  if (args.rows == 0 || hasNoBatch(args))
    return;
  compute({args, distance}, query, key, value, mask, output, lse, all.lse,
          state);
}

/// `lse` and `delta` may be null.
static void
computeGradient(const Problem &problem, const void *query, const void *key,
                const void *value, const void *mask, const void *gradient,
                const void *lse, const tprt_attention_strides &lseStrides,
                const void *delta, const tprt_attention_strides &deltaStrides,
                void *queryGradient, void *keyGradient, void *valueGradient,
                GemmState &state) {
  const tprt_attention_args &args = problem.args;
  const tprt_attention_gradient_args &all = *problem.gradient;
  dispatch(args.dtype, [&](auto element) {
    using S = decltype(element);
    using T = Wide<S>;
    auto getOptional = [](const void *data,
                          const tprt_attention_strides &strides,
                          const Head &head) {
      return data ? getRows(static_cast<const T *>(data), strides, head)
                  : RowValues<const T>();
    };
    auto run = [&](AttentionGradient<S> &kernel, const Head &head) {
      kernel.run(head.at(static_cast<const S *>(query), args.query),
                 head.at(static_cast<const S *>(key), args.key),
                 head.at(static_cast<const S *>(value), args.value),
                 head.getMask<S>(mask),
                 head.at(static_cast<const S *>(gradient), args.output),
                 getOptional(lse, lseStrides, head),
                 getOptional(delta, deltaStrides, head),
                 head.at(static_cast<S *>(queryGradient), all.query_gradient),
                 head.at(static_cast<S *>(keyGradient), all.key_gradient),
                 head.at(static_cast<S *>(valueGradient), all.value_gradient));
    };
    forEachHead<AttentionGradient<S>>(problem, 5, state, run);
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
  if (!hasNoBatch(args))
    computeGradient({args, 0, &all}, query, key, value, mask, gradient, nullptr,
                    {}, nullptr, {}, queryGradient, keyGradient, valueGradient,
                    state);
}

void tprt::attentionBlockGradient(const tprt_attention_block_gradient_args &all,
                                  const void *query, const void *key,
                                  const void *value, const void *mask,
                                  const int64_t *offset, const void *gradient,
                                  const void *lse, const void *delta,
                                  void *queryGradient, void *keyGradient,
                                  void *valueGradient, GemmState &state) {
  const tprt_attention_args &args = all.gradient.attention;
  check(args, mask, "tprt_attention_block_gradient");
  int64_t distance = getOffset(args, offset, "tprt_attention_block_gradient");
  if (!hasNoBatch(args))
    computeGradient({args, distance, &all.gradient}, query, key, value, mask,
                    gradient, lse, all.lse, delta, all.delta, queryGradient,
                    keyGradient, valueGradient, state);
}
