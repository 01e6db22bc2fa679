//===- SparseRows.h - Rows that are often zero ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A collective may leave out rows of zeros (Collective::hasSparseRows): of each
// row, the receiver learns whether it is zero, by one byte, and gets its
// elements if it isn't.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_SUPPORT_SPARSEROWS_H
#define TPRT_LIB_SUPPORT_SPARSEROWS_H

#include "support/StridedCopy.h"

namespace tprt {

/// Whether all of one or more bytes are zero. A float of -0 isn't.
inline bool isZero(const std::byte *data, int64_t bytes) {
  return *data == std::byte(0) && std::memcmp(data, data + 1, bytes - 1) == 0;
}

/// Calls visit(offset in a, offset in b), in elements, for each row of a box
/// that consists of whole rows of `rowElements` elements.
template <typename Visit>
void forEachRow(const StridedCopy &strided, int64_t rowElements, Visit visit) {
  strided.forEachRun([&](int64_t a, int64_t b, int64_t length) {
    for (int64_t i = 0; i < length; i += rowElements)
      visit(a + i, b + i);
  });
}

/// Copies a box of rows from `src` to `dst`. Returns the bytes that a receiver
/// gets: one for each row, and those of rows that aren't zero.
inline int64_t copyRows(const StridedCopy &strided, int64_t elementBytes,
                        int64_t rowElements, const std::byte *src,
                        std::byte *dst) {
  int64_t bytes = rowElements * elementBytes, received = 0;
  forEachRow(strided, rowElements, [&](int64_t a, int64_t b) {
    const std::byte *row = src + a * elementBytes;
    ++received;
    if (isZero(row, bytes)) {
      std::memset(dst + b * elementBytes, 0, bytes);
    } else {
      std::memcpy(dst + b * elementBytes, row, bytes);
      received += bytes;
    }
  });
  return received;
}

} // namespace tprt

#endif // TPRT_LIB_SUPPORT_SPARSEROWS_H
