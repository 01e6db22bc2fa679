//===- AttentionGradient.cpp - The gradients of fused attention -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of each block of rows, recomputes the scores' exponentials, then computes
// their gradient and the block's contributions to the gradients of keys and
// values.
//
//===----------------------------------------------------------------------===//

#include "cpu/Attention.h"

#include "cpu/AttentionScores.h"

using namespace tprt;
using namespace tprt::attention_scores;

namespace {

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

} // namespace

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
