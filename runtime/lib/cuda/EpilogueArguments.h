//===- EpilogueArguments.h - Arguments of epilogues -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For EpilogueKernels.cu and the code that launches its kernels.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_CUDA_EPILOGUEARGUMENTS_H
#define TPRT_LIB_CUDA_EPILOGUEARGUMENTS_H

#include <stdint.h>

namespace tprt_kernels {

constexpr int epilogueThreads = 256;

/// All strides and sizes count elements; columns are adjacent.
struct EpilogueArguments {
  void *c;
  const void *bias, *addend, *factor; ///< may be null
  int64_t batches, rows, columns;
  int64_t rowStride, batchStride; ///< of C
  int64_t addendRowStride, addendBatchStride;
  int64_t factorRowStride, factorBatchStride;
  int32_t readsC;     ///< if zero, C counts as zero
  int32_t activation; ///< a tprt_activation
};

} // namespace tprt_kernels

#endif // TPRT_LIB_CUDA_EPILOGUEARGUMENTS_H
