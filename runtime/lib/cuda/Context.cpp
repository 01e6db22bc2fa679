//===- Context.cpp - A CUDA device and what belongs to it -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/Context.h"

#include <utility>

using namespace tprt;
using namespace tprt::cuda;

Context::Context(int index) : driver(Driver::get()) {
  int count = 0;
  TPRT_CUDA(driver, cuDeviceGetCount, &count);
  if (index < 0 || index >= count)
    throw inputError("there is no CUDA device " + std::to_string(index) +
                     ", the driver finds " + std::to_string(count));
  TPRT_CUDA(driver, cuDeviceGet, &device, index);
  char text[256] = {};
  TPRT_CUDA(driver, cuDeviceGetName, text, sizeof(text), device);
  model = text;
  name = "device " + std::to_string(index) + " ('" + model + "')";
  int major = 0, minor = 0;
  TPRT_CUDA(driver, cuDeviceGetAttribute, &major,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  TPRT_CUDA(driver, cuDeviceGetAttribute, &minor,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  architecture = 10 * major + minor;
  TPRT_CUDA(driver, cuDeviceGetAttribute, &numProcessors,
            CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  TPRT_CUDA(driver, cuDeviceGetAttribute, &maxSharedBytes,
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
  int cache = 0;
  TPRT_CUDA(driver, cuDeviceGetAttribute, &cache,
            CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device);
  cacheBytes = cache;
  TPRT_CUDA(driver, cuDevicePrimaryCtxRetain, &context, device);
  static std::atomic<uint64_t> numContexts{0};
  id = ++numContexts;
  makeCurrent();
}

Context::~Context() {
  free([&](const Driver &driver) {
    TPRT_CUDA(driver, cuDevicePrimaryCtxRelease, device);
  });
}

void Context::keepFailure(const char *what) const noexcept {
  std::lock_guard<std::mutex> lock(mutex);
  if (failure.empty())
    failure = what;
}

void Context::reportFrees() const {
  std::lock_guard<std::mutex> lock(mutex);
  if (!failure.empty())
    throw executionError(
        name + " failed to free a resource: " + std::exchange(failure, ""));
}

void Context::makeCurrent() const {
  thread_local uint64_t current = 0;
  if (current == id)
    return;
  TPRT_CUDA(driver, cuCtxSetCurrent, context);
  current = id;
}

static std::string formatBytes(size_t bytes) {
  return std::to_string(bytes) + " bytes";
}

std::shared_ptr<std::byte> cuda::allocate(const ContextPtr &context,
                                          int64_t bytes) {
  context->makeCurrent();
  const Driver &driver = context->getDriver();
  CUdeviceptr address = 0;
  // An empty block still gets an address of its own.
  CUresult result = driver.cuMemAlloc(&address, std::max<int64_t>(bytes, 1));
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    size_t free = 0, total = 0;
    driver.cuMemGetInfo(&free, &total);
    throw executionError("cannot allocate " + formatBytes(bytes) + " on " +
                         context->getName() + ": of " + formatBytes(total) +
                         ", " + std::to_string(free) + " are free");
  }
  driver.check(result, "cuMemAlloc");
  return {reinterpret_cast<std::byte *>(address), [context](std::byte *memory) {
            context->free([&](const Driver &driver) {
              TPRT_CUDA(driver, cuMemFree, toDevice(memory));
            });
          }};
}

std::byte *GrowingMemory::get(const ContextPtr &context, int64_t bytes) {
  if (blocks.empty() || size < bytes) {
    blocks.push_back(allocate(context, bytes));
    size = bytes;
  }
  return blocks.back().get();
}

void GrowingMemory::dropOutgrown() {
  if (blocks.size() > 1)
    blocks.erase(blocks.begin(), blocks.end() - 1);
}

std::shared_ptr<std::byte> cuda::allocatePinned(const ContextPtr &context,
                                                int64_t bytes) {
  context->makeCurrent();
  void *address = nullptr;
  TPRT_CUDA(context->getDriver(), cuMemHostAlloc, &address, bytes, 0);
  return {static_cast<std::byte *>(address), [context](std::byte *memory) {
            context->free([&](const Driver &driver) {
              TPRT_CUDA(driver, cuMemFreeHost, memory);
            });
          }};
}

std::shared_ptr<CUevent_st> cuda::makeEvent(const ContextPtr &context,
                                            bool isTimed) {
  context->makeCurrent();
  CUevent event = nullptr;
  TPRT_CUDA(context->getDriver(), cuEventCreate, &event,
            isTimed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
  return {event, [context](CUevent event) {
            context->free([&](const Driver &driver) {
              TPRT_CUDA(driver, cuEventDestroy, event);
            });
          }};
}

std::shared_ptr<CUstream_st> cuda::makeStream(const ContextPtr &context) {
  context->makeCurrent();
  CUstream stream = nullptr;
  TPRT_CUDA(context->getDriver(), cuStreamCreate, &stream,
            CU_STREAM_NON_BLOCKING);
  return {stream, [context](CUstream stream) {
            context->free([&](const Driver &driver) {
              TPRT_CUDA(driver, cuStreamDestroy, stream);
            });
          }};
}

void cuda::fill(const Context &context, void *dst, uint64_t pattern,
                int32_t width, int64_t count, CUstream stream) {
  if (count <= 0)
    return;
  const Driver &driver = context.getDriver();
  CUdeviceptr address = toDevice(dst);
  auto low = static_cast<uint32_t>(pattern);
  auto high = static_cast<uint32_t>(pattern >> 32);
  switch (width) {
  case 1:
    return TPRT_CUDA(driver, cuMemsetD8Async, address, low, count, stream);
  case 2:
    return TPRT_CUDA(driver, cuMemsetD16Async, address, low, count, stream);
  case 4:
    return TPRT_CUDA(driver, cuMemsetD32Async, address, low, count, stream);
  case 8:
    if (low == high)
      return TPRT_CUDA(driver, cuMemsetD32Async, address, low, 2 * count,
                       stream);
    // Set the two halves as columns of a matrix.
    TPRT_CUDA(driver, cuMemsetD2D32Async, address, 8, low, 1, count, stream);
    return TPRT_CUDA(driver, cuMemsetD2D32Async, address + 4, 8, high, 1, count,
                     stream);
  default:
    throw executionError("tprt_fill: width is " + std::to_string(width) +
                         ", expected 1, 2, 4 or 8");
  }
}
