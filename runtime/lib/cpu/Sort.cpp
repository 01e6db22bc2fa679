//===- Sort.cpp - Sorting along a dimension -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/Sort.h"

#include "support/Parallel.h"
#include "tprt/Dtype.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

using namespace tprt;

/// x < y, where NaN is larger than all else.
template <typename Key>
static bool isLess(Key x, Key y) {
  if constexpr (std::is_floating_point_v<Key>)
    return x < y || (std::isnan(y) && !std::isnan(x));
  else
    return x < y;
}

namespace {
template <typename Key>
struct Entry {
  Key key;
  int64_t index;
};
} // namespace

/// Sorts row `row` of outer x inner rows. Elements are compared as `Key`.
template <typename T, typename Key>
static void sortRow(const tprt_sort_args &args, const T *input, T *values,
                    int64_t *indices, int64_t row,
                    std::vector<Entry<Key>> &entries) {
  int64_t outer = row / args.inner, inner = row % args.inner;
  const T *from = input + outer * args.size * args.inner + inner;
  int64_t to = outer * args.count * args.inner + inner;
  for (int64_t i = 0; i < args.size; ++i)
    entries[i] = {castElement<Key>(from[i * args.inner]), i};
  // Positions differ, so this is a total order, and the sort is stable.
  auto isBefore = [&](const Entry<Key> &x, const Entry<Key> &y) {
    bool isFirst =
        args.descending ? isLess(y.key, x.key) : isLess(x.key, y.key);
    bool isSecond =
        args.descending ? isLess(x.key, y.key) : isLess(y.key, x.key);
    return isFirst || (!isSecond && x.index < y.index);
  };
  if (args.count == args.size)
    std::sort(entries.begin(), entries.end(), isBefore);
  else
    std::partial_sort(entries.begin(), entries.begin() + args.count,
                      entries.end(), isBefore);
  for (int64_t i = 0; i < args.count; ++i) {
    values[to + i * args.inner] = from[entries[i].index * args.inner];
    indices[to + i * args.inner] = entries[i].index;
  }
}

template <typename T, typename Key = T>
static void sortRows(const tprt_sort_args &args, const void *input,
                     void *values, int64_t *indices, int64_t numThreads) {
  int64_t numRows = args.outer * args.inner;
  if (numRows == 0 || args.count == 0)
    return;
  // Less work isn't worth waking a thread for.
  constexpr int64_t minElementsOfThread = 4096;
  int64_t numParts =
      std::clamp<int64_t>(numRows * args.size / minElementsOfThread, 1,
                          std::min(numRows, std::max<int64_t>(numThreads, 1)));
  parallelFor(numParts, numParts, [&](int64_t part) {
    std::vector<Entry<Key>> entries(args.size);
    for (int64_t row = numRows * part / numParts;
         row < numRows * (part + 1) / numParts; ++row)
      sortRow<T, Key>(args, static_cast<const T *>(input),
                      static_cast<T *>(values), indices, row, entries);
  });
}

void tprt::sort(const tprt_sort_args &args, const void *input, void *values,
                int64_t *indices, int64_t numThreads) {
  for (int64_t size : {args.outer, args.size, args.inner, args.count})
    if (size < 0)
      throw executionError("tprt_sort: a size is negative");
  if (args.count > args.size)
    throw executionError("tprt_sort: the results have more elements than the "
                         "input");
  auto run = [&](auto function) {
    function(args, input, values, indices, numThreads);
  };
  switch (static_cast<Dtype>(args.dtype)) {
  case Dtype::F32:
    return run(sortRows<float>);
  case Dtype::F64:
    return run(sortRows<double>);
  case Dtype::F16:
    return run(sortRows<Half, float>);
  case Dtype::BF16:
    return run(sortRows<BFloat16, float>);
  case Dtype::I64:
    return run(sortRows<int64_t>);
  case Dtype::I32:
    return run(sortRows<int32_t>);
  case Dtype::I16:
    return run(sortRows<int16_t>);
  case Dtype::I8:
    return run(sortRows<int8_t>);
  case Dtype::I1:
  case Dtype::UI8:
    break;
  }
  throw executionError("tprt_sort: the element type can't be sorted");
}
