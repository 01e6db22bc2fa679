//===- DecodeArguments.h - Arguments of attention of few rows ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For DecodeKernels.cu and the code that launches its kernels.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_CUDA_DECODEARGUMENTS_H
#define TPRT_LIB_CUDA_DECODEARGUMENTS_H

#include "tprt/abi.h"

namespace tprt_kernels {

struct DecodeArguments {
  tprt_attention_args args;
  const void *query, *key, *value, *mask;
  void *output;
  float *partials;    ///< results of the splits, unless there is one
  uint32_t *counters; ///< for each key's head and tile of queries; 0 before and
                      ///< after
  int32_t numSplits;  ///< of the columns
  int32_t numQueries; ///< that share a key
  int32_t numTiles;   ///< of these queries
  /// The loops over batches: first those over keys, then those over what shares
  /// a key.
  int32_t numKeyLoops, numLoops;
  int32_t loops[TPRT_ATTENTION_BATCHES];
};

} // namespace tprt_kernels

#endif // TPRT_LIB_CUDA_DECODEARGUMENTS_H
