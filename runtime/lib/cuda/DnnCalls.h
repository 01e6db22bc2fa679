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
  /// Offsets of the operands in elements, by call and DnnOperand.
  std::vector<std::map<int64_t, int64_t>> offsets;
};

/// Strides, by DnnOperand, of the operands that the program passes.
using DnnStrides = std::map<int64_t, const tprt_attention_strides *>;

/// The layout of an added mask.
struct AddedMask {
  tprt_attention_strides strides = {};
  int64_t numRows = 0, numBytes = 0;
};

/// The layout in which a boolean mask becomes an added one: as large as the mask
/// really is, that is, with strides of 0 where it broadcasts, with adjacent
/// columns, and rows aligned to 16 bytes.
TPRT_API AddedMask layOutAddedMask(const tprt_attention_args &args);

/// The calls for attention with the sizes of `args`, or for its gradient if
/// `strides` contains the output's gradient. Throws an execution error that
/// says why if cuDNN doesn't have it. cuDNN computes f16 and bf16, with heads
/// of a multiple of 8 elements, in rows without gaps, aligned to 16 bytes, and an
/// added mask. The scores of one call for a gradient have at most
/// maxScoreBytes, unless those of a head have more: cuDNN needs two bytes for
/// each.
inline constexpr int64_t maxScoreBytes = int64_t(1) << 30;
TPRT_API DnnCalls toDnnCalls(const tprt_attention_args &args,
                             const DnnStrides &strides);

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_DNNCALLS_H
