//===- FakeDriver.cpp - libcuda without a device --------------------------===//
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
  std::map<std::string, CUfunc_st> functions;
};
} // namespace tprt::cuda

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

/// The settings from the environment.
static Settings makeSettings() {
  Settings settings;
  auto set = [](auto &value, const char *variable) {
    if (const char *text = std::getenv(variable))
      value = std::atoi(text);
  };
  set(settings.driverVersion, "TPRT_FAKE_DRIVER_VERSION");
  set(settings.blasVersion, "TPRT_FAKE_CUBLASLT_VERSION");
  set(settings.ncclVersion, "TPRT_FAKE_NCCL_VERSION");
  set(settings.deviceCount, "TPRT_FAKE_DEVICES");
  return settings;
}

Device &fake::getDevice() {
  static auto &device = *[] { // outlives objects that free memory at exit
    auto *made = new Device;
    made->settings = makeSettings();
    return made;
  }();
  return device;
}

static thread_local CUcontext current = nullptr;

std::recursive_mutex &fake::getMutex() {
  static auto &mutex = *new std::recursive_mutex;
  return mutex;
}

void fake::addLive(void *object) {
  Lock lock(getMutex());
  getDevice().live.insert(object);
}

void fake::removeLive(void *object) {
  Lock lock(getMutex());
  getDevice().live.erase(object);
}

namespace {
/// Clears `live`, so that LeakSanitizer finds objects that weren't destroyed,
/// unless the device has failed or was given up.
struct AtExit {
  ~AtExit() {
    if (!getDevice().everFailed && getDevice().numRetained == 0)
      getDevice().live.clear();
  }
} atExit;
} // namespace

void fake::reset() {
  Lock lock(getMutex());
  Device &device = getDevice();
  device.settings = makeSettings();
  device.calls.clear();
  device.faults.clear();
  device.kernelsFail = device.kernelsHang = false;
  device.failure = CUDA_SUCCESS;
  device.maxPinned = 0;
  device.numQueries = 0;
}

std::vector<std::string> fake::getCalls() {
  Lock lock(getMutex());
  return getDevice().calls;
}

size_t fake::countCalls(const std::string &prefix) {
  Lock lock(getMutex());
  const std::vector<std::string> &calls = getDevice().calls;
  return std::count_if(
      calls.begin(), calls.end(),
      [&](const std::string &call) { return call.starts_with(prefix); });
}

void fake::failCall(const std::string &function, int32_t status, size_t skip) {
  Lock lock(getMutex());
  getDevice().faults.emplace(function, Fault{skip, status});
  getDevice().everFailed = true;
}

void fake::failKernels() {
  getDevice().kernelsFail = getDevice().everFailed = true;
}
void fake::hangKernels() {
  getDevice().kernelsHang = getDevice().everFailed = true;
}
Settings &fake::getSettings() { return getDevice().settings; }

size_t fake::getNumQueries() {
  Lock lock(getMutex());
  return getDevice().numQueries;
}

size_t fake::getAllocatedBytes() {
  Lock lock(getMutex());
  return getDevice().allocated;
}

size_t fake::getMaxPinnedBytes() {
  Lock lock(getMutex());
  return getDevice().maxPinned;
}

int32_t fake::note(const std::string &function, const std::string &details) {
  Device &device = getDevice();
  device.calls.push_back(details.empty() ? function : function + " " + details);
  for (auto [fault, end] = device.faults.equal_range(function); fault != end;
       ++fault)
    if (fault->second.skip-- == 0) {
      int32_t status = fault->second.status;
      device.faults.erase(fault);
      return status;
    }
  return 0;
}

bool fake::checkMemory(const void *address, size_t bytes) {
  Device &device = getDevice();
  auto begin = reinterpret_cast<uintptr_t>(address);
  auto found = device.allocations.upper_bound(begin);
  if (found != device.allocations.begin()) {
    --found;
    if (begin + bytes <= found->first + found->second)
      return true;
  }
  if (device.failure == CUDA_SUCCESS)
    std::fprintf(stderr, "fake device: %zu bytes at %p aren't allocated\n",
                 bytes, address);
  setFailed(ILLEGAL_ADDRESS);
  return false;
}

void fake::setFailed(int32_t status) {
  getDevice().everFailed = true;
  if (getDevice().failure == CUDA_SUCCESS)
    getDevice().failure = status;
}

