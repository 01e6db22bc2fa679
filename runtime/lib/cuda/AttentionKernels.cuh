//===- AttentionKernels.cuh - Common code of attention kernels --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_ATTENTIONKERNELS_CUH
#define TPRT_LIB_CUDA_ATTENTIONKERNELS_CUH

#include "AttentionArguments.h"
#include "ElementTypes.cuh"

namespace tprt_kernels {

constexpr int perThread = maxAttentionDepth / attentionThreads;

/// Combines the values of all threads with combine(). All threads get the
/// result.
template <typename Acc, typename Combine>
__device__ Acc reduceBlock(Acc value, Acc *scratch, Combine combine) {
  scratch[threadIdx.x] = value;
  __syncthreads();
#pragma unroll 1
  for (unsigned half = attentionThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half)
      scratch[threadIdx.x] =
          combine(scratch[threadIdx.x], scratch[threadIdx.x + half]);
    __syncthreads();
  }
  Acc result = scratch[0];
  __syncthreads();
  return result;
}

/// The offset of batch `index`, counted row-major.
__device__ int64_t getOffset(const tprt_attention_args &args,
                             const tprt_attention_strides &strides,
                             int64_t index) {
  int64_t offset = 0;
#pragma unroll 1
  for (int d = TPRT_ATTENTION_BATCHES; d-- > 0;) {
    offset += index % args.batch[d] * strides.batch[d];
    index /= args.batch[d];
  }
  return offset;
}

/// Adds element `at` of the mask to the score.
template <typename T, typename Acc>
__device__ Acc addMask(const tprt_attention_args &args, const void *mask,
                       int64_t at, Acc score) {
  if (args.mask == TPRT_ADDED_MASK)
    return score + load(static_cast<const T *>(mask), at);
  if (args.mask == TPRT_BOOLEAN_MASK && !static_cast<const uint8_t *>(mask)[at])
    return -INFINITY;
  return score;
}

} // namespace tprt_kernels

#endif // TPRT_LIB_CUDA_ATTENTIONKERNELS_CUH
