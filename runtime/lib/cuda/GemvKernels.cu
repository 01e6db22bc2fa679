//===- GemvKernels.cu - Products of few rows on a CUDA device -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product of up to 8 rows takes as long as reading its second operand, B,
// whose columns lie side by side in memory, as the rows of a linear layer's
// weight do. The `split` warps of a group share the elements of `numColumns`
// columns, in accesses of 16 bytes, several of which are in flight. They add up
// their sums in a fixed order.
//
// A launch computes several products of one A, each by blocks of its own. If
// one product is another's factor, a group computes the same columns of both:
//
//                  apart           gated
//   group 0        b0 b1 b2 b3     b0 b1 of the factor, b0 b1 of the other
//
//===----------------------------------------------------------------------===//

#include "Activations.cuh"
#include "GemvArguments.h"
#include "Warps.cuh"

namespace tprt_kernels {

/// Adds products of elements first, first + step, ... of the operands, up to
/// `numSteps` at once, which are all within `end` unless `isPart`.
template <bool isPart, int numSteps, int numRows, int numColumns, typename T>
__device__ __forceinline__ void
multiplySteps(const T *const (&a)[numRows], const T *const (&b)[numColumns],
              int first, int step, int end,
              float (&sums)[numRows * numColumns]) {
  auto read = [&](const T *data, int s) {
    int at = first + s * step;
    return isPart && at >= end ? Vector<T>() : Vector<T>(data + at);
  };
  Vector<T> columns[numSteps][numColumns];
#pragma unroll
  for (int s = 0; s < numSteps; ++s)
#pragma unroll
    for (int j = 0; j < numColumns; ++j)
      columns[s][j] = read(b[j], s);
#pragma unroll
  for (int s = 0; s < numSteps; ++s)
#pragma unroll
    for (int i = 0; i < numRows; ++i) {
      Vector<T> row = read(a[i], s);
#pragma unroll
      for (int j = 0; j < numColumns; ++j)
#pragma unroll
        for (int e = 0; e < Vector<T>::size; ++e)
          sums[i * numColumns + j] += row[e] * columns[s][j][e];
    }
}

/// Stores a result of a product, whose sum is `value`. Returns what is stored.
template <typename T>
__device__ float storeResult(const GemvPart &part, int64_t row, int64_t column,
                             float value, float factor) {
  T *c = static_cast<T *>(part.c) + row * part.cRow;
  if (part.accumulates)
    value += load(c, column);
  if (part.bias)
    value += load(static_cast<const T *>(part.bias), column);
  if (part.addend)
    value += load(static_cast<const T *>(part.addend),
                  row * part.addendRow + column);
  T rounded;
  store(&rounded, 0, activate(part.activation, value) * factor);
  c[column] = rounded;
  return load(&rounded, 0);
}

template <typename T, int numRows, int numColumns>
__device__ void multiplyRows(const GemvArguments &arguments) {
  constexpr int numSums = numRows * numColumns;
  constexpr int numSteps = numColumns == 1 || numRows == 1 ? 4 : 2;
  __shared__ float shared[gemvWarps][numSums];
  int splitBits = arguments.splitBits, split = 1 << splitBits;
  int warp = threadIdx.x / 32, perBlock = gemvWarps >> splitBits;
  bool isGated = numColumns > 1 && arguments.isGated;
  int number =
      (blockIdx.x >= arguments.ends[0]) + (blockIdx.x >= arguments.ends[1]);
  int block = static_cast<int>(blockIdx.x -
                               (number > 0 ? arguments.ends[number - 1] : 0));
  int group = block * perBlock + (warp >> splitBits);
  // The number of the product that sum j of a row belongs to, and its column.
  auto getNumber = [&](int j) { return isGated ? j % 2 : number; };
  auto getColumn = [&](int ofGroup, int j) {
    return isGated ? ofGroup * (numColumns / 2) + j / 2
                   : ofGroup * numColumns + j;
  };

  // What lies beyond the ends is computed, but not stored.
  const T *a[numRows], *b[numColumns];
#pragma unroll
  for (int i = 0; i < numRows; ++i)
    a[i] = static_cast<const T *>(arguments.a) +
           static_cast<int64_t>(i < arguments.m ? i : arguments.m - 1) *
               arguments.aRow;
#pragma unroll
  for (int j = 0; j < numColumns; ++j) {
    const GemvPart &part = arguments.parts[getNumber(j)];
    int column = getColumn(group, j);
    b[j] = static_cast<const T *>(part.b) +
           static_cast<int64_t>(column < part.n ? column : part.n - 1) *
               part.bColumn;
  }
  float sums[numSums] = {};
  constexpr int size = Vector<T>::size;
  int step = 32 * size << splitBits;
  int first =
      static_cast<int>((warp & (split - 1)) * 32 + threadIdx.x % 32) * size;
#pragma unroll 1
  for (; first + (numSteps - 1) * step < arguments.k; first += numSteps * step)
    multiplySteps<false, numSteps>(a, b, first, step, arguments.k, sums);
  if (first < arguments.k)
    multiplySteps<true, numSteps>(a, b, first, step, arguments.k, sums);
  float sum = sumLanes<32>(sums);
  if (threadIdx.x % 32 < numSums)
    shared[warp][threadIdx.x % 32] = sum;
  __syncthreads();

  // A thread stores the result of one row and column, of both products if
  // they are gated.
  int thread = threadIdx.x, ofBlock = thread / numSums;
  if (ofBlock >= perBlock)
    return;
  int row = thread % numSums / numColumns;
  int j = thread % numColumns;
  const GemvPart &part = arguments.parts[getNumber(j)];
  int column = getColumn(block * perBlock + ofBlock, j);
  if (row >= arguments.m || column >= part.n || (isGated && j % 2 != 0))
    return;
  auto getSum = [&](int i) {
    float total = 0;
#pragma unroll 1
    for (int w = 0; w < split; ++w)
      total += shared[(ofBlock << splitBits) + w][i];
    return total;
  };
  float factor = part.factor ? load(static_cast<const T *>(part.factor),
                                    row * part.factorRow + column)
                             : 1;
  float stored =
      storeResult<T>(part, row, column, getSum(thread % numSums), factor);
  if (isGated)
    storeResult<T>(arguments.parts[1], row, column,
                   getSum(thread % numSums + 1), stored);
}

} // namespace tprt_kernels

using namespace tprt_kernels;

// All kernels: KERNEL(the element type, its name, rows, columns of a group).
#define TPRT_GEMV_KERNELS(KERNEL)                                              \
  TPRT_GEMV_ROWS(KERNEL, float, f32)                                           \
  TPRT_GEMV_ROWS(KERNEL, __half, f16)                                          \
  TPRT_GEMV_ROWS(KERNEL, __nv_bfloat16, bf16)
#define TPRT_GEMV_ROWS(KERNEL, T, DTYPE)                                       \
  KERNEL(T, DTYPE, 1, 2)                                                       \
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
