//===- EpilogueKernels.cu - Epilogues that cuBLASLt doesn't have ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The fake device compiles this file for the host.
//
//===----------------------------------------------------------------------===//

#include "Activations.cuh"
#include "EpilogueArguments.h"

namespace tprt_kernels {

/// A block takes one row after the other.
template <typename T>
__device__ void apply(const EpilogueArguments &a) {
  using Acc = typename Traits<T>::Acc;
#pragma unroll 1
  for (int64_t row = blockIdx.x; row < a.batches * a.rows; row += gridDim.x) {
    int64_t batch = row / a.rows, i = row % a.rows;
    T *c = static_cast<T *>(a.c) + batch * a.batchStride + i * a.rowStride;
    const T *addend = a.addend ? static_cast<const T *>(a.addend) +
                                     batch * a.addendBatchStride +
                                     i * a.addendRowStride
                               : nullptr;
    const T *factor = a.factor ? static_cast<const T *>(a.factor) +
                                     batch * a.factorBatchStride +
                                     i * a.factorRowStride
                               : nullptr;
    const T *bias = static_cast<const T *>(a.bias);
    for (int64_t j = threadIdx.x; j < a.columns; j += blockDim.x) {
      Acc value = a.readsC ? load(c, j) : Acc(0);
      if (addend)
        value += load(addend, j);
      if (bias)
        value += load(bias, j);
      value = activate(a.activation, value);
      if (factor)
        value *= load(factor, j);
      store(c, j, value);
    }
  }
}

} // namespace tprt_kernels

using namespace tprt_kernels;

// All kernels: KERNEL(the element type, its name).
#define TPRT_EPILOGUES(KERNEL)                                                 \
  KERNEL(float, f32)                                                           \
  KERNEL(double, f64)                                                          \
  KERNEL(__half, f16)                                                          \
  KERNEL(__nv_bfloat16, bf16)

#define TPRT_DEFINE_EPILOGUE(T, DTYPE)                                         \
  extern "C" __global__ void __launch_bounds__(epilogueThreads)                \
      tprt_epilogue_##DTYPE(const __grid_constant__ EpilogueArguments a) {     \
    apply<T>(a);                                                               \
  }
TPRT_EPILOGUES(TPRT_DEFINE_EPILOGUE)
