//===- Warps.cuh - What the threads of a warp compute together --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_WARPS_CUH
#define TPRT_LIB_CUDA_WARPS_CUH

#include "ElementTypes.cuh"

namespace tprt_kernels {

constexpr unsigned wholeWarp = ~0u;

/// Combines the values of lanes whose numbers differ by bits first, 2 * first,
/// ..., end / 2. All of them get the result.
template <typename Acc, typename Combine>
__device__ Acc combineLanes(Acc value, int first, int end, Combine combine) {
#pragma unroll
  for (int mask = first; mask < end; mask *= 2)
    value = combine(value, __shfl_xor_sync(wholeWarp, value, mask));
  return value;
}

/// Adds up `count` values over groups of `lanes` lanes; both are powers of two,
/// and count <= lanes. Lane i gets the sum of the values i % count. In each step
/// a lane gives away half of its values, so that there are fewer shuffles than
/// for one sum after the other:
///
///   lane 0: a0 b0 -> a0 + a1    lane 1: a1 b1 -> b0 + b1
///
/// Lanes are added in the same order whatever `count` is.
template <int lanes, int count>
__device__ float sumLanes(float (&values)[count]) {
#pragma unroll
  for (int step = 1; step < count; step *= 2)
#pragma unroll
    for (int i = 0; i < count / 2; ++i) {
      if (i >= count / step / 2)
        continue;
      bool isUpper = threadIdx.x & step;
      float given = isUpper ? values[2 * i] : values[2 * i + 1];
      float kept = isUpper ? values[2 * i + 1] : values[2 * i];
      values[i] = kept + __shfl_xor_sync(wholeWarp, given, step);
    }
  return combineLanes(values[0], count, lanes,
                      [](float a, float b) { return a + b; });
}

} // namespace tprt_kernels

#endif // TPRT_LIB_CUDA_WARPS_CUH
