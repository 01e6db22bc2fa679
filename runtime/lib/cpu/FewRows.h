//===- FewRows.h - Attention's products of a few rows -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With few query rows, as in decoding, attention takes the time in which keys
// and values are read. So they are read where they are, once, without packing
// them.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_CPU_FEWROWS_H
#define TPRT_LIB_CPU_FEWROWS_H

#include "cpu/Tiles.h"

namespace tprt {

/// The largest number of rows for which this is faster than packing.
inline constexpr int64_t maxFewRows = 8;

/// scores = queries * keysᵀ. Keys are `columns` x `depth` with unit column
/// stride, queries dense, and rows of scores `rowScores` elements apart. The
/// bits of a score depend only on its query and its key.
void scoreKeys(int64_t rows, int64_t columns, int64_t depth,
               const float *queries, Matrix<const float> keys, float *scores,
               int64_t rowScores);
void scoreKeys(int64_t rows, int64_t columns, int64_t depth,
               const float *queries, Matrix<const Half> keys, float *scores,
               int64_t rowScores);
void scoreKeys(int64_t rows, int64_t columns, int64_t depth,
               const float *queries, Matrix<const BFloat16> keys, float *scores,
               int64_t rowScores);

/// output = weights * values. Values are `columns` x `width` with unit column
/// stride, and the output is dense. Each element is one sum in the order of the
/// columns.
void addValues(int64_t rows, int64_t columns, int64_t width,
               const float *weights, int64_t rowWeights,
               Matrix<const float> values, float *output);
void addValues(int64_t rows, int64_t columns, int64_t width,
               const float *weights, int64_t rowWeights,
               Matrix<const Half> values, float *output);
void addValues(int64_t rows, int64_t columns, int64_t width,
               const float *weights, int64_t rowWeights,
               Matrix<const BFloat16> values, float *output);

} // namespace tprt

#endif // TPRT_LIB_CPU_FEWROWS_H
