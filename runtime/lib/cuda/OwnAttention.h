//===- OwnAttention.h - The runtime's own kernels of attention --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_OWNATTENTION_H
#define TPRT_LIB_CUDA_OWNATTENTION_H

#include "cuda/AttentionArguments.h"
#include "cuda/AttentionGradientArguments.h"
#include "cuda/OwnKernels.h"
#include "tprt/Dtype.h"

namespace tprt::cuda {

/// Throws an execution error if attention's arguments are out of range for CUDA
/// devices.
void checkAttention(const tprt_attention_args &args);

/// Enqueues attention; see tprt_attention. The arguments must have been checked.
void attend(Kernels &kernels, const tprt_kernels::AttentionArguments &arguments,
            CUstream stream);

/// Enqueues its gradients; see tprt_attention_gradient.
void attendBackwards(Kernels &kernels,
                     const tprt_kernels::AttentionGradientArguments &arguments,
                     CUstream stream);
/// The bytes that `arguments.statistics` needs.
int64_t getStatisticsBytes(const tprt_attention_args &args);

/// Enqueues a kernel that sets rows that the mask hides completely, and their
/// statistics, to 0. `dtype` is f16 or bf16.
void clearHiddenRows(Kernels &kernels,
                     const tprt_kernels::HiddenRowsArguments &arguments,
                     Dtype dtype, CUstream stream);

/// Enqueues a kernel that makes an added mask: 0 where the boolean one is true,
/// else -inf. `numRows` counts those of the result.
void addMask(Kernels &kernels,
             const tprt_kernels::AddedMaskArguments &arguments, int64_t numRows,
             CUstream stream);

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_OWNATTENTION_H
