//===- DnnAttention.h - Attention as a graph of cuDNN's ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_DNNATTENTION_H
#define TPRT_LIB_CUDA_DNNATTENTION_H

#include "cuda/DnnGraph.h"

namespace tprt::cuda {

/// Names of the operands and results of attention and its gradient.
enum DnnOperand : int64_t {
  DnnQuery = 1,
  DnnKey,
  DnnValue,
  DnnMask, ///< added
  DnnOutput,
  DnnStatistics, ///< f32: per row, the logarithm of the sum of exponentials
  DnnGradient,   ///< of the output
  DnnRowSums,    ///< f32: per row, the sum of output * gradient
  DnnQueryGradient,
  DnnKeyGradient,
  DnnValueGradient,
};

/// The attention of one cuDNN call: query and output are batch x heads x rows x
/// depth (width), key and value batch x heads' x columns x depth (width), where
/// heads' divides heads; a mask has size 1 in dimensions in which it
/// broadcasts. The statistics and row sums are batch x heads x rows x 1,
/// without gaps.
struct TPRT_API DnnAttention {
  int32_t type = CUDNN_DATA_HALF; ///< or CUDNN_DATA_BFLOAT16
  float scale = 1;
  bool causal = false;
  std::map<int64_t, DnnShape> operands; ///< by DnnOperand, only those present

  /// Computes the output and its statistics from query, key, value and optional
  /// mask.
  DnnGraph makeForward() const;
  /// Computes the three gradients from query, key, value, optional mask,
  /// output, statistics and gradient. Needs room for the row sums. Each head
  /// has its own key.
  DnnGraph makeBackward() const;
};

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_DNNATTENTION_H
