//===- Tiles.h - Products of small and packed matrices ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The product C = A * B on one core, for cases in which a library is slower: if
// B is packed once and multiplied often, like a weight, or if matrices are too
// small for a library's set-up, like those of an attention head. The scheme is
// Goto's: a tile of C stays in registers, a panel of B in the first-level
// cache, a block of A in the second.
//
// f16 and bf16 are packed as they are, and their sums are f32. They are widened
// in registers. Where the CPU has AVX512-BF16 or AMX, bf16 isn't: vdpbf16ps and
// tdpbf16ps add two products at a time, at twice and sixteen times the rate of
// f32. So panels of bf16 hold pairs of rows, whose elements alternate.
//
// Each element of C is one sum, in the order of k, regardless of how many rows
// are multiplied at a time. It depends neither on m, nor on its row's position,
// nor on the width of the CPU's vectors. It does depend on whether the CPU has
// fused multiply-adds. For bf16 it also depends on whether the CPU has
// AVX512-BF16, which adds the second product of a pair first, or AMX, which adds
// up the first and the second products of 16 pairs apart. Both take denormal
// numbers as 0.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_CPU_TILES_H
#define TPRT_LIB_CPU_TILES_H

#include "tprt/Dtype.h"

namespace tprt {

/// A matrix in memory; strides count elements.
template <typename T>
struct Matrix {
  T *data;
  int64_t row, col;

  T &at(int64_t i, int64_t j) const { return *from(i, j); }
  /// The address of element (i, j), which needn't exist.
  T *from(int64_t i, int64_t j) const { return data + i * row + j * col; }
};

/// The terms of a sum per panel, which have to stay in the first-level cache.
/// Sums of this many terms are added up in order.
inline constexpr int64_t sumDepth = 384;

/// The type of sums of products of S: float, double, Half or BFloat16.
template <typename S>
using SumOf = std::conditional_t<std::is_same_v<S, double>, double, float>;

/// The number of elements of a packed k x n matrix, in whole panels.
template <typename S>
int64_t getPackedSize(int64_t k, int64_t n);

/// The number of columns of a panel, those of a tile of this CPU.
template <typename S>
int64_t getPanelColumns();

/// Writes a k x n matrix as packed panels. Each holds its columns one row, or
/// one pair of rows, after the other; missing columns and rows are zero.
template <typename S>
void pack(Matrix<const S> source, int64_t k, int64_t n, S *packed);

/// A matrix that has been packed with `rows` rows.
template <typename S>
struct Packed {
  const S *data;
  int64_t rows;

  /// The part that begins at a row and a column, which begin a pair and a
  /// panel.
  Packed at(int64_t row, int64_t column) const {
    return {data + getPackedSize<S>(rows, column) + row * getPanelColumns<S>(),
            rows};
  }
};

/// The operations on sums of products, as in tprt_gemm.
template <typename T>
struct Epilogue {
  const T *bias = nullptr;    ///< null, or an element per column
  const T *rowBias = nullptr; ///< null, or an element per row
  /// null, or a factor per row for A * B; only without `bias`
  const T *rowScale = nullptr;
  const T *addend = nullptr; ///< null, or m x n; may be C
  int64_t rowAddend = 0;
  int64_t activation = TPRT_NO_ACTIVATION;
  const T *factor = nullptr; ///< null, or m x n
  int64_t rowFactor = 0;

  /// The epilogue of the part of C that begins at (row, column).
  Epilogue at(int64_t row, int64_t column) const {
    Epilogue part = *this;
    if (bias)
      part.bias += column;
    if (rowBias)
      part.rowBias += row;
    if (rowScale)
      part.rowScale += row;
    if (addend)
      part.addend += row * rowAddend + column;
    if (factor)
      part.factor += row * rowFactor + column;
    return part;
  }
};

/// C = activation(A * B (* rowScale in every column) (+ bias in every row, or
/// rowBias in every column) (+ addend)) (* factor). A is m x k, B the first k
/// rows and n columns of what was packed, C is m x n with unit column stride.
template <typename S>
void multiplyPacked(int64_t m, int64_t n, int64_t k, Matrix<const S> a,
                    Packed<S> b, SumOf<S> *c, int64_t rowC,
                    const Epilogue<SumOf<S>> &epilogue);

/// C = A * B (+ C where `accumulate`).
template <typename S>
void multiplyPacked(int64_t m, int64_t n, int64_t k, Matrix<const S> a,
                    Packed<S> b, SumOf<S> *c, int64_t rowC, bool accumulate) {
  multiplyPacked<S>(m, n, k, a, b, c, rowC,
                    {.addend = accumulate ? c : nullptr, .rowAddend = rowC});
}

} // namespace tprt

#endif // TPRT_LIB_CPU_TILES_H
