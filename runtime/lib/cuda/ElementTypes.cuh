//===- ElementTypes.cuh - Elements in kernels on a device -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_ELEMENTTYPES_CUH
#define TPRT_LIB_CUDA_ELEMENTTYPES_CUH

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>
#else
#include "CudaOnHost.h" // of the fake device
#endif
#include <stdint.h>
#include <string.h>

// In an unnamed namespace, names would depend on the path of this file.
namespace tprt_kernels {

/// The type that elements accumulate in.
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

/// The dynamic shared memory of the block, aligned to 16 bytes.
__device__ void *getDynamicShared() {
#ifdef __CUDACC__
  extern __shared__ uint4 dynamicShared[];
  return dynamicShared;
#else
  return tprt::fake::getThread()->shared;
#endif
}

/// The elements that one access of 16 bytes loads.
template <typename T>
struct Vector {
  static constexpr int size = 16 / sizeof(T);
  T elements[size];

  /// Zeros.
  __device__ Vector() : Vector(uint4{0, 0, 0, 0}) {}
  /// The elements at `data`, which is aligned to 16 bytes.
  __device__ explicit Vector(const T *data)
      : Vector(*reinterpret_cast<const uint4 *>(data)) {}

  __device__ typename Traits<T>::Acc operator[](int i) const {
    return tprt_kernels::load(elements, i);
  }
  __device__ void set(int i, typename Traits<T>::Acc value) {
    tprt_kernels::store(elements, i, value);
  }
  /// `data` is aligned to 16 bytes.
  __device__ void store(T *data) const {
    uint4 bits;
    memcpy(&bits, elements, 16);
    *reinterpret_cast<uint4 *>(data) = bits;
  }

private:
  __device__ explicit Vector(uint4 bits) { memcpy(elements, &bits, 16); }
};

} // namespace tprt_kernels

#endif // TPRT_LIB_CUDA_ELEMENTTYPES_CUH
