//===- Rows.h - Rows of scores, keys and values -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CPU_ROWS_H
#define TPRT_LIB_CPU_ROWS_H

#include "tprt/Dtype.h"

#include <algorithm>

namespace tprt {

void addRow(float *row, const float *other, int64_t count);
void addRow(double *row, const double *other, int64_t count);

void scaleRow(float *row, float factor, int64_t count);
void scaleRow(double *row, double factor, int64_t count);

/// 0 where `keep` isn't 0, else -inf.
void loadKept(const uint8_t *keep, int64_t count, float *row);
void loadKept(const uint8_t *keep, int64_t count, double *row);

/// `count` elements, `stride` apart.
template <typename S, typename T>
void loadRow(const S *source, int64_t stride, int64_t count, T *row) {
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
void storeRow(const T *row, int64_t count, S *target, int64_t stride) {
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

} // namespace tprt

#endif // TPRT_LIB_CPU_ROWS_H
