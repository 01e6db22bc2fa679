//===- FakeModules.cpp - libcuda's modules and kernels without a device ---===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Emulator.h"
#include "Kernels.h"
#include "State.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt::fake;

namespace tprt::cuda {
struct CUmod_st {
  void *handle = nullptr; ///< of an emulated image
  int descriptor = -1;
  std::string ptx;
  std::optional<Cubin> cubin;
  std::map<std::string, CUfunc_st> functions;
};
} // namespace tprt::cuda

/// The size of the ELF object at `data`, from its header.
static size_t getObjectSize(const void *data) {
  auto *header = static_cast<const Elf64_Ehdr *>(data);
  return header->e_shoff + size_t(header->e_shnum) * header->e_shentsize;
}

/// "ptx", "cubin 90" for real device code, or "object" for an emulated one.
static std::string describeImage(const void *data) {
  if (isCubin(data))
    return "cubin " + std::to_string(readCubin(data).architecture);
  return isObject(data) ? "object" : "ptx";
}

/// The runtime's own kernels, which the fake has code for, are all that it can
/// run of PTX and cubins.
static bool isOwn(const std::string &kernel) {
  return kernel.starts_with("tprt_");
}

EXPORT cuModuleLoadDataEx(CUmodule *module, const void *data, unsigned,
                          int32_t *, void **) {
  Lock lock(getMutex());
  std::string kind = describeImage(data);
  if (CUresult result = enter("cuModuleLoadDataEx", kind))
    return result;
  auto loaded = std::make_unique<CUmod_st>();
  if (kind.starts_with("cubin")) {
    loaded->cubin = readCubin(data);
    if (CUresult result = checkCubin(*loaded->cubin))
      return result;
    if (std::none_of(loaded->cubin->kernels.begin(),
                     loaded->cubin->kernels.end(),
                     [](const auto &kernel) { return isOwn(kernel.first); }))
      return CUDA_ERROR_NO_BINARY_FOR_GPU;
    *module = loaded.release();
    addLive(*module);
    return CUDA_SUCCESS;
  }
  if (kind == "ptx") {
    loaded->ptx = static_cast<const char *>(data);
    if (CUresult result = checkPtx(loaded->ptx))
      return result;
    if (loaded->ptx.find(".entry tprt_") == std::string::npos)
      return CUDA_ERROR_INVALID_PTX; // the fake can't run it
    *module = loaded.release();
    addLive(*module);
    return CUDA_SUCCESS;
  }
  // Lets the images' references to the emulator resolve to this library.
  Dl_info info = {};
  if (::dladdr(reinterpret_cast<void *>(&tp_emulated_barrier), &info))
    ::dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  loaded->descriptor = ::memfd_create("image", MFD_CLOEXEC);
  size_t size = getObjectSize(data);
  if (::write(loaded->descriptor, data, size) != static_cast<ssize_t>(size))
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  loaded->handle =
      ::dlopen(("/proc/self/fd/" + std::to_string(loaded->descriptor)).c_str(),
               RTLD_NOW | RTLD_LOCAL);
  if (!loaded->handle) {
    std::fprintf(stderr, "fake device: %s\n", ::dlerror());
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  *module = loaded.release();
  addLive(*module);
  return CUDA_SUCCESS;
}

EXPORT cuModuleUnload(CUmodule module) {
  Lock lock(getMutex());
  if (CUresult result = beginFree("cuModuleUnload"))
    return result;
  removeLive(module);
  if (module->handle)
    ::dlclose(module->handle);
  if (module->descriptor >= 0)
    ::close(module->descriptor);
  delete module;
  return CUDA_SUCCESS;
}

/// Finds the kernel `name` of an emulated image, loaded as `handle`.
static std::optional<CUfunc_st> findEmulated(void *handle,
                                             const std::string &name) {
  auto kernel =
      reinterpret_cast<tp_emulated_kernel>(::dlsym(handle, name.c_str()));
  auto *sharedBytes = static_cast<const int32_t *>(
      ::dlsym(handle, (name + "_shared_bytes").c_str()));
  auto *numArguments = static_cast<const int32_t *>(
      ::dlsym(handle, (name + "_num_arguments").c_str()));
  auto *maxThreads = static_cast<const int32_t *>(
      ::dlsym(handle, (name + "_max_threads").c_str()));
  if (!kernel || !sharedBytes || !numArguments || !maxThreads)
    return std::nullopt;
  auto shared = static_cast<uint32_t>(*sharedBytes);
  return CUfunc_st{name,
                   static_cast<size_t>(*numArguments),
                   0,
                   shared,
                   [=](uint32_t grid, uint32_t block, void *const *arguments) {
                     runEmulated(kernel, grid, block, shared, arguments);
                   },
                   {.maxThreads = static_cast<uint32_t>(*maxThreads)}};
}

static std::optional<CUfunc_st> find(const CUmod_st &module,
                                     const std::string &name) {
  if (module.handle)
    return findEmulated(module.handle, name);
  std::optional<KernelLimits> limits;
  if (!module.cubin)
    limits = findPtxLimits(module.ptx, name);
  else if (auto found = module.cubin->kernels.find(name);
           found != module.cubin->kernels.end())
    limits = found->second;
  if (!limits)
    return std::nullopt;
  for (auto find : {findReduction, findEpilogue, findGemv, findAttention})
    if (std::optional<CUfunc_st> kernel = find(name)) {
      kernel->limits = *limits;
      return kernel;
    }
  return std::nullopt;
}

EXPORT cuModuleGetFunction(CUfunction *function, CUmodule module,
                           const char *name) {
  Lock lock(getMutex());
  auto found = module->functions.find(name);
  if (found == module->functions.end()) {
    std::optional<CUfunc_st> made = find(*module, name);
    if (!made)
      return NOT_FOUND;
    found = module->functions.emplace(name, std::move(*made)).first;
  }
  *function = &found->second;
  return CUDA_SUCCESS;
}

EXPORT cuFuncSetAttribute(CUfunction function, int32_t attribute, int value) {
  Lock lock(getMutex());
  if (CUresult result = enter("cuFuncSetAttribute",
                              function->name + " " + std::to_string(attribute) +
                                  " " + std::to_string(value)))
    return result;
  int most = getDevice().settings.sharedBytes;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
      value < 0 || value > most)
    return INVALID_VALUE;
  function->maxSharedBytes = value;
  return CUDA_SUCCESS;
}

