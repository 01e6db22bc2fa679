//===- OwnKernels.h - The runtime's kernels for CUDA devices ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_OWNKERNELS_H
#define TPRT_LIB_CUDA_OWNKERNELS_H

#include "cuda/Context.h"

#include <optional>

namespace tprt::cuda {

/// Operands and results of a reduction, as the kernels of ReduceKernels.cu take
/// them.
inline constexpr size_t maxReduced = 32;
struct ReduceArguments {
  const std::byte *operands[maxReduced];
  std::byte *results[maxReduced];
  int64_t count; ///< elements
  int32_t numOperands, numResults;
};

/// The arguments of the kernels of EpilogueKernels.cu. All strides and sizes
/// count elements; columns are adjacent.
struct EpilogueArguments {
  void *c;
  const void *bias, *addend; ///< may be null
  int64_t batches, rows, columns;
  int64_t rowStride, batchStride; ///< of C
  int64_t addendRowStride, addendBatchStride;
  int32_t readsC;     ///< if zero, C counts as zero
  int32_t activation; ///< a tprt_activation
};

/// The arguments of the kernels of AttentionKernels.cu.
inline constexpr int64_t maxAttentionDepth = 1024;
struct AttentionArguments {
  tprt_attention_args args;
  const void *query, *key, *value, *mask;
  void *output;
};

/// The arguments of another kernel of AttentionKernels.cu, which clears rows of
/// cuDNN's output that an added mask hides. The mask is batch x heads x rows x
/// columns, the output batch x heads x rows x width, and the statistics are
/// batch x heads x rows without gaps.
struct HiddenRowsArguments {
  int64_t batches, heads, rows, columns, width;
  int64_t maskStrides[4], outputStrides[4]; ///< 0 if the mask broadcasts
  int32_t causal;
  const void *mask;
  void *output;
  float *statistics;
};

/// The arguments of the kernels of AttentionGradientKernels.cu.
struct AttentionGradientArguments {
  tprt_attention_gradient_args args;
  const void *query, *key, *value, *mask, *gradient;
  void *queryGradient, *keyGradient, *valueGradient;
  /// getStatisticsBytes() bytes, in which the first kernel passes the rows'
  /// statistics to the second one.
  void *statistics;
};

/// Throws an execution error if attention's arguments are out of range for CUDA
/// devices.
void checkAttention(const tprt_attention_args &args);

/// The kernels of ReduceKernels.cu, EpilogueKernels.cu, AttentionKernels.cu and
/// AttentionGradientKernels.cu, as PTX that every supported device accepts.
/// Each is loaded when it is first used.
class Kernels {
public:
  explicit Kernels(ContextPtr context) : context(std::move(context)) {}

  /// Enqueues the operation of reduce() in cpu/Reduce.h, with the same bits.
  /// There must be at least one element. Throws an execution error for more
  /// than maxReduced operands.
  void reduce(Reduction reduction, Dtype dtype,
              const std::vector<const std::byte *> &operands,
              const std::vector<std::byte *> &results, int64_t count,
              CUstream stream);

  /// Enqueues C = activation(C + addend + bias), where the bias is added to each
  /// row. `dtype` is a floating-point type.
  void applyEpilogue(const EpilogueArguments &arguments, Dtype dtype,
                     CUstream stream);

  /// Enqueues attention; see tprt_attention. The arguments must have been
  /// checked.
  void attend(const AttentionArguments &arguments, CUstream stream);
  /// Enqueues its gradients; see tprt_attention_gradient.
  void attendBackwards(const AttentionGradientArguments &arguments,
                       CUstream stream);
  /// Enqueues a kernel that sets rows that the mask hides completely, and their
  /// statistics, to 0. `dtype` is f16 or bf16.
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
  /// Launches blocks of threads. `arguments` is the kernel's only parameter.
  void launch(CUfunction kernel, int64_t numBlocks, void *arguments,
              CUstream stream, unsigned blockSize = 128);

  ContextPtr context;
  Loaded reductions, epilogues, attention, gradients;
};

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_OWNKERNELS_H
