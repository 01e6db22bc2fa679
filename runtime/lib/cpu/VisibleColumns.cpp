//===- VisibleColumns.cpp - The columns that a mask leaves ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/VisibleColumns.h"

#include "cpu/Softmax.h"

#include <algorithm>
#include <cstring>

using namespace tprt;

static_assert(VisibleColumns::unit % softmaxPadding == 0);

/// The number of zeros among `count` elements before the first other one. The
/// elements are `stride` apart, which may be negative.
static int64_t countZeros(const uint8_t *from, int64_t stride, int64_t count) {
  int64_t i = 0;
  if (stride == 1 || stride == -1)
    for (uint64_t word; i + 8 <= count; i += 8) {
      std::memcpy(&word, stride == 1 ? from + i : from - i - 7, 8);
      if (word != 0)
        break;
    }
  while (i < count && !from[i * stride])
    ++i;
  return i;
}

void VisibleColumns::setMask(const void *given) {
  if (args.mask != TPRT_BOOLEAN_MASK || given == mask)
    return;
  mask = given;
  kept.clear();
  const auto [batch, rowStride, stride] = args.mask_strides;
  int64_t numRows = rowStride == 0 ? 1 : args.rows;
  for (int64_t top = 0; top < numRows; top += blockRows) {
    Columns all{args.columns, 0};
    for (int64_t i = top; i < std::min(numRows, top + blockRows); ++i) {
      const uint8_t *row = static_cast<const uint8_t *>(mask) + i * rowStride;
      all.first = countZeros(row, stride, all.first);
      all.last = args.columns - countZeros(row + (args.columns - 1) * stride,
                                           -stride, args.columns - all.last);
    }
    kept.push_back(all.count() > 0 ? Columns{all.first / unit * unit, all.last}
                                   : Columns{0, 0});
  }
}

Columns VisibleColumns::get(int64_t top) const {
  Columns seen{0, args.columns};
  if (args.mask == TPRT_BOOLEAN_MASK)
    seen = kept[args.mask_strides.row == 0 ? 0 : top / blockRows];
  if (args.causal)
    seen.last = std::clamp(std::min(args.rows, top + blockRows) + offset,
                           seen.first, seen.last);
  return seen;
}

Columns VisibleColumns::getAll() const {
  Columns all{args.columns, 0};
  for (int64_t top = 0; top < args.rows; top += blockRows)
    if (Columns seen = get(top); seen.count() > 0)
      all = {std::min(all.first, seen.first), std::max(all.last, seen.last)};
  return all.count() > 0 ? all : Columns{0, 0};
}
