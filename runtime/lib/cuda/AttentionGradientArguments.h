//===- AttentionGradientArguments.h - Arguments of gradients ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For AttentionGradientKernels.cu and the code that launches its kernels.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_CUDA_ATTENTIONGRADIENTARGUMENTS_H
#define TPRT_LIB_CUDA_ATTENTIONGRADIENTARGUMENTS_H

#include "tprt/abi.h"

namespace tprt_kernels {

struct AttentionGradientArguments {
  tprt_attention_gradient_args args;
  const void *query, *key, *value, *mask, *gradient;
  void *queryGradient, *keyGradient, *valueGradient;
  /// In which the first kernel passes the rows' statistics to the second one:
  /// numStatistics numbers of each row, of the type that elements accumulate in.
  void *statistics;
};
constexpr int numStatistics = 3;

} // namespace tprt_kernels

#endif // TPRT_LIB_CUDA_ATTENTIONGRADIENTARGUMENTS_H
