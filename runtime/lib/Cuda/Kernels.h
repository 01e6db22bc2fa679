//===- Kernels.h - The runtime's own kernels for CUDA devices ----*- C++
//-*-===//

#ifndef TPRT_LIB_CUDA_KERNELS_H
#define TPRT_LIB_CUDA_KERNELS_H

#include "Cuda/Context.h"

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

/// The kernels of Reduce.cu and Attention.cu, which are PTX that every
/// supported device takes. Loaded where they are first used.
class Kernels {
public:
  explicit Kernels(ContextPtr context) : context(std::move(context)) {}

  /// Enqueues what reduce() of ../Reduce.h does, with the same bits. At least
  /// one element. Throws an execution error for more than maxReduced operands.
  void reduce(Reduction reduction, Dtype dtype,
              const std::vector<const std::byte *> &operands,
              const std::vector<std::byte *> &results, int64_t count,
              CUstream stream);

  /// Enqueues attention; see tprt_attention. Throws an execution error when the
  /// arguments are out of range.
  void attend(const AttentionArguments &arguments, CUstream stream);

private:
  struct Loaded {
    std::once_flag flag;
    std::optional<Module> module;
  };
  CUfunction get(Loaded &loaded, const char *ptx, const char *end,
                 const std::string &name);

  ContextPtr context;
  Loaded reductions, attention;
};

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_KERNELS_H
