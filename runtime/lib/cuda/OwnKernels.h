//===- OwnKernels.h - The runtime's kernels for CUDA devices ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_OWNKERNELS_H
#define TPRT_LIB_CUDA_OWNKERNELS_H

#include "cuda/Module.h"

namespace tprt::cuda {

/// The files with kernels: NAMEKernels.cu.
#define TPRT_KERNEL_FILES(X)                                                   \
  X(Attention)                                                                 \
  X(AttentionGradient)                                                         \
  X(AttentionTile)                                                             \
  X(Decode)                                                                    \
  X(Epilogue)                                                                  \
  X(Gemv)                                                                      \
  X(Reduce)
#define TPRT_KERNEL_FILE(NAME) NAME,
enum class KernelFile { TPRT_KERNEL_FILES(TPRT_KERNEL_FILE) };
#undef TPRT_KERNEL_FILE

/// The kernels of this folder's .cu files. A file is loaded when one of its
/// kernels is first used. If the library was built without nvcc, an execution
/// error says so then.
class Kernels {
public:
  explicit Kernels(ContextPtr context);
  ~Kernels();

  const Context &getContext() const { return *context; }

  struct Blocks {
    int64_t count;
    uint32_t threads, sharedBytes = 0; ///< dynamic shared memory
  };
  /// Enqueues blocks of a kernel, whose only parameter is `arguments`. Does
  /// nothing if there are none.
  template <typename Arguments>
  void launch(KernelFile file, const std::string &name, const Blocks &blocks,
              const Arguments &arguments, CUstream stream) {
    launchBlocks(file, name, blocks, &arguments, stream);
  }

private:
  struct File;
  void launchBlocks(KernelFile file, const std::string &name,
                    const Blocks &blocks, const void *arguments,
                    CUstream stream);

  ContextPtr context;
  std::vector<std::unique_ptr<File>> files; ///< by KernelFile
};

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_OWNKERNELS_H
