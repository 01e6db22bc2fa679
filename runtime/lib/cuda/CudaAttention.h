//===- CudaAttention.h - Attention on a CUDA device -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_CUDAATTENTION_H
#define TPRT_LIB_CUDA_CUDAATTENTION_H

#include "cuda/DnnCalls.h"
#include "cuda/OwnAttention.h"
#include "tprt/CudaOptions.h"

namespace tprt::cuda {

/// The attention of one stream. The runtime's own kernels compute forms of few
/// rows and those that cuDNN doesn't have, and cuDNN computes the others, unless
/// the options choose one of them. The decision for each form is kept. All calls
/// share one workspace.
class Attention {
public:
  Attention(ContextPtr context, Kernels &own, AttentionLibrary library);
  ~Attention();

  /// Enqueues attention; see tprt_attention. Throws an execution error if the
  /// arguments are out of range, or if cuDNN is required and doesn't have this
  /// form.
  void run(const tprt_kernels::AttentionArguments &arguments, CUstream stream);
  /// The same for tprt_attention_gradient.
  void runGradient(const tprt_kernels::AttentionGradientArguments &arguments,
                   CUstream stream);

  /// Called when all enqueued work is done.
  void dropOutgrown() { workspace.dropOutgrown(); }

  /// Resets the counts of calls.
  void beginRun();
  std::vector<AttentionUse> getUses() const;

private:
  struct Form;

  Form &getForm(const tprt_attention_args &args, const std::string &key,
                const DnnStrides &strides, bool isAligned, CUstream stream);
  void plan(Form &form, const tprt_attention_args &args, DnnStrides strides,
            bool isAligned, CUstream stream);
  std::byte *makeMask(const Form &form, const tprt_attention_args &args,
                      std::map<int64_t, const void *> &operands,
                      std::byte *memory, CUstream stream);
  void runForward(const Form &form, const tprt_attention_args &args,
                  const std::map<int64_t, void *> &operands,
                  std::byte *workspace, CUstream stream);

  ContextPtr context;
  Kernels &own;
  AttentionLibrary library;
  cudnnHandle_t handle = nullptr; ///< made by the first form that may need it
  /// Indexed by the arguments' bytes, and whether addresses are aligned.
  std::map<std::string, std::unique_ptr<Form>> forms;
  GrowingMemory workspace;
};

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_CUDAATTENTION_H
