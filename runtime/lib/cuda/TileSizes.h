//===- TileSizes.h - Sizes of attention's tiles -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For AttentionTileKernels.cu and the code that launches its kernels.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_CUDA_TILESIZES_H
#define TPRT_LIB_CUDA_TILESIZES_H

namespace tprt_kernels {

/// The tiles of a block for sums of `accBytes` each, and heads of up to `size`
/// elements.
template <int accBytes, int size>
struct TileSizes {
  static constexpr int rows = accBytes == 4 ? 64 : 32, columns = 64;
  /// Elements from a row to the next, in shared memory.
  static constexpr int pitch = size + 4, weightsPitch = columns + 4;
  static constexpr int sharedBytes =
      ((rows + columns) * pitch + rows * weightsPitch) * accBytes;
};

} // namespace tprt_kernels

#endif // TPRT_LIB_CUDA_TILESIZES_H
