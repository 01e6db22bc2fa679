//===- AttentionArguments.h - Arguments of attention ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For AttentionKernels.cu, AttentionTileKernels.cu and the code that launches
// their kernels.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_CUDA_ATTENTIONARGUMENTS_H
#define TPRT_LIB_CUDA_ATTENTIONARGUMENTS_H

#include "tprt/abi.h"

namespace tprt_kernels {

constexpr int maxAttentionDepth = 1024;
constexpr int attentionThreads = 128;

struct AttentionArguments {
  tprt_attention_args args;
  const void *query, *key, *value, *mask;
  void *output;
};

/// For the kernel that clears rows of cuDNN's output that an added mask hides.
/// The mask is batch x heads x rows x columns, the output batch x heads x rows
/// x width, and the statistics are batch x heads x rows without gaps.
struct HiddenRowsArguments {
  int64_t batches, heads, rows, columns, width;
  int64_t maskStrides[4], outputStrides[4]; ///< 0 if the mask broadcasts
  int32_t causal;
  const void *mask;
  void *output;
  float *statistics;
};

/// For the kernel that makes an added mask of a boolean one.
struct AddedMaskArguments {
  tprt_attention_args args;      ///< with the boolean mask
  tprt_attention_strides result; ///< 0 where the mask isn't expanded
  const void *mask;
  void *added;
};

} // namespace tprt_kernels

#endif // TPRT_LIB_CUDA_ATTENTIONARGUMENTS_H
