//===- Module.h - Kernels on a CUDA device ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_MODULE_H
#define TPRT_LIB_CUDA_MODULE_H

#include "cuda/Context.h"

namespace tprt::cuda {

/// A kernel, which any thread may launch.
class Kernel {
public:
  Kernel(ContextPtr context, std::string name, CUfunction function)
      : context(std::move(context)), name(std::move(name)), function(function) {
  }

  /// Enqueues a grid of blocks. `arguments` are the addresses of the kernel's
  /// parameters. Throws an execution error that names the kernel.
  void launch(const tprt_launch_args &args, void *const *arguments,
              CUstream stream);

private:
  void check(CUresult result, const char *call) const;

  const ContextPtr context;
  const std::string name;
  const CUfunction function;
  std::mutex mutex; ///< held while the limit is raised
  /// The dynamic shared memory that a block may have: what every kernel may,
  /// until more is needed.
  std::atomic<uint32_t> maxSharedBytes{48 << 10};
};

/// Machine code or PTX.
struct KernelImage {
  std::string name; ///< for errors
  const void *data;
};

/// The kernels of one image.
class Module {
public:
  /// Loads the first of the images that the driver accepts. Throws an execution
  /// error, with its reasons, if it accepts none.
  Module(ContextPtr context, const std::vector<KernelImage> &images);
  ~Module();
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;

  /// Looks each kernel up once. Throws an execution error if there is no such
  /// kernel.
  Kernel &getKernel(const std::string &name);

private:
  ContextPtr context;
  CUmodule module = nullptr;
  std::mutex mutex; ///< guards the kernels
  std::map<std::string, Kernel> kernels;
};

/// The images of a program that the device may run, the best one first: cubins
/// of its major architecture that aren't newer than the device, then such PTX.
/// Throws an input error if there is none.
std::vector<KernelImage> findImages(const tprt_device_code &code,
                                    const Context &context);

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_MODULE_H
