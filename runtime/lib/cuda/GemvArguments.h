//===- GemvArguments.h - Arguments of products of few rows ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For GemvKernels.cu and the code that launches its kernels.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_CUDA_GEMVARGUMENTS_H
#define TPRT_LIB_CUDA_GEMVARGUMENTS_H

#include <stdint.h>

namespace tprt_kernels {

constexpr int maxGemvParts = 3;

/// The warps of a block of the kernels for so many rows. On an H200, one row
/// is multiplied 3 to 9 % faster by 8 warps with two columns each than by 4
/// with four.
constexpr int getGemvWarps(int rows) { return rows == 1 ? 8 : 4; }
/// The same as a constant for the kernels.
template <int rows>
constexpr int gemvWarps = getGemvWarps(rows);

/// One of the products that a launch computes, in terms of tprt_gemm.
struct GemvPart {
  const void *b;
  void *c;
  const void *bias, *addend, *factor; ///< may be null
  int64_t n, bColumn, cRow, addendRow, factorRow;
  int32_t activation, accumulates;
};

/// What the products share, and each of them.
struct GemvArguments {
  const void *a;
  int64_t aRow, m, k;
  int32_t split; ///< warps that share the elements of a column
  /// Whether there are two products of the same size, and the first one's
  /// result is the second one's factor.
  int32_t isGated;
  /// Part i is computed by the blocks before ends[i], unless an earlier part
  /// is. If isGated, all blocks compute both.
  int64_t ends[maxGemvParts];
  GemvPart parts[maxGemvParts];
};

} // namespace tprt_kernels

#endif // TPRT_LIB_CUDA_GEMVARGUMENTS_H
