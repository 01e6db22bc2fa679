//===- Context.h - A CUDA device and what belongs to it ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_CONTEXT_H
#define TPRT_LIB_CUDA_CONTEXT_H

#include "cuda/CudaDevice.h"
#include "cuda/Driver.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>

namespace tprt::cuda {

/// The context of a device, shared by all libraries on top of the driver.
class Context {
public:
  /// Throws an input error when there is no such device.
  explicit Context(int index);
  ~Context();
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  const Driver &getDriver() const { return driver; }
  /// 90 for compute capability 9.0.
  int32_t getArchitecture() const { return architecture; }
  /// How many multiprocessors there are.
  int32_t getNumProcessors() const { return numProcessors; }
  /// How many bytes of shared memory a block may have.
  int32_t getMaxSharedBytes() const { return maxSharedBytes; }
  /// "NVIDIA H200".
  const std::string &getModel() const { return model; }
  /// The bytes of its L2 cache.
  int64_t getCacheBytes() const { return cacheBytes; }
  /// "device 0 ('NVIDIA H200')".
  const std::string &getName() const { return name; }

  /// Makes this context current for this thread.
  void makeCurrent() const;

  /// Gives up on the device because its work doesn't end. From now on nothing
  /// waits for it, and nothing is freed, because the driver would wait.
  void abandon() const { isAbandoned = true; }
  /// Calls `free` with this context current, unless the device has been given
  /// up. Destructors call it, so what it throws is kept for reportFrees().
  template <typename Free>
  void free(Free free) const noexcept {
    if (isAbandoned)
      return;
    try {
      makeCurrent();
      free(driver);
    } catch (const std::exception &error) {
      keepFailure(error.what());
    }
  }
  /// Throws an execution error if something couldn't be freed.
  void reportFrees() const;

private:
  void keepFailure(const char *what) const noexcept;

  const Driver &driver;
  CUdevice device = 0;
  CUcontext context = nullptr;
  /// From 1, unlike the driver's handle never that of a context that has ended.
  uint64_t id = 0;
  int32_t architecture = 0, numProcessors = 0, maxSharedBytes = 0;
  int64_t cacheBytes = 0;
  std::string model, name;
  mutable std::atomic<bool> isAbandoned{false};
  mutable std::mutex mutex;    ///< guards the following
  mutable std::string failure; ///< of the first free that failed
};

using ContextPtr = std::shared_ptr<const Context>;

/// Memory of the device, aligned to 256 bytes. Throws an execution error that
/// says how much memory there is.
std::shared_ptr<std::byte> allocate(const ContextPtr &context, int64_t bytes);

/// Memory that grows. What has been outgrown is kept, because enqueued work may
/// still use it, until dropOutgrown().
class GrowingMemory {
public:
  /// At least `bytes` bytes; the next call may return the same memory.
  std::byte *get(const ContextPtr &context, int64_t bytes);
  /// Called when all enqueued work is done.
  void dropOutgrown();

private:
  std::vector<std::shared_ptr<std::byte>> blocks; ///< the last is the largest
  int64_t size = 0;
};

/// Memory of the host that the device copies from and to at full speed.
std::shared_ptr<std::byte> allocatePinned(const ContextPtr &context,
                                          int64_t bytes);

/// Makes an event. Events for timing are slower.
std::shared_ptr<CUevent_st> makeEvent(const ContextPtr &context,
                                      bool isTimed = false);

/// A stream that waits for no other unless told so.
std::shared_ptr<CUstream_st> makeStream(const ContextPtr &context);

/// Enqueues what tprt_fill does.
void fill(const Context &context, void *dst, uint64_t pattern, int32_t width,
          int64_t count, CUstream stream);

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_CONTEXT_H
