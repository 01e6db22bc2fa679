//===- Activations.cuh - Activations in kernels on a device -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_ACTIVATIONS_CUH
#define TPRT_LIB_CUDA_ACTIVATIONS_CUH

#include "ElementTypes.cuh"
#include "tprt/abi.h"

namespace tprt_kernels {

__device__ float hyperbolicTangent(float x) { return tanhf(x); }
__device__ double hyperbolicTangent(double x) { return tanh(x); }
__device__ float errorFunction(float x) { return erff(x); }
__device__ double errorFunction(double x) { return erf(x); }

/// See tprt_activation.
template <typename Acc>
__device__ Acc activate(int64_t activation, Acc x) {
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

} // namespace tprt_kernels

#endif // TPRT_LIB_CUDA_ACTIVATIONS_CUH
