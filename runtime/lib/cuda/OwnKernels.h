//===- OwnKernels.h - The runtime's kernels for CUDA devices ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_OWNKERNELS_H
#define TPRT_LIB_CUDA_OWNKERNELS_H

#include "cpu/GemmOperands.h"
#include "cuda/Context.h"

#include <optional>
#include <string_view>

namespace tprt::cuda {

/// Operands and results of a reduction, as the kernels of ReduceKernels.cu take
/// them.
inline constexpr size_t maxReduced = 32;
struct ReduceArguments {
  const std::byte *operands[maxReduced];
  std::byte *results[maxReduced];
  int64_t count;      ///< elements
  int64_t numVectors; ///< of 16 bytes, at the beginning; 0 if not aligned
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

/// The arguments of the kernels of GemvKernels.cu.
struct GemvArguments {
  tprt_gemm_args args;
  const void *a, *b;
  void *c;
  const void *bias, *addend; ///< may be null
  int32_t split;             ///< warps that share the elements of a column
};

/// The arguments of the kernels of AttentionKernels.cu and
/// AttentionTileKernels.cu.
inline constexpr int64_t maxAttentionDepth = 1024;
struct AttentionArguments {
  tprt_attention_args args;
  const void *query, *key, *value, *mask;
  void *output;
};

/// The arguments of the kernels of DecodeKernels.cu; see planDecode().
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

/// How a kernel of DecodeKernels.cu computes an attention.
struct DecodePlan {
  DecodeArguments arguments; ///< without addresses
  int32_t lanes;             ///< threads that together read a row of the key
  int32_t queries;           ///< that a block computes
  int32_t threads, sharedBytes;
  int64_t numBlocks;
  int64_t partialBytes, counterBytes;
};

/// The plan for an attention of few rows on a device. nullopt if it has many
/// rows, or if its type, the sizes of its heads, its layout or the device have
/// no such kernel. Operands must be aligned to 16 bytes.
std::optional<DecodePlan> planDecode(const tprt_attention_args &args,
                                     const Context &context);

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

/// The arguments of another kernel of AttentionKernels.cu, which makes an added
/// mask of a boolean one.
struct AddedMaskArguments {
  tprt_attention_args args;      ///< with the boolean mask
  tprt_attention_strides result; ///< 0 where the mask isn't expanded
  const void *mask;
  void *added;
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

/// The kernels of this folder's .cu files. A file is loaded when one of its
/// kernels is first used. If the library was built without nvcc, an execution
/// error says so then.
class Kernels {
public:
  explicit Kernels(ContextPtr context);

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

  /// Enqueues a product of up to 8 rows, without a factor, if it is one of f32,
  /// f16 or bf16 in one batch, whose rows of A and columns of B are contiguous
  /// and aligned to 16 bytes. Otherwise does nothing and returns false.
  bool multiplyRows(const tprt_gemm_args &args, const GemmOperands &operands,
                    CUstream stream);

  /// Enqueues attention; see tprt_attention. The arguments must have been
  /// checked.
  void attend(const AttentionArguments &arguments, CUstream stream);
  /// Enqueues attention of few rows.
  void decode(const DecodePlan &plan, const DecodeArguments &arguments,
              CUstream stream);
  /// Enqueues its gradients; see tprt_attention_gradient.
  void attendBackwards(const AttentionGradientArguments &arguments,
                       CUstream stream);
  /// Enqueues a kernel that sets rows that the mask hides completely, and their
  /// statistics, to 0. `dtype` is f16 or bf16.
  void clearHiddenRows(const HiddenRowsArguments &arguments, Dtype dtype,
                       CUstream stream);
  /// Enqueues a kernel that makes an added mask: 0 where the boolean one is
  /// true, else -inf. `numRows` counts those of the result.
  void addMask(const AddedMaskArguments &arguments, int64_t numRows,
               CUstream stream);
  int64_t getStatisticsBytes(const tprt_attention_args &args) const;

private:
  /// What a .cu file was compiled to.
  struct File {
    File(std::pair<const char *, const char *> ptx,
         std::pair<const char *, const char *> fatbin)
        : ptx(ptx.first, ptx.second), fatbin(fatbin.first, fatbin.second) {}

    /// Loads the machine code for the device, else the PTX. `name` is a kernel
    /// to name in errors.
    void load(const ContextPtr &context, const std::string &name);

    std::string_view ptx, fatbin; ///< with a NUL
    std::once_flag flag;
    std::optional<Module> module;
  };
  CUfunction get(File &file, const std::string &name);
  /// Launches blocks of threads with so much dynamic shared memory. `arguments`
  /// is the kernel's only parameter.
  void launch(CUfunction kernel, int64_t numBlocks, void *arguments,
              CUstream stream, unsigned blockSize = 128,
              int32_t sharedBytes = 0);

  ContextPtr context;
  File reductions, epilogues, gemvs, attention, tiles, decodes, gradients;
};

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_OWNKERNELS_H
