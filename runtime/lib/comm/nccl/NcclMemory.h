//===- NcclMemory.h - Memory that NCCL knows --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What NCCL has allocated and registered it moves to other devices without
// copying it to buffers of its own first; in symmetric memory, ranks reduce
// what they read at the same offset of each other's.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_COMM_NCCL_NCCLMEMORY_H
#define TPRT_LIB_COMM_NCCL_NCCLMEMORY_H

#include "comm/nccl/Nccl.h"
#include "cuda/Context.h"

namespace tprt::cuda {

/// Uninitialised memory of the device that can be registered, aligned to 4096
/// bytes; null where the loaded NCCL has no such memory. Throws an execution
/// error when there isn't enough.
std::shared_ptr<std::byte> allocateForNccl(const ContextPtr &context,
                                           int64_t bytes);

/// Memory that is registered with a communicator, as long as this lives.
class Registration {
public:
  /// All ranks of `comm` call it, with memory of allocateForNccl and of one
  /// size, and use the same offsets of it in the same collectives: where it
  /// turns out symmetric, NCCL computes others' addresses by this rank's
  /// offsets.
  Registration(ncclComm_t comm, std::byte *memory, int64_t bytes);
  ~Registration();
  Registration(const Registration &) = delete;
  Registration &operator=(const Registration &) = delete;

  /// Otherwise it is registered for this rank's own transfers.
  bool isSymmetric() const { return window != nullptr; }

  /// The communicator has been aborted, and what was registered with it.
  void forget();

private:
  const Nccl &nccl = Nccl::get();
  ncclComm_t comm;
  void *handle = nullptr;
  ncclWindow_t window = nullptr;
};

} // namespace tprt::cuda

#endif // TPRT_LIB_COMM_NCCL_NCCLMEMORY_H
