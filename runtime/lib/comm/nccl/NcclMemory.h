//===- NcclMemory.h - Memory that NCCL knows --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NCCL sends data from memory that it has allocated and registered without
// first copying it to its own buffers. If the memory is symmetric, ranks also
// reduce directly what they read at the same offset of each other's memory.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_COMM_NCCL_NCCLMEMORY_H
#define TPRT_LIB_COMM_NCCL_NCCLMEMORY_H

#include "comm/nccl/Nccl.h"
#include "cuda/Context.h"

namespace tprt::cuda {

/// Uninitialized memory of the device that can be registered, aligned to 4096
/// bytes; null if the loaded NCCL has no such memory. Throws an execution error
/// if NCCL can't allocate it.
std::shared_ptr<std::byte> allocateForNccl(const ContextPtr &context,
                                           int64_t bytes);

/// Memory that is registered with a communicator, as long as this lives.
class Registration {
public:
  /// All ranks of `comm` call it, with memory from allocateForNccl of the same
  /// size, and use the same offsets in the same collectives. If the memory
  /// turns out to be symmetric, NCCL computes other ranks' addresses from this
  /// rank's offsets. Throws an execution error if NCCL refuses.
  Registration(ncclComm_t comm, std::byte *memory, int64_t bytes);
  ~Registration();
  Registration(const Registration &) = delete;
  Registration &operator=(const Registration &) = delete;

  /// Whether the memory is a window. Then it is symmetric if the devices can
  /// access each other's memory, which NCCL doesn't tell. If not, it is
  /// registered only for this rank's own transfers.
  bool isWindow() const { return window != nullptr; }

  /// Called when the communicator has been aborted, which also ended its
  /// registrations.
  void forget();

private:
  const Nccl &nccl = Nccl::get();
  ncclComm_t comm;
  void *handle = nullptr;
  ncclWindow_t window = nullptr;
};

} // namespace tprt::cuda

#endif // TPRT_LIB_COMM_NCCL_NCCLMEMORY_H
