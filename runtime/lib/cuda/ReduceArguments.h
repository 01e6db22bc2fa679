//===- ReduceArguments.h - Arguments of reductions --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For ReduceKernels.cu and the code that launches its kernels.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_CUDA_REDUCEARGUMENTS_H
#define TPRT_LIB_CUDA_REDUCEARGUMENTS_H

#include <stdint.h>

namespace tprt_kernels {

constexpr int maxReduced = 32; ///< operands, and results
constexpr int reduceThreads = 256;

struct ReduceArguments {
  const void *operands[maxReduced];
  void *results[maxReduced];
  int64_t count;      ///< elements
  int64_t numVectors; ///< of 16 bytes, at the beginning; 0 if not aligned
  int32_t numOperands, numResults;
};

} // namespace tprt_kernels

#endif // TPRT_LIB_CUDA_REDUCEARGUMENTS_H
