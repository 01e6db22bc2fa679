//===- Fake.h - CUDA's libraries without a device ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One shared object that stands for libcuda, libcublasLt, libcudnn and libnccl,
// for tests on machines without a GPU: the runtime loads it as it would load
// those. Memory is the host's, and kernels are code for the host (see
// Emulator.h).
//
// Its purpose is to find mistakes. Enqueued work runs as late as possible, and
// only if something waits for it, so a stream that should have waited for
// another reads data that isn't there yet. New memory is filled with garbage.
// Addresses are checked against allocations when work runs. Calls that aren't
// allowed while a stream is captured fail.
//
// Tests link it, and query and control it by the functions here.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_FAKE_FAKE_H
#define TPRT_FAKE_FAKE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#define TPRT_FAKE_API __attribute__((visibility("default")))

namespace tprt::fake {

/// Resets everything to the state of a new process, except allocations.
TPRT_FAKE_API void reset();

/// The calls since reset() that enqueue, load or allocate: "cuLaunchKernel
/// tprt_reduce_sum_f32 grid 1 block 256 stream 2", in the order of calls.
TPRT_FAKE_API std::vector<std::string> getCalls();
/// How many of them begin with `prefix`.
TPRT_FAKE_API size_t countCalls(const std::string &prefix);

/// The call of `function` after `skip` further ones returns `status` instead of
/// doing anything.
TPRT_FAKE_API void failCall(const std::string &function, int32_t status,
                            size_t skip = 0);
/// Kernels that run from now on fail as with an illegal address, which all
/// later calls of the driver return, until reset().
TPRT_FAKE_API void failKernels();
/// Kernels never finish, until reset(), or until they may go on.
TPRT_FAKE_API void hangKernels(bool hang = true);

struct Settings {
  int32_t driverVersion = 13000; ///< CUDA 13.0
  size_t blasVersion = 130100;
  int32_t blasAlgorithms = 3;    ///< proposed for a product
  int32_t fastestAlgorithm = 0;  ///< others take 100 ms more, to events
  int32_t hangingAlgorithm = -1; ///< doesn't end while it is set
  int32_t blasMilliseconds = 0;  ///< that a product takes, of the host's time
  size_t dnnVersion = 91900;
  int64_t maxDnnHead = 128; ///< elements of a head of cuDNN's attention
  int32_t ncclVersion = 22809;
  bool ncclHasWindows = true; ///< else it registers without one, and says so
  std::string hangingCall;    ///< this function of NCCL's waits until reset()
  int32_t deviceCount = 8;
  int32_t architecture = 0; ///< 90 for sm_90; 0: the emulator's own
  int32_t processors = 132;
  int32_t sharedBytes = 227 << 10; ///< that a block may have
  size_t memoryBytes = size_t(1) << 34;
};
/// The settings for later loads and calls. For processes that tests start, the
/// environment variables TPRT_FAKE_DRIVER_VERSION, TPRT_FAKE_CUBLASLT_VERSION,
/// TPRT_FAKE_NCCL_VERSION, TPRT_FAKE_DEVICES and TPRT_FAKE_NCCL_HANGS give
/// initial values.
TPRT_FAKE_API Settings &getSettings();

/// The objects that the program has made and not destroyed: events, modules,
/// and what cuBLASLt and NCCL have.
TPRT_FAKE_API size_t getNumObjects();

/// How often the host has asked whether a stream is done.
TPRT_FAKE_API size_t getNumQueries();

/// The bytes that are currently allocated on the device.
TPRT_FAKE_API size_t getAllocatedBytes();
/// The maximum of pinned host memory so far.
TPRT_FAKE_API size_t getMaxPinnedBytes();

} // namespace tprt::fake

#endif // TPRT_FAKE_FAKE_H
