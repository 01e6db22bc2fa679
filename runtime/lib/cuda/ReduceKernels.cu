//===- ReduceKernels.cu - Elementwise reduction on a CUDA device ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The fake device compiles this file for the host.
//
//===----------------------------------------------------------------------===//

#include "ElementTypes.cuh"
#include "ReduceArguments.h"

namespace tprt_reductions {

using tprt_kernels::ReduceArguments;

enum Reduction { Sum, Avg, Max, Min, Product };

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

/// Combines elements that one access can load, at indices i, i + stride, ... of
/// such groups of elements. Their loads are in flight together.
template <Reduction reduction, typename T, typename Group, int numGroups>
__device__ void reduceGroups(const ReduceArguments &a, int64_t i,
                             int64_t stride) {
  using Acc = typename Traits<T>::Acc;
  constexpr int size = sizeof(Group) / sizeof(T);
  Acc acc[numGroups][size];
  auto get = [&](int32_t operand, int g) {
    return Group(static_cast<const T *>(a.operands[operand]) +
                 (i + g * stride) * size);
  };
#pragma unroll
  for (int g = 0; g < numGroups; ++g) {
    Group group = get(0, g);
#pragma unroll
    for (int e = 0; e < size; ++e)
      acc[g][e] = Traits<T>::widen(group.elements[e]);
  }
#pragma unroll 2
  for (int32_t j = 1; j < a.numOperands; ++j) {
    Group groups[numGroups];
#pragma unroll
    for (int g = 0; g < numGroups; ++g)
      groups[g] = get(j, g);
#pragma unroll
    for (int g = 0; g < numGroups; ++g)
#pragma unroll
      for (int e = 0; e < size; ++e)
        acc[g][e] = combine<reduction, Acc>(
            acc[g][e], Traits<T>::widen(groups[g].elements[e]));
  }
#pragma unroll
  for (int g = 0; g < numGroups; ++g) {
    Group result;
#pragma unroll
    for (int e = 0; e < size; ++e) {
      if (reduction == Avg)
        acc[g][e] = acc[g][e] / static_cast<Acc>(a.numOperands);
      result.elements[e] = Traits<T>::narrow(acc[g][e]);
    }
#pragma unroll 1
    for (int32_t j = 0; j < a.numResults; ++j)
      result.store(static_cast<T *>(a.results[j]) + (i + g * stride) * size);
  }
}

/// An element alone.
template <typename T>
struct Single {
  T elements[1];

  Single() = default;
  __device__ explicit Single(const T *data) : elements{*data} {}
  __device__ void store(T *data) const { *data = elements[0]; }
};

template <Reduction reduction, typename T>
__device__ void reduce(const ReduceArguments &a) {
  using Vector = tprt_kernels::Vector<T>;
  int64_t stride = int64_t(gridDim.x) * blockDim.x;
  int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x, i = first;
#pragma unroll 1
  for (; i + stride < a.numVectors; i += 2 * stride)
    reduceGroups<reduction, T, Vector, 2>(a, i, stride);
  if (i < a.numVectors)
    reduceGroups<reduction, T, Vector, 1>(a, i, stride);
#pragma unroll 1
  for (i = a.numVectors * Vector::size + first; i < a.count; i += stride)
    reduceGroups<reduction, T, Single<T>, 1>(a, i, stride);
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
  extern "C" __global__ void __launch_bounds__(tprt_kernels::reduceThreads, 3) \
      tprt_reduce_##NAME##_##DTYPE(                                            \
          const __grid_constant__ ReduceArguments a) {                         \
    reduce<REDUCTION, T>(a);                                                   \
  }
TPRT_REDUCTIONS(TPRT_DEFINE_KERNEL)
