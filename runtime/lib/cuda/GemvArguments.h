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

constexpr int gemvThreads = 128, gemvWarps = gemvThreads / 32;

/// One of the products that a launch computes, in terms of tprt_gemm.
struct GemvPart {
  const void *b;
  void *c;
  const void *bias, *addend, *factor; ///< may be null
  int64_t cRow, addendRow, factorRow;
  int32_t n, bColumn;
  int32_t activation, accumulates;
};

/// What the products share, and each of them.
struct GemvArguments {
  const void *a;
  int32_t aRow, m, k;
  int32_t splitBits; ///< 2^splitBits warps share the elements of a column
  /// Whether there are two products of the same size, and the first one's
  /// result is the second one's factor.
  int32_t isGated;
  /// Blocks ends[i - 1], or 0, to ends[i] - 1 compute part i. If isGated, every
  /// block computes both parts. The ends of parts that don't exist, and all ends
  /// if isGated, are the number of blocks.
  uint32_t ends[maxGemvParts];
  GemvPart parts[maxGemvParts];
};

} // namespace tprt_kernels

#endif // TPRT_LIB_CUDA_GEMVARGUMENTS_H
