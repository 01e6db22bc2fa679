//===- VisibleColumns.h - The columns that a mask leaves --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CPU_VISIBLECOLUMNS_H
#define TPRT_LIB_CPU_VISIBLECOLUMNS_H

#include "tprt/abi.h"

#include <vector>

namespace tprt {

/// Columns [first, last), which may be empty.
struct Columns {
  int64_t first, last;

  int64_t count() const { return last - first; }
  bool contain(Columns other) const {
    return other.count() == 0 || (first <= other.first && other.last <= last);
  }
};

/// The columns from the first to the last one that a row of a block of rows
/// sees, by an attention's causal and boolean masks. Most of a cache isn't
/// filled yet, and a sliding window has passed most of it.
class VisibleColumns {
public:
  /// Ranges begin at multiples of this: lanes of a softmax, and panels of every
  /// CPU, are then the same ones as if all columns were seen.
  static constexpr int64_t unit = 64;

  /// In a causal attention, row i sees the columns up to i + offset.
  VisibleColumns(const tprt_attention_args &args, int64_t blockRows,
                 int64_t offset = 0)
      : args(args), blockRows(blockRows), offset(offset) {}

  /// Reads a head's mask, unless it is the last one.
  void setMask(const void *mask);

  /// Of the block that begins at row `top`.
  Columns get(int64_t top) const;
  /// Of all rows.
  Columns getAll() const;

private:
  const tprt_attention_args &args;
  int64_t blockRows, offset;
  const void *mask = nullptr; ///< that `kept` is of
  /// Of a boolean mask, for each block of its rows.
  std::vector<Columns> kept;
};

} // namespace tprt

#endif // TPRT_LIB_CPU_VISIBLECOLUMNS_H
