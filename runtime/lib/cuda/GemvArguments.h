//===- GemvArguments.h - Arguments of products of few rows ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For GemvKernels.cu and the code that launches its kernels.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_CUDA_GEMVARGUMENTS_H
#define TPRT_LIB_CUDA_GEMVARGUMENTS_H

#include "tprt/abi.h"

namespace tprt_kernels {

constexpr int maxGemvRows = 8;
constexpr int gemvThreads = 128, gemvWarps = gemvThreads / 32;

struct GemvArguments {
  tprt_gemm_args args;
  const void *a, *b;
  void *c;
  const void *bias, *addend; ///< may be null
  int32_t split;             ///< warps that share the elements of a column
};

} // namespace tprt_kernels

#endif // TPRT_LIB_CUDA_GEMVARGUMENTS_H
