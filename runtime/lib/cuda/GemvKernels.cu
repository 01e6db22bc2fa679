//===- GemvKernels.cu - Products of few rows on a CUDA device -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product of up to 8 rows takes as long as reading its second operand, B,
// whose columns lie side by side in memory, as the rows of a linear layer's
// weight do. The `split` warps of a group share the elements of `numColumns`
// columns, in accesses of 16 bytes, several of which are in flight. They add up
// their sums in a fixed order.
//
//===----------------------------------------------------------------------===//

#include "Activations.cuh"
#include "GemvArguments.h"
#include "Warps.cuh"

namespace tprt_kernels {

/// Adds products of elements first, first + step, ... of the operands.
/// Returns where it stopped, which leaves fewer than `numSteps` steps.
template <int numSteps, int numRows, int numColumns, typename T>
__device__ int64_t multiply(const T *const (&a)[numRows],
                            const T *const (&b)[numColumns], int64_t first,
                            int64_t step, int64_t end,
                            float (&sums)[numRows * numColumns]) {
#pragma unroll 1
  for (; first + (numSteps - 1) * step < end; first += numSteps * step) {
    Vector<T> columns[numSteps][numColumns];
#pragma unroll
    for (int s = 0; s < numSteps; ++s)
#pragma unroll
      for (int j = 0; j < numColumns; ++j)
        columns[s][j] = Vector<T>(b[j] + first + s * step);
#pragma unroll
    for (int s = 0; s < numSteps; ++s)
#pragma unroll
      for (int i = 0; i < numRows; ++i) {
        Vector<T> row(a[i] + first + s * step);
#pragma unroll
        for (int j = 0; j < numColumns; ++j)
#pragma unroll
          for (int e = 0; e < Vector<T>::size; ++e)
            sums[i * numColumns + j] += row[e] * columns[s][j][e];
      }
  }
  return first;
}

template <typename T, int numRows, int numColumns>
__device__ void multiplyRows(const GemvArguments &arguments) {
  constexpr int numSums = numRows * numColumns;
  constexpr int numSteps = numColumns == 1 ? 4 : 2;
  __shared__ float shared[gemvWarps][numSums];
  const tprt_gemm_args &args = arguments.args;
  int split = arguments.split, warp = threadIdx.x / 32;
  int64_t group = int64_t(blockIdx.x) * (gemvWarps / split) + warp / split;

  // What lies beyond the ends is computed, but not stored.
  const T *a[numRows], *b[numColumns];
#pragma unroll
  for (int i = 0; i < numRows; ++i)
    a[i] = static_cast<const T *>(arguments.a) +
           (i < args.m ? i : args.m - 1) * args.a_row;
#pragma unroll
  for (int j = 0; j < numColumns; ++j) {
    int64_t column = group * numColumns + j;
    b[j] = static_cast<const T *>(arguments.b) +
           (column < args.n ? column : args.n - 1) * args.b_col;
  }
  float sums[numSums] = {};
  constexpr int size = Vector<T>::size;
  int64_t step = split * 32 * size;
  int64_t first = (warp % split * 32 + threadIdx.x % 32) * size;
  first = multiply<numSteps>(a, b, first, step, args.k, sums);
  multiply<1>(a, b, first, step, args.k, sums);
  float sum = sumLanes<32>(sums);
  if (threadIdx.x % 32 < numSums)
    shared[warp][threadIdx.x % 32] = sum;
  __syncthreads();

  // A thread stores the result of one row and column.
  int thread = threadIdx.x, ofGroup = thread / numSums;
  if (ofGroup >= gemvWarps / split)
    return;
  int64_t row = thread % numSums / numColumns;
  int64_t column =
      (int64_t(blockIdx.x) * (gemvWarps / split) + ofGroup) * numColumns +
      thread % numColumns;
  if (row >= args.m || column >= args.n)
    return;
  float value = 0;
#pragma unroll 1
  for (int w = 0; w < split; ++w)
    value += shared[ofGroup * split + w][thread % numSums];
  T *c = static_cast<T *>(arguments.c) + row * args.c_row;
  if (args.accumulate)
    value += load(c, column);
  if (arguments.bias)
    value += load(static_cast<const T *>(arguments.bias), column);
  if (arguments.addend)
    value += load(static_cast<const T *>(arguments.addend),
                  row * args.addend_row + column);
  store(c, column, activate(args.activation, value));
}

} // namespace tprt_kernels

using namespace tprt_kernels;

// All kernels: KERNEL(the element type, its name, rows, columns of a group).
#define TPRT_GEMV_KERNELS(KERNEL)                                              \
  TPRT_GEMV_ROWS(KERNEL, float, f32)                                           \
  TPRT_GEMV_ROWS(KERNEL, __half, f16)                                          \
  TPRT_GEMV_ROWS(KERNEL, __nv_bfloat16, bf16)
#define TPRT_GEMV_ROWS(KERNEL, T, DTYPE)                                       \
  KERNEL(T, DTYPE, 1, 1)                                                       \
  KERNEL(T, DTYPE, 1, 4)                                                       \
  KERNEL(T, DTYPE, 2, 1)                                                       \
  KERNEL(T, DTYPE, 2, 4)                                                       \
  KERNEL(T, DTYPE, 4, 1)                                                       \
  KERNEL(T, DTYPE, 4, 4)                                                       \
  KERNEL(T, DTYPE, 8, 1)                                                       \
  KERNEL(T, DTYPE, 8, 2)

#define TPRT_DEFINE_GEMV(T, DTYPE, ROWS, COLUMNS)                              \
  extern "C" __global__ void __launch_bounds__(gemvThreads, ROWS < 4 ? 4 : 3)  \
      tprt_gemv_##DTYPE##_##ROWS##_##COLUMNS(                                  \
          const __grid_constant__ GemvArguments a) {                           \
    multiplyRows<T, ROWS, COLUMNS>(a);                                         \
  }
TPRT_GEMV_KERNELS(TPRT_DEFINE_GEMV)
