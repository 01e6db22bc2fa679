//===- FakeMemory.cpp - libcuda's memory without a device -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "State.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt::fake;

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
  Lock lock(getMutex());
  if (CUresult result = beginFree("cuMemFree"))
    return result;
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
  if (CUresult result = beginFree("cuMemFreeHost"))
    return result;
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
