//===- Rows.cpp - Rows of scores, keys and values -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/Rows.h"

#include "support/Multiversion.h"

#include <limits>

using namespace tprt;

TPRT_MULTIVERSION void tprt::addRow(float *row, const float *other,
                                    int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    row[i] += other[i];
}
void tprt::addRow(double *row, const double *other, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    row[i] += other[i];
}

TPRT_MULTIVERSION void tprt::scaleRow(float *row, float factor, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    row[i] *= factor;
}
void tprt::scaleRow(double *row, double factor, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    row[i] *= factor;
}

TPRT_MULTIVERSION void tprt::loadKept(const uint8_t *keep, int64_t count,
                                      float *row) {
  for (int64_t i = 0; i < count; ++i)
    row[i] = keep[i] ? 0.0f : -std::numeric_limits<float>::infinity();
}
void tprt::loadKept(const uint8_t *keep, int64_t count, double *row) {
  for (int64_t i = 0; i < count; ++i)
    row[i] = keep[i] ? 0.0 : -std::numeric_limits<double>::infinity();
}
