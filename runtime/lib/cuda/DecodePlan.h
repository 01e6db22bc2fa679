//===- DecodePlan.h - Attention of few rows on a CUDA device ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_DECODEPLAN_H
#define TPRT_LIB_CUDA_DECODEPLAN_H

#include "cuda/DecodeArguments.h"
#include "cuda/OwnKernels.h"

#include <optional>

namespace tprt::cuda {

/// How a kernel of DecodeKernels.cu computes an attention.
struct DecodePlan {
  tprt_kernels::DecodeArguments arguments; ///< without addresses
  int32_t lanes;   ///< threads that together read a row of the key
  int32_t queries; ///< that a block computes
  int32_t stages;  ///< see DecodeSizes
  Kernels::Blocks blocks;
  int64_t partialBytes, counterBytes;
};

/// The plan for an attention of few rows on a device. nullopt if it has many
/// rows, or if its type, the sizes of its heads, its layout or the device have
/// no such kernel. Operands must be aligned to 16 bytes.
std::optional<DecodePlan> planDecode(const tprt_attention_args &args,
                                     const Context &context);

/// Enqueues it. `arguments` are the plan's, with addresses.
void decode(Kernels &kernels, const DecodePlan &plan,
            const tprt_kernels::DecodeArguments &arguments, CUstream stream);

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_DECODEPLAN_H
