//===- Panels.h - Packing of panels -----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CPU_PANELS_H
#define TPRT_LIB_CPU_PANELS_H

#include "cpu/Tiles.h"
#include "support/Division.h"
#include "support/Multiversion.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tprt {

/// How many consecutive rows of B alternate in a panel, element by element:
/// those whose products one instruction adds.
template <typename S>
inline constexpr int64_t panelTerms = std::is_same_v<S, BFloat16> ? 2 : 1;

/// k, rounded up to whole groups of rows.
template <typename S>
constexpr int64_t padDepth(int64_t k) {
  return alignTo(k, panelTerms<S>);
}

/// Transposes a square of `rows` in place. In step d, in every 2d x 2d square,
/// the d x d blocks to the right of the diagonal and below it are swapped.
template <int d, typename Vector, int... lane>
TPRT_INLINE void transpose(Vector (&rows)[sizeof...(lane)],
                           std::integer_sequence<int, lane...> lanes) {
  constexpr int n = sizeof...(lane);
  for (int i = 0; i < n; ++i) {
    if (i & d)
      continue;
    Vector upper = rows[i], lower = rows[i + d];
    rows[i] = __builtin_shufflevector(upper, lower,
                                      (lane & d ? n + lane - d : lane)...);
    rows[i + d] = __builtin_shufflevector(upper, lower,
                                          (lane & d ? n + lane : lane + d)...);
  }
  if constexpr (d > 1)
    transpose<d / 2>(rows, lanes);
}

/// Packs what whole vectors hold of a matrix that is stored by columns, and
/// returns the numbers of rows and columns that it has packed. Words are
/// elements or pairs of them.
template <typename Word, typename S, int64_t columns>
TPRT_INLINE std::pair<int64_t, int64_t>
packColumns(Matrix<const S> source, int64_t k, int64_t given, S *panel) {
  constexpr int64_t terms = panelTerms<S>;
  static_assert(sizeof(Word) == terms * sizeof(S));
  constexpr int width = 32 / sizeof(Word);
  typedef Word Vector __attribute__((vector_size(32)));
  typedef Word Unaligned
      __attribute__((vector_size(32), aligned(alignof(S)), may_alias));
  int64_t wholeRows = k / (width * terms) * (width * terms);
  int64_t wholeColumns = given / width * width;
  for (int64_t p = 0; p < wholeRows; p += width * terms)
    for (int64_t j = 0; j < wholeColumns; j += width) {
      Vector rows[width];
      for (int i = 0; i < width; ++i)
        rows[i] = *reinterpret_cast<const Unaligned *>(&source.at(p, j + i));
      transpose<width / 2>(rows, std::make_integer_sequence<int, width>());
      for (int i = 0; i < width; ++i)
        *reinterpret_cast<Unaligned *>(panel + ((p / terms + i) * columns + j) *
                                                   terms) = rows[i];
    }
  return {wholeRows, wholeColumns};
}

/// Packs `given` columns of B as a panel of `columns` columns.
template <typename S, int64_t columns>
TPRT_INLINE void packPanel(Matrix<const S> source, int64_t k, int64_t given,
                           S *panel) {
  constexpr int64_t terms = panelTerms<S>;
  if (given < columns || k % terms != 0)
    std::fill_n(panel, padDepth<S>(k) * columns, S{});
  auto packRow = [&](int64_t p, int64_t first, int64_t last) {
    S *row = panel + p / terms * terms * columns + p % terms;
    for (int64_t j = first; j < last; ++j)
      row[j * terms] = source.at(p, j);
  };
  if (source.col == 1) {
    source.col = 1; // known to the loops below
    for (int64_t p = 0; p < k; ++p)
      if (terms == 1 && given == columns)
        std::copy_n(&source.at(p, 0), columns, panel + p * columns);
      else if (terms == 2 && given == columns && p + 1 < k) {
        const S *even = &source.at(p, 0), *odd = &source.at(p + 1, 0);
        S *row = panel + p * columns;
        for (int64_t j = 0; j < columns; ++j) {
          row[2 * j] = even[j];
          row[2 * j + 1] = odd[j];
        }
        ++p;
      } else {
        packRow(p, 0, given);
      }
    return;
  }
  int64_t wholeRows = 0, wholeColumns = 0;
  using Word = std::conditional_t<
      std::is_same_v<S, BFloat16>, uint32_t,
      std::conditional_t<std::is_same_v<S, Half>, uint16_t, S>>;
  if (source.row == 1)
    std::tie(wholeRows, wholeColumns) =
        packColumns<Word, S, columns>(source, k, given, panel);
  for (int64_t p = 0; p < k; ++p)
    packRow(p, p < wholeRows ? wholeColumns : 0, given);
}

} // namespace tprt

#endif // TPRT_LIB_CPU_PANELS_H