/// Whether the bits of an argument are an address of the host's memory, which a
/// real device can't read: mapped, but not in an allocation nor at its end.
static bool isHostAddress(uint64_t bits) {
  const std::map<uintptr_t, size_t> &allocations = getDevice().allocations;
  auto next = allocations.upper_bound(bits);
  if (next != allocations.begin()) {
    auto [begin, size] = *std::prev(next);
    if (bits <= begin + size)
      return false;
  }
  auto pageSize = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  void *page = reinterpret_cast<void *>(bits / pageSize * pageSize);
  return page && ::msync(page, pageSize, MS_ASYNC) == 0;
}

static size_t getCeil(size_t value, size_t unit) {
  return (value + unit - 1) / unit * unit;
}

EXPORT cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY,
                      unsigned gridZ, unsigned blockX, unsigned blockY,
                      unsigned blockZ, unsigned sharedBytes, CUstream stream,
                      void **parameters, void **) {
  Lock lock(getMutex());
  if (CUresult result =
          enter("cuLaunchKernel",
                function->name + " grid " + std::to_string(gridX) + " block " +
                    std::to_string(blockX) + " " + describe(stream)))
    return result;
  size_t threads = size_t(blockX) * blockY * blockZ;
  if (threads == 0 || threads > function->limits.maxThreads || gridX == 0 ||
      gridY != 1 || gridZ != 1 || blockY != 1 || blockZ != 1 ||
      sharedBytes > function->maxSharedBytes)
    return INVALID_VALUE;
  constexpr size_t warp = 32, unit = 8, registersOfBlock = 65536;
  if (getCeil(threads, warp) * getCeil(function->limits.registers, unit) >
      registersOfBlock)
    return LAUNCH_OUT_OF_RESOURCES;
  if (function->argumentBytes > 0 && sharedBytes != function->sharedBytes)
    return INVALID_VALUE; // a kernel of the runtime's own
  // The values are copied now, because the kernel runs later.
  std::vector<std::vector<char>> values;
  size_t count = std::max<size_t>(function->numArguments, 1);
  size_t bytes = function->numArguments ? 8 : function->argumentBytes;
  for (size_t i = 0; i < count; ++i)
    values.emplace_back(static_cast<char *>(parameters[i]),
                        static_cast<char *>(parameters[i]) + bytes);
  for (size_t i = 0; i < function->numArguments; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, parameters[i], sizeof(bits));
    if (!isHostAddress(bits))
      continue;
    std::fprintf(stderr,
                 "fake device: argument %zu of kernel '%s' is an address of "
                 "the host's memory\n",
                 i, function->name.c_str());
    setFailed(ILLEGAL_ADDRESS);
  }
  enqueue(stream, [=, values = std::move(values)]() mutable {
    if (getDevice().kernelsHang)
      return false;
    if (getDevice().kernelsFail) {
      setFailed(ILLEGAL_ADDRESS);
      return true;
    }
    std::vector<void *> arguments;
    for (std::vector<char> &value : values)
      arguments.push_back(value.data());
    function->run(gridX, blockX, arguments.data());
    return true;
  });
  return CUDA_SUCCESS;
}
