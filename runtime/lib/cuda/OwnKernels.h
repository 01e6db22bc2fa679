//===- OwnKernels.h - The runtime's kernels for CUDA devices ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_OWNKERNELS_H
#define TPRT_LIB_CUDA_OWNKERNELS_H

#include "cuda/Context.h"

#include <optional>

namespace tprt::cuda {

/// Operands and results of a reduction, as the kernels of Reduce.cu take them.
inline constexpr size_t maxReduced = 32;
struct ReduceArguments {
  const std::byte *operands[maxReduced];
  std::byte *results[maxReduced];
  int64_t count; ///< elements
  int32_t numOperands, numResults;
};

/// As the kernels of Attention.cu take them.
inline constexpr int64_t maxAttentionDepth = 1024;
struct AttentionArguments {
  tprt_attention_args args;
  const void *query, *key, *value, *mask;
  void *output;
};

/// What cuDNN has computed, as another kernel of Attention.cu takes it: rows of
/// an output with an added mask, batch x heads x rows x columns (width), and
/// their statistics, batch x heads x rows without gaps.
struct HiddenRowsArguments {
  int64_t batches, heads, rows, columns, width;
  int64_t maskStrides[4], outputStrides[4]; ///< 0 where the mask broadcasts
  int32_t causal;
  const void *mask;
  void *output;
  float *statistics;
};

/// As the kernels of AttentionGradient.cu take them.
struct AttentionGradientArguments {
  tprt_attention_gradient_args args;
  const void *query, *key, *value, *mask, *gradient;
  void *queryGradient, *keyGradient, *valueGradient;
  /// Room for what the first kernel tells the second one about rows: of
  /// getStatisticsBytes() bytes.
  void *statistics;
};

/// Throws an execution error when attention's arguments are out of the range of
/// CUDA devices.
void checkAttention(const tprt_attention_args &args);

/// The kernels of Reduce.cu, Attention.cu and AttentionGradient.cu, which are
/// PTX that every supported device takes. Loaded where they are first used.
class Kernels {
public:
  explicit Kernels(ContextPtr context) : context(std::move(context)) {}

  /// Enqueues what reduce() of ../Reduce.h does, with the same bits. At least
  /// one element. Throws an execution error for more than maxReduced operands.
  void reduce(Reduction reduction, Dtype dtype,
              const std::vector<const std::byte *> &operands,
              const std::vector<std::byte *> &results, int64_t count,
              CUstream stream);

  /// Enqueues attention; see tprt_attention. Its arguments have been checked.
  void attend(const AttentionArguments &arguments, CUstream stream);
  /// Enqueues its gradients; see tprt_attention_gradient.
  void attendBackwards(const AttentionGradientArguments &arguments,
                       CUstream stream);
  /// Enqueues that rows of which the mask hides all become 0, and so do their
  /// statistics. `dtype` is f16 or bf16.
  void clearHiddenRows(const HiddenRowsArguments &arguments, Dtype dtype,
                       CUstream stream);
  int64_t getStatisticsBytes(const tprt_attention_args &args) const;

private:
  struct Loaded {
    std::once_flag flag;
    std::optional<Module> module;
  };
  CUfunction get(Loaded &loaded, const char *ptx, const char *end,
                 const std::string &name);
  /// Of blocks of 128 threads; `arguments` is the kernel's only parameter.
  void launch(CUfunction kernel, int64_t numBlocks, void *arguments,
              CUstream stream);

  ContextPtr context;
  Loaded reductions, attention, gradients;
};

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_OWNKERNELS_H
