//===- Convolution.h - Convolutions -----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CPU_CONVOLUTION_H
#define TPRT_LIB_CPU_CONVOLUTION_H

#include "cpu/Gemm.h"
#include "tprt/abi.h"

namespace tprt {

struct ConvolutionOperands {
  const void *input, *weight;
  const void *scale;  ///< may be null
  const void *bias;   ///< may be null
  const void *addend; ///< may be null
  void *output;
};

/// See tprt_convolution. Throws an execution error if the arguments are out of
/// range.
TPRT_API void convolution(const tprt_convolution_args &args,
                          const ConvolutionOperands &operands,
                          GemmState &state);

} // namespace tprt

#endif // TPRT_LIB_CPU_CONVOLUTION_H
