//===- DecodeSizes.h - Sizes of the blocks of DecodeKernels.cu --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For DecodeKernels.cu and the code that launches its kernels.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_CUDA_DECODESIZES_H
#define TPRT_LIB_CUDA_DECODESIZES_H

namespace tprt_kernels {

/// So many blocks at most compute parts of the columns: a warp combines their
/// statistics.
constexpr int maxDecodeSplits = 32;

/// A stage is a step whose keys and values are in flight. There are kernels for
/// all numbers of stages from the fewest on. Four stages of four queries take
/// 128 KiB; a block of a device of compute capability 8.6 or 8.9 may have 99.
constexpr int maxDecodeStages = 4;
constexpr int getFewestDecodeStages(int queries) {
  return queries == 4 ? 3 : maxDecodeStages;
}

constexpr int maxDecodeStaticBytes = 2 << 10; ///< besides dynamic memory

struct DecodeSizes {
  int threads;
  int columns;        ///< that a group of lanes handles in a step
  int columnsPerStep; ///< of the block
  int sharedBytes;    ///< dynamic shared memory
};

/// The sizes for groups of `lanes` threads and for `queries` queries. More
/// queries take more registers, so there are fewer threads.
constexpr DecodeSizes getDecodeSizes(int lanes, int queries, int stages,
                                     int elementBytes) {
  constexpr int vectorBytes = 16, maxColumns = 2;
  DecodeSizes sizes = {};
  sizes.threads = queries == 4 ? 512 : 256;
  sizes.columns = lanes / queries < maxColumns ? lanes / queries : maxColumns;
  sizes.columnsPerStep = sizes.threads / lanes * sizes.columns;
  int stageBytes = sizes.threads * 2 * sizes.columns * vectorBytes;
  // Later the warps' sums take their place.
  int sumBytes = sizes.threads / 32 * queries * lanes *
                 (vectorBytes / elementBytes) * static_cast<int>(sizeof(float));
  sizes.sharedBytes =
      stages * stageBytes > sumBytes ? stages * stageBytes : sumBytes;
  return sizes;
}

/// The same as constants for the kernels.
template <int lanes, int queries, int stages, int elementBytes>
struct DecodeConstants {
  static constexpr DecodeSizes all =
      getDecodeSizes(lanes, queries, stages, elementBytes);
  static constexpr int threads = all.threads, columns = all.columns;
  static constexpr int columnsPerStep = all.columnsPerStep;
  static constexpr int sharedBytes = all.sharedBytes;
};

} // namespace tprt_kernels

#endif // TPRT_LIB_CUDA_DECODESIZES_H
