//===- AttentionKernels.cuh - Common code of attention kernels --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_ATTENTIONKERNELS_CUH
#define TPRT_LIB_CUDA_ATTENTIONKERNELS_CUH

#include "tprt/abi.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#else
#include "CudaOnHost.h" // of the fake device
#endif

// In an unnamed namespace, names would depend on the path of this file.
namespace tprt_kernels {

constexpr int numThreads = 128;
constexpr int maxDepth = 1024; // maxAttentionDepth of OwnKernels.h
constexpr int perThread = maxDepth / numThreads;

template <typename T>
struct Traits {
  using Acc = T;
};
template <>
struct Traits<__half> {
  using Acc = float;
};
template <>
struct Traits<__nv_bfloat16> {
  using Acc = float;
};

__device__ float load(const float *data, int64_t i) { return data[i]; }
__device__ double load(const double *data, int64_t i) { return data[i]; }
__device__ float load(const __half *data, int64_t i) {
  return __half2float(data[i]);
}
__device__ float load(const __nv_bfloat16 *data, int64_t i) {
  return __bfloat162float(data[i]);
}
__device__ void store(float *data, int64_t i, float value) { data[i] = value; }
__device__ void store(double *data, int64_t i, double value) {
  data[i] = value;
}
__device__ void store(__half *data, int64_t i, float value) {
  data[i] = __float2half_rn(value);
}
__device__ void store(__nv_bfloat16 *data, int64_t i, float value) {
  data[i] = __float2bfloat16_rn(value);
}
__device__ float exponential(float x) { return expf(x); }
__device__ double exponential(double x) { return exp(x); }

/// Combines the values of all threads with combine(). All threads get the
/// result.
template <typename Acc, typename Combine>
__device__ Acc reduceBlock(Acc value, Acc *scratch, Combine combine) {
  scratch[threadIdx.x] = value;
  __syncthreads();
#pragma unroll 1
  for (unsigned half = numThreads / 2; half > 0; half /= 2) {
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
