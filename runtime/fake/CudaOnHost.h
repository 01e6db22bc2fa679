//===- CudaOnHost.h - CUDA C++ of the kernels, on the host ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles the sources of lib/cuda for the emulator. Threads of a block are
// fibers, and blocks run one after the other, so shared memory can be static.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_FAKE_CUDAONHOST_H
#define TPRT_FAKE_CUDAONHOST_H

#include "Emulator.h"
#include "Kernels.h"

#include "tprt/Dtype.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#define __device__ inline
#define __forceinline__
#define __global__
#define __shared__ static
#define __grid_constant__
#define __launch_bounds__(...)

namespace tprt::fake {

struct EmulatedIndex {
  uint32_t x;
};

/// The running thread.
inline const tp_emulated_thread *&getThread() {
  thread_local const tp_emulated_thread *thread = nullptr;
  return thread;
}

/// A thread's copies to shared memory that it hasn't waited for yet, by the
/// group that they were committed in. They happen as late as possible.
struct EmulatedCopies {
  struct Copy {
    void *dst;
    const void *src;
    size_t bytes;
  };
  std::vector<Copy> open;
  std::deque<std::vector<Copy>> committed;

  static EmulatedCopies &get() {
    thread_local std::map<const tp_emulated_thread *, EmulatedCopies> all;
    return all[getThread()];
  }

  void commit() {
    committed.push_back(std::move(open));
    open.clear();
  }
  /// Waits for all groups but the last `prior`.
  void wait(size_t prior) {
    for (; committed.size() > prior; committed.pop_front())
      for (auto [dst, src, bytes] : committed.front())
        std::memcpy(dst, src, bytes);
  }
  /// Called at the end of the thread. Copies that it didn't wait for may happen
  /// at any time on a device, also after others use that memory again.
  void end() {
    commit();
    bool isOpen = std::any_of(committed.begin(), committed.end(),
                              [](auto &group) { return !group.empty(); });
    wait(0);
    if (!isOpen)
      return;
    std::fprintf(stderr, "fake device: a thread ends before its copies to "
                         "shared memory\n");
    setFailed(719); // the launch failed
  }
};

/// A kernel with the signature that the emulator calls.
template <typename Arguments, void (*kernel)(const Arguments)>
void enterKernel(const tp_emulated_thread *self, void *const *arguments) {
  getThread() = self;
  kernel(*static_cast<const Arguments *>(arguments[0]));
  EmulatedCopies::get().end();
}

/// The kernel as a function of the driver's, which must be launched with so much
/// dynamic shared memory. It runs if `check` finds that its operands are
/// allocated.
template <typename Arguments, void (*kernel)(const Arguments)>
cuda::CUfunc_st makeKernel(const std::string &name,
                           bool (*check)(const Arguments &),
                           uint32_t sharedBytes = 0) {
  return {name, 0, sizeof(Arguments), sharedBytes,
          [=](uint32_t grid, uint32_t block, void *const *arguments) {
            if (check(*static_cast<const Arguments *>(arguments[0])))
              runEmulated(enterKernel<Arguments, kernel>, grid, block,
                          sharedBytes, arguments);
          }};
}

} // namespace tprt::fake

#define threadIdx (tprt::fake::EmulatedIndex{tprt::fake::getThread()->thread})
#define blockIdx (tprt::fake::EmulatedIndex{tprt::fake::getThread()->block})
#define blockDim                                                               \
  (tprt::fake::EmulatedIndex{tprt::fake::getThread()->block_size})
#define gridDim (tprt::fake::EmulatedIndex{tprt::fake::getThread()->grid_size})

inline void __syncthreads() {
  const tp_emulated_thread *self = tprt::fake::getThread();
  tp_emulated_barrier(self); // others run here
  tprt::fake::getThread() = self;
}

inline void __threadfence() {}

/// Adds 1, or sets 0 if `value` has been reached. Returns the old value.
inline uint32_t atomicInc(uint32_t *counter, uint32_t value) {
  uint32_t old = *counter;
  *counter = old >= value ? 0 : old + 1;
  return old;
}

struct __attribute__((may_alias)) uint4 {
  uint32_t x, y, z, w;
};
struct __attribute__((may_alias)) float4 {
  float x, y, z, w;
};

template <typename T>
T __ldcg(const T *data) {
  return *data;
}

inline void __pipeline_memcpy_async(void *dst, const void *src, size_t bytes) {
  tprt::fake::EmulatedCopies::get().open.push_back({dst, src, bytes});
}
inline void __pipeline_commit() { tprt::fake::EmulatedCopies::get().commit(); }
inline void __pipeline_wait_prior(size_t prior) {
  tprt::fake::EmulatedCopies::get().wait(prior);
}

// Shuffles of whole warps. Every thread chooses whose value it gets.
template <typename T>
T __shfl_xor_sync(unsigned, T value, unsigned mask) {
  static_assert(sizeof(T) % 4 == 0);
  const tp_emulated_thread *self = tprt::fake::getThread();
  uint32_t words[sizeof(T) / 4];
  std::memcpy(words, &value, sizeof(T));
  for (uint32_t &word : words)
    word = tp_emulated_shuffle_xor(self, word, mask);
  tprt::fake::getThread() = self; // others ran
  std::memcpy(&value, words, sizeof(T));
  return value;
}
template <typename T>
T __shfl_sync(unsigned mask, T value, unsigned lane, unsigned width) {
  return __shfl_xor_sync(mask, value, (threadIdx.x ^ lane) & (width - 1));
}
inline bool __any_sync(unsigned mask, bool value) {
  uint32_t any = value;
  for (uint32_t bit = 1; bit < 32; bit *= 2)
    any |= __shfl_xor_sync(mask, any, bit);
  return any;
}

using __half = tprt::Half;
using __nv_bfloat16 = tprt::BFloat16;

inline float __half2float(__half value) {
  return tprt::castElement<float>(value);
}
inline float __bfloat162float(__nv_bfloat16 value) {
  return tprt::castElement<float>(value);
}
inline __half __float2half_rn(float value) {
  return tprt::castElement<__half>(value);
}
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  return tprt::castElement<__nv_bfloat16>(value);
}

#endif // TPRT_FAKE_CUDAONHOST_H
