//===- Module.cpp - Kernels on a CUDA device ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/Module.h"

using namespace tprt;
using namespace tprt::cuda;

void Kernel::check(CUresult result, const char *call) const {
  if (result != CUDA_SUCCESS)
    throw executionError("kernel '" + name + "': " + call + ": " +
                         context->getDriver().describe(result));
}

void Kernel::launch(const tprt_launch_args &args, void *const *arguments,
                    CUstream stream) {
  const Driver &driver = context->getDriver();
  if (args.shared_bytes > maxSharedBytes) {
    std::lock_guard<std::mutex> lock(mutex);
    if (args.shared_bytes > maxSharedBytes) {
      check(driver.cuFuncSetAttribute(
                function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                args.shared_bytes),
            "cuFuncSetAttribute");
      maxSharedBytes = args.shared_bytes;
    }
  }
  check(driver.cuLaunchKernel(function, args.grid[0], args.grid[1],
                              args.grid[2], args.block[0], args.block[1],
                              args.block[2], args.shared_bytes, stream,
                              const_cast<void **>(arguments), nullptr),
        "cuLaunchKernel");
}

/// "sm_90" or "compute_90".
static std::string getName(const tprt_device_image &image) {
  return (image.is_ptx ? "compute_" : "sm_") + std::to_string(image.arch);
}

/// Whether the driver may accept another image: the failure isn't the device's.
static bool isRefusal(CUresult result) {
  switch (result) {
  case CUDA_ERROR_INVALID_IMAGE:
  case CUDA_ERROR_NO_BINARY_FOR_GPU:
  case CUDA_ERROR_INVALID_PTX:
  case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
  case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    return true;
  default:
    return false;
  }
}

Module::Module(ContextPtr context, const std::vector<KernelImage> &images)
    : context(std::move(context)) {
  this->context->makeCurrent();
  const Driver &driver = this->context->getDriver();
  std::string reasons;
  for (const KernelImage &image : images) {
    // The driver's reason if it rejects PTX.
    char log[4096] = {};
    int32_t options[] = {CU_JIT_ERROR_LOG_BUFFER,
                         CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, reinterpret_cast<void *>(sizeof(log))};
    CUresult result =
        driver.cuModuleLoadDataEx(&module, image.data, 2, options, values);
    if (result == CUDA_SUCCESS)
      return;
    reasons += (reasons.empty() ? "" : "\n") + std::string("cannot load ") +
               image.name + " on " + this->context->getName() + ": " +
               driver.describe(result) +
               (log[0] ? std::string("\n") + log : "");
    if (!isRefusal(result))
      break;
  }
  throw executionError(reasons);
}

Module::~Module() {
  context->free(
      [&](const Driver &driver) { TPRT_CUDA(driver, cuModuleUnload, module); });
}

Kernel &Module::getKernel(const std::string &name) {
  std::lock_guard<std::mutex> lock(mutex);
  if (auto found = kernels.find(name); found != kernels.end())
    return found->second;
  CUfunction function = nullptr;
  const Driver &driver = context->getDriver();
  CUresult result = driver.cuModuleGetFunction(&function, module, name.c_str());
  if (result != CUDA_SUCCESS)
    throw executionError("the device's code has no kernel '" + name +
                         "': " + driver.describe(result));
  return kernels
      .emplace(std::piecewise_construct, std::forward_as_tuple(name),
               std::forward_as_tuple(context, name, function))
      .first->second;
}

std::vector<KernelImage> cuda::findImages(const tprt_device_code &code,
                                          const Context &context) {
  int32_t own = context.getArchitecture();
  std::vector<const tprt_device_image *> usable;
  std::vector<std::string> found;
  for (int32_t i = 0; i < code.num_images; ++i) {
    const tprt_device_image &image = code.images[i];
    found.push_back(getName(image));
    if (image.arch <= own && (image.is_ptx || image.arch / 10 == own / 10))
      usable.push_back(&image);
  }
  if (usable.empty())
    throw inputError(
        context.getName() + " (sm_" + std::to_string(own) +
        ") can't run the program's kernels, which are for " +
        quotedList(found) +
        (own < 80 ? "; the oldest that can be compiled for is sm_80"
                  : "; compile with --target=cuda:sm_" + std::to_string(own)));
  std::sort(usable.begin(), usable.end(),
            [](const tprt_device_image *x, const tprt_device_image *y) {
              return std::pair(x->is_ptx, -x->arch) <
                     std::pair(y->is_ptx, -y->arch);
            });
  std::vector<KernelImage> images;
  for (const tprt_device_image *image : usable)
    images.push_back({"the kernels for " + getName(*image), image->data});
  return images;
}