std::string fake::describe(CUstream stream) {
  return "stream " + (stream ? std::to_string(stream->id) : "0");
}

CUresult fake::enter(const std::string &function, const std::string &details) {
  if (int32_t status = note(function, details))
    return status;
  if (!current)
    return 201; // invalid context
  return getDevice().failure;
}

//===----------------------------------------------------------------------===//
// The device
//===----------------------------------------------------------------------===//

EXPORT cuInit(unsigned) {
  Lock lock(getMutex());
  return note("cuInit");
}

EXPORT cuDriverGetVersion(int *version) {
  *version = getDevice().settings.driverVersion;
  return CUDA_SUCCESS;
}

static const std::pair<CUresult, const char *> names[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
    {NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
    {INVALID_PTX, "CUDA_ERROR_INVALID_PTX"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY"},
    {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    {CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE"},
    {CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
    {CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
};

EXPORT cuGetErrorName(CUresult result, const char **name) {
  *name = "CUDA_ERROR_UNKNOWN";
  for (auto [known, text] : names)
    if (known == result)
      *name = text;
  return CUDA_SUCCESS;
}

EXPORT cuGetErrorString(CUresult, const char **text) {
  *text = "as the fake device says";
  return CUDA_SUCCESS;
}

EXPORT cuDeviceGet(CUdevice *device, int index) {
  *device = index;
  return CUDA_SUCCESS;
}

EXPORT cuDeviceGetCount(int *count) {
  *count = getDevice().settings.deviceCount;
  return *count == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

EXPORT cuDeviceGetName(char *name, int length, CUdevice) {
  std::snprintf(name, length, "fake device");
  return CUDA_SUCCESS;
}

EXPORT cuDeviceGetAttribute(int *value, int32_t attribute, CUdevice) {
  int32_t architecture = getDevice().settings.architecture;
  if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
    *value = architecture / 10;
  else if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
    *value = architecture % 10;
  else
    return INVALID_VALUE;
  return CUDA_SUCCESS;
}

EXPORT cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  Lock lock(getMutex());
  *context = &getDevice().context;
  ++getDevice().numRetained;
  return CUDA_SUCCESS;
}
EXPORT cuDevicePrimaryCtxRelease_v2(CUdevice) {
  Lock lock(getMutex());
  --getDevice().numRetained;
  return CUDA_SUCCESS;
}
EXPORT cuCtxSetCurrent(CUcontext context) {
  current = context;
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

EXPORT cuMemGetInfo_v2(size_t *free, size_t *total) {
  Lock lock(getMutex());
  *total = getDevice().settings.memoryBytes;
  *free = *total - getDevice().allocated;
  return CUDA_SUCCESS;
}

void *fake::allocateMemory(size_t bytes, size_t alignment) {
  Lock lock(getMutex());
  Device &device = getDevice();
  if (device.allocated + bytes > device.settings.memoryBytes)
    return nullptr;
  void *memory = std::aligned_alloc(alignment, (bytes + alignment - 1) /
                                                   alignment * alignment);
  if (!memory)
    return nullptr;
  std::memset(memory, 0xFF, bytes); // NaN as f32, f64, f16 and bf16
  device.allocations[reinterpret_cast<uintptr_t>(memory)] = bytes;
  device.allocated += bytes;
  return memory;
}

bool fake::releaseMemory(void *memory) {
  Lock lock(getMutex());
  Device &device = getDevice();
  auto found = device.allocations.find(reinterpret_cast<uintptr_t>(memory));
  if (found == device.allocations.end())
    return false;
  device.allocated -= found->second;
  device.allocations.erase(found);
  std::free(memory);
  return true;
}

EXPORT cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  Lock lock(getMutex());
  if (CUresult result = enter("cuMemAlloc", std::to_string(bytes)))
    return result;
  if (bytes == 0)
    return INVALID_VALUE;
  void *memory = allocateMemory(bytes, 256);
  *address = toDevice(memory);
  return memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

// The real driver waits for the device here, which could deadlock if ranks wait
// for each other. The fake doesn't wait, so code that relies on this frees
// memory that is still in use.
EXPORT cuMemFree_v2(CUdeviceptr address) {
  if (!releaseMemory(reinterpret_cast<void *>(address)))
    return INVALID_VALUE;
  return CUDA_SUCCESS;
}

EXPORT cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  Lock lock(getMutex());
  if (CUresult result = enter("cuMemHostAlloc", std::to_string(bytes)))
    return result;
  Device &device = getDevice();
  *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!*address)
    return CUDA_ERROR_OUT_OF_MEMORY;
  device.pinned[*address] = bytes;
  size_t total = 0;
  for (auto [memory, size] : device.pinned)
    total += size;
  device.maxPinned = std::max(device.maxPinned, total);
  return CUDA_SUCCESS;
}

EXPORT cuMemFreeHost(void *address) {
  Lock lock(getMutex());
  if (getDevice().pinned.erase(address) == 0)
    return INVALID_VALUE;
  std::free(address);
  return CUDA_SUCCESS;
}

/// Copies of pageable memory would wait for the stream; the runtime has none.
static bool isPinned(const void *address, size_t bytes) {
  auto begin = static_cast<const char *>(address);
  for (auto [memory, size] : getDevice().pinned)
    if (begin >= memory && begin + bytes <= static_cast<char *>(memory) + size)
      return true;
  return false;
}

static const void *toHost(CUdeviceptr address) {
  return reinterpret_cast<const void *>(address);
}
static void *toHostMutable(CUdeviceptr address) {
  return reinterpret_cast<void *>(address);
}

EXPORT cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes,
                            CUstream stream) {
  Lock lock(getMutex());
  if (CUresult result = enter("cuMemcpyHtoDAsync",
                              std::to_string(bytes) + " " + describe(stream)))
    return result;
  if (!isPinned(src, bytes))
    return INVALID_VALUE;
  enqueue(stream, [=] {
    if (checkMemory(toHost(dst), bytes))
      std::memcpy(toHostMutable(dst), src, bytes);
    return true;
  });
  return CUDA_SUCCESS;
}

EXPORT cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes,
                            CUstream stream) {
  Lock lock(getMutex());
  if (CUresult result = enter("cuMemcpyDtoHAsync",
                              std::to_string(bytes) + " " + describe(stream)))
    return result;
  if (!isPinned(dst, bytes))
    return INVALID_VALUE;
  enqueue(stream, [=] {
    if (checkMemory(toHost(src), bytes))
      std::memcpy(dst, toHost(src), bytes);
    return true;
  });
  return CUDA_SUCCESS;
}

EXPORT cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
                            CUstream stream) {
  Lock lock(getMutex());
  if (CUresult result = enter("cuMemcpyDtoDAsync",
                              std::to_string(bytes) + " " + describe(stream)))
    return result;
  enqueue(stream, [=] {
    if (checkMemory(toHost(src), bytes) && checkMemory(toHost(dst), bytes))
      std::memmove(toHostMutable(dst), toHost(src), bytes);
    return true;
  });
  return CUDA_SUCCESS;
}

EXPORT cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream) {
  Lock lock(getMutex());
  CUDA_MEMCPY2D rows = *copy;
  if (CUresult result =
          enter("cuMemcpy2DAsync", std::to_string(rows.Height) + " x " +
                                       std::to_string(rows.WidthInBytes) + " " +
                                       describe(stream)))
    return result;
  bool fits = rows.srcMemoryType == CU_MEMORYTYPE_DEVICE &&
              rows.dstMemoryType == CU_MEMORYTYPE_DEVICE &&
              rows.srcPitch >= rows.WidthInBytes &&
              rows.dstPitch >= rows.WidthInBytes && rows.srcXInBytes == 0 &&
              rows.srcY == 0 && rows.dstXInBytes == 0 && rows.dstY == 0;
  if (!fits)
    return INVALID_VALUE;
  enqueue(stream, [rows] {
    for (size_t i = 0; i < rows.Height; ++i) {
      CUdeviceptr src = rows.srcDevice + i * rows.srcPitch;
      CUdeviceptr dst = rows.dstDevice + i * rows.dstPitch;
      if (checkMemory(toHost(src), rows.WidthInBytes) &&
          checkMemory(toHost(dst), rows.WidthInBytes))
        std::memmove(toHostMutable(dst), toHost(src), rows.WidthInBytes);
    }
    return true;
  });
  return CUDA_SUCCESS;
}

/// Sets `height` rows of `width` elements.
template <typename T>
static CUresult setMemory(const char *function, CUdeviceptr dst, size_t pitch,
                          T value, size_t width, size_t height,
                          CUstream stream) {
  Lock lock(getMutex());
  if (CUresult result = enter(function, std::to_string(width * height) + " " +
                                            describe(stream)))
    return result;
  if (dst % sizeof(T) != 0)
    return INVALID_VALUE;
  enqueue(stream, [=] {
    for (size_t i = 0; i < height; ++i) {
      CUdeviceptr row = dst + i * pitch;
      if (isPinned(toHost(row), width * sizeof(T)) ||
          checkMemory(toHost(row), width * sizeof(T)))
        std::fill_n(static_cast<T *>(toHostMutable(row)), width, value);
    }
    return true;
  });
  return CUDA_SUCCESS;
}

EXPORT cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count,
                       CUstream stream) {
  return setMemory("cuMemsetD8Async", dst, 0, value, count, 1, stream);
}
EXPORT cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count,
                        CUstream stream) {
  return setMemory("cuMemsetD16Async", dst, 0, value, count, 1, stream);
}
EXPORT cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count,
                        CUstream stream) {
  return setMemory("cuMemsetD32Async", dst, 0, value, count, 1, stream);
}
EXPORT cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned value,
                          size_t width, size_t height, CUstream stream) {
  return setMemory("cuMemsetD2D32Async", dst, pitch, value, width, height,
                   stream);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// The size of the ELF object at `data`, from its header.
static size_t getObjectSize(const void *data) {
  auto *header = static_cast<const Elf64_Ehdr *>(data);
  return header->e_shoff + size_t(header->e_shnum) * header->e_shentsize;
}

EXPORT cuModuleLoadDataEx(CUmodule *module, const void *data, unsigned,
                          int32_t *, void **) {
  Lock lock(getMutex());
  bool isObject = std::memcmp(data, ELFMAG, SELFMAG) == 0;
  if (CUresult result =
          enter("cuModuleLoadDataEx", isObject ? "object" : "ptx"))
    return result;
  auto loaded = std::make_unique<CUmod_st>();
  if (!isObject) {
    loaded->ptx = static_cast<const char *>(data);
    if (loaded->ptx.find(".entry tprt_") == std::string::npos)
      return INVALID_PTX; // the fake can't run it
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
    return NO_BINARY;
  loaded->handle =
      ::dlopen(("/proc/self/fd/" + std::to_string(loaded->descriptor)).c_str(),
               RTLD_NOW | RTLD_LOCAL);
  if (!loaded->handle) {
    std::fprintf(stderr, "fake device: %s\n", ::dlerror());
    return NO_BINARY;
  }
  *module = loaded.release();
  addLive(*module);
  return CUDA_SUCCESS;
}

EXPORT cuModuleUnload(CUmodule module) {
  Lock lock(getMutex());
  removeLive(module);
  if (module->handle)
    ::dlclose(module->handle);
  if (module->descriptor >= 0)
    ::close(module->descriptor);
  delete module;
  return CUDA_SUCCESS;
}

EXPORT cuModuleGetFunction(CUfunction *function, CUmodule module,
                           const char *name) {
  Lock lock(getMutex());
  auto found = module->functions.find(name);
  if (found == module->functions.end()) {
    CUfunc_st made;
    if (module->handle) {
      if (!findEmulated(module->handle, name, made))
        return NOT_FOUND;
    } else {
      if (module->ptx.find(".entry " + std::string(name) + "(") ==
          std::string::npos)
        return NOT_FOUND;
      made = makeOwn(name);
    }
    found = module->functions.emplace(name, std::move(made)).first;
  }
  *function = &found->second;
  return CUDA_SUCCESS;
}

EXPORT cuFuncSetAttribute(CUfunction function, int32_t attribute, int value) {
  Lock lock(getMutex());
  return enter("cuFuncSetAttribute", function->name + " " +
                                         std::to_string(attribute) + " " +
                                         std::to_string(value));
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
  if (threads == 0 || threads > 1024 || gridX == 0 || gridY != 1 ||
      gridZ != 1 || blockY != 1 || blockZ != 1 || sharedBytes > (227 << 10))
    return INVALID_VALUE;
  // The values are copied now, because the kernel runs later.
  std::vector<std::vector<char>> values;
  size_t count = std::max<size_t>(function->numArguments, 1);
  size_t bytes = function->numArguments ? 8 : function->argumentBytes;
  for (size_t i = 0; i < count; ++i)
    values.emplace_back(static_cast<char *>(parameters[i]),
                        static_cast<char *>(parameters[i]) + bytes);
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
