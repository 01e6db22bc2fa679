//===- DnnCalls.h - The ABI's attention as calls of cuDNN's -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_DNNCALLS_H
#define TPRT_LIB_CUDA_DNNCALLS_H

#include "cuda/DnnAttention.h"
#include "tprt/abi.h"

namespace tprt::cuda {

/// Calls of one graph, for different parts of the operands.
struct DnnCalls {
  DnnAttention attention;
  /// Where operands begin, by call and DnnOperand, in elements.
  std::vector<std::map<int64_t, int64_t>> offsets;
};

/// What the operands are that the program names: strides by DnnOperand.
using DnnStrides = std::map<int64_t, const tprt_attention_strides *>;

/// Attention of the sizes of `args`, or its gradient where `strides` have that
/// of the output. Throws an execution error that says why where cuDNN doesn't
/// have it: it computes f16 and bf16, heads of a multiple of 8 elements, in
/// rows without gaps, aligned to 16 bytes.
TPRT_API DnnCalls toDnnCalls(const tprt_attention_args &args,
                             const DnnStrides &strides);

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_DNNCALLS_H
