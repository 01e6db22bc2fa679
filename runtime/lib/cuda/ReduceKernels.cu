//===- ReduceKernels.cu - Elementwise reduction on a CUDA device ----------===//
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
#include <stdint.h>

// In an unnamed namespace, names would depend on the path of this file.
namespace tprt_reductions {

enum Reduction { Sum, Avg, Max, Min, Product };

/// ReduceArguments of OwnKernels.h.
struct Arguments {
  const void *operands[32];
  void *results[32];
  int64_t count;
  int32_t numOperands, numResults;
};

/// The type that elements accumulate in, and the conversions.
template <typename T>
struct Traits {
  using Acc = T;
  static __device__ T widen(T value) { return value; }
  static __device__ T narrow(T value) { return value; }
};
/// An average needs the sum's upper bits.
template <typename T>
struct NarrowTraits {
  using Acc = int32_t;
  static __device__ int32_t widen(T value) { return value; }
  static __device__ T narrow(int32_t value) { return static_cast<T>(value); }
};
template <>
struct Traits<int16_t> : NarrowTraits<int16_t> {};
template <>
struct Traits<int8_t> : NarrowTraits<int8_t> {};
template <>
struct Traits<uint8_t> : NarrowTraits<uint8_t> {};
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

template <Reduction reduction, typename T>
__device__ T combine(T a, T b) {
  if (reduction == Max)
    return (a > b || a != a) ? a : b;
  if (reduction == Min)
    return (a < b || a != a) ? a : b;
  return reduction == Product ? a * b : a + b;
}

template <Reduction reduction, typename T>
__device__ void reduce(const Arguments &arguments) {
  using Acc = typename Traits<T>::Acc;
  int64_t stride = int64_t(gridDim.x) * blockDim.x;
#pragma unroll 1
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
       i < arguments.count; i += stride) {
    Acc acc =
        Traits<T>::widen(static_cast<const T *>(arguments.operands[0])[i]);
#pragma unroll 1
    for (int32_t j = 1; j < arguments.numOperands; ++j)
      acc = combine<reduction, Acc>(
          acc,
          Traits<T>::widen(static_cast<const T *>(arguments.operands[j])[i]));
    if (reduction == Avg)
      acc = acc / static_cast<Acc>(arguments.numOperands);
#pragma unroll 1
    for (int32_t j = 0; j < arguments.numResults; ++j)
      static_cast<T *>(arguments.results[j])[i] = Traits<T>::narrow(acc);
  }
}

} // namespace tprt_reductions

using namespace tprt_reductions;

// All kernels: KERNEL(the reduction, its name, the element type, its name).
#define TPRT_NUMERIC_REDUCTIONS(KERNEL, T, DTYPE)                              \
  KERNEL(Sum, sum, T, DTYPE)                                                   \
  KERNEL(Avg, avg, T, DTYPE)                                                   \
  TPRT_ORDERED_REDUCTIONS(KERNEL, T, DTYPE)
#define TPRT_ORDERED_REDUCTIONS(KERNEL, T, DTYPE)                              \
  KERNEL(Max, max, T, DTYPE)                                                   \
  KERNEL(Min, min, T, DTYPE)                                                   \
  KERNEL(Product, product, T, DTYPE)
#define TPRT_REDUCTIONS(KERNEL)                                                \
  TPRT_NUMERIC_REDUCTIONS(KERNEL, float, f32)                                  \
  TPRT_NUMERIC_REDUCTIONS(KERNEL, double, f64)                                 \
  TPRT_NUMERIC_REDUCTIONS(KERNEL, __half, f16)                                 \
  TPRT_NUMERIC_REDUCTIONS(KERNEL, __nv_bfloat16, bf16)                         \
  TPRT_NUMERIC_REDUCTIONS(KERNEL, int64_t, i64)                                \
  TPRT_NUMERIC_REDUCTIONS(KERNEL, int32_t, i32)                                \
  TPRT_NUMERIC_REDUCTIONS(KERNEL, int16_t, i16)                                \
  TPRT_NUMERIC_REDUCTIONS(KERNEL, int8_t, i8)                                  \
  TPRT_NUMERIC_REDUCTIONS(KERNEL, uint8_t, ui8)                                \
  TPRT_ORDERED_REDUCTIONS(KERNEL, uint8_t, i1) /* no sum, no average */

#define TPRT_DEFINE_KERNEL(REDUCTION, NAME, T, DTYPE)                          \
  extern "C" __global__ void __launch_bounds__(256)                            \
      tprt_reduce_##NAME##_##DTYPE(const __grid_constant__ Arguments a) {      \
    reduce<REDUCTION, T>(a);                                                   \
  }
TPRT_REDUCTIONS(TPRT_DEFINE_KERNEL)
