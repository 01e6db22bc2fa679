//===- Intervals.h - Lists of intervals -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of a dimension that a rank holds: intervals in their local order,
// with neighbors merged.
//
//===----------------------------------------------------------------------===//

#ifndef TP_DIALECT_TP_INTERVALS_H
#define TP_DIALECT_TP_INTERVALS_H

#include "tp/Dialect/TP/Blocks.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::tp {

using Intervals = SmallVector<Interval, 1>;

inline void append(Intervals &list, Interval interval) {
  if (interval.size == 0)
    return;
  if (!list.empty() && list.back().offset + list.back().size == interval.offset)
    list.back().size += interval.size;
  else
    list.push_back(interval);
}

inline Intervals mergeNeighbors(ArrayRef<Interval> list) {
  Intervals result;
  for (Interval interval : list)
    append(result, interval);
  return result;
}

inline int64_t getSize(ArrayRef<Interval> list) {
  int64_t size = 0;
  for (Interval interval : list)
    size += interval.size;
  return size;
}

inline bool isEqual(ArrayRef<Interval> a, ArrayRef<Interval> b) {
  return llvm::equal(a, b, [](Interval x, Interval y) {
    return x.offset == y.offset && x.size == y.size;
  });
}

/// By rank.
inline bool isEqual(const std::vector<Intervals> &a,
                    const std::vector<Intervals> &b) {
  return llvm::equal(a, b, [](const auto &x, const auto &y) {
    return isEqual(ArrayRef<Interval>(x), ArrayRef<Interval>(y));
  });
}

/// The elements of `list` at the local positions `positions`.
inline Intervals select(ArrayRef<Interval> list, ArrayRef<Interval> positions) {
  Intervals result;
  for (Interval position : positions) {
    int64_t begin = 0;
    for (Interval interval : list) {
      int64_t from = std::max(position.offset, begin);
      int64_t to =
          std::min(position.offset + position.size, begin + interval.size);
      if (from < to)
        append(result, {interval.offset + from - begin, to - from});
      begin += interval.size;
    }
  }
  return result;
}

} // namespace mlir::tp

#endif // TP_DIALECT_TP_INTERVALS_H
