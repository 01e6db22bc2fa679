//===- EpilogueKernels.cu - Epilogues that cuBLASLt doesn't have ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The fake device compiles this file for the host.
//
//===----------------------------------------------------------------------===//

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#else
#include "CudaOnHost.h" // of the fake device
#endif
#include "tprt/abi.h"

// In an unnamed namespace, names would depend on the path of this file.
namespace tprt_epilogues {

/// EpilogueArguments of OwnKernels.h.
struct Arguments {
  void *c;
  const void *bias, *addend;
  int64_t batches, rows, columns;
  int64_t rowStride, batchStride;
  int64_t addendRowStride, addendBatchStride;
  int32_t readsC, activation;
};

/// The type to compute in, and the conversions.
template <typename T>
struct Traits {
  using Acc = T;
  static __device__ T widen(T value) { return value; }
  static __device__ T narrow(T value) { return value; }
};
template <>
struct Traits<__half> {
  using Acc = float;
  static __device__ float widen(__half value) { return __half2float(value); }
  static __device__ __half narrow(float value) {
    return __float2half_rn(value);
  }
};
template <>
struct Traits<__nv_bfloat16> {
  using Acc = float;
  static __device__ float widen(__nv_bfloat16 value) {
    return __bfloat162float(value);
  }
  static __device__ __nv_bfloat16 narrow(float value) {
    return __float2bfloat16_rn(value);
  }
};

__device__ float exponential(float x) { return expf(x); }
__device__ double exponential(double x) { return exp(x); }
__device__ float hyperbolicTangent(float x) { return tanhf(x); }
__device__ double hyperbolicTangent(double x) { return tanh(x); }
__device__ float errorFunction(float x) { return erff(x); }
__device__ double errorFunction(double x) { return erf(x); }

/// See tprt_activation.
template <typename Acc>
__device__ Acc activate(int32_t activation, Acc x) {
  switch (activation) {
  case TPRT_RELU:
    return x < 0 ? Acc(0) : x; // keeps NaN
  case TPRT_GELU:
    return x * Acc(0.5) * (1 + errorFunction(x * Acc(0.70710678118654752)));
  case TPRT_GELU_TANH:
    return x * Acc(0.5) *
           (1 + hyperbolicTangent(Acc(0.79788456080286536) *
                                  (x + Acc(0.044715) * x * x * x)));
  case TPRT_SILU:
    return x / (1 + exponential(-x));
  default:
    return x;
  }
}

/// A block takes one row after the other.
template <typename T>
__device__ void apply(const Arguments &a) {
  using Acc = typename Traits<T>::Acc;
#pragma unroll 1
  for (int64_t row = blockIdx.x; row < a.batches * a.rows; row += gridDim.x) {
    int64_t batch = row / a.rows, i = row % a.rows;
    T *c = static_cast<T *>(a.c) + batch * a.batchStride + i * a.rowStride;
    const T *addend = a.addend ? static_cast<const T *>(a.addend) +
                                     batch * a.addendBatchStride +
                                     i * a.addendRowStride
                               : nullptr;
    const T *bias = static_cast<const T *>(a.bias);
    for (int64_t j = threadIdx.x; j < a.columns; j += blockDim.x) {
      Acc value = a.readsC ? Traits<T>::widen(c[j]) : Acc(0);
      if (addend)
        value += Traits<T>::widen(addend[j]);
      if (bias)
        value += Traits<T>::widen(bias[j]);
      c[j] = Traits<T>::narrow(activate(a.activation, value));
    }
  }
}

} // namespace tprt_epilogues

// All kernels: KERNEL(the element type, its name).
#define TPRT_EPILOGUES(KERNEL)                                                 \
  KERNEL(float, f32)                                                           \
  KERNEL(double, f64)                                                          \
  KERNEL(__half, f16)                                                          \
  KERNEL(__nv_bfloat16, bf16)

#define TPRT_DEFINE_EPILOGUE(T, DTYPE)                                         \
  extern "C" __global__ void __launch_bounds__(256) tprt_epilogue_##DTYPE(     \
      const __grid_constant__ tprt_epilogues::Arguments a) {                   \
    tprt_epilogues::apply<T>(a);                                               \
  }
TPRT_EPILOGUES(TPRT_DEFINE_EPILOGUE)
