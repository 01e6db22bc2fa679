//===- Attention.cpp - Fused attention ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of each block of rows: its scores' exponentials, and their product with the
// values.
//
//===----------------------------------------------------------------------===//

#include "cpu/Attention.h"

#include "cpu/AttentionScores.h"

using namespace tprt;
using namespace tprt::attention_scores;

namespace {

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

} // namespace

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
