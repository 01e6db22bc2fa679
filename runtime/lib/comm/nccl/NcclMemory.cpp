//===- NcclMemory.cpp - Memory that NCCL knows ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "comm/nccl/NcclMemory.h"

using namespace tprt;
using namespace tprt::cuda;

std::shared_ptr<std::byte> cuda::allocateForNccl(const ContextPtr &context,
                                                 int64_t bytes) {
  const Nccl &nccl = Nccl::get();
  if (!nccl.canRegister || bytes == 0)
    return nullptr;
  context->makeCurrent();
  void *memory = nullptr;
  ncclResult_t result = nccl.ncclMemAlloc(&memory, bytes);
  if (result != ncclSuccess)
    nccl.check(result,
               ("ncclMemAlloc of " + std::to_string(bytes) + " bytes on " +
                context->getName())
                   .c_str(),
               nullptr);
  return {static_cast<std::byte *>(memory), [context](std::byte *memory) {
            context->free([&](const Driver &) {
              const Nccl &nccl = Nccl::get();
              nccl.check(nccl.ncclMemFree(memory), "ncclMemFree", nullptr);
            });
          }};
}

Registration::Registration(ncclComm_t comm, std::byte *memory, int64_t bytes)
    : comm(comm) {
  // NCCL may return no window.
  if (nccl.canShare)
    nccl.check(nccl.ncclCommWindowRegister(comm, memory, bytes, &window,
                                           NCCL_WIN_COLL_SYMMETRIC),
               "ncclCommWindowRegister", comm);
  if (!window)
    nccl.check(nccl.ncclCommRegister(comm, memory, bytes, &handle),
               "ncclCommRegister", comm);
}

Registration::~Registration() {
  if (window)
    nccl.ncclCommWindowDeregister(comm, window);
  if (handle)
    nccl.ncclCommDeregister(comm, handle);
}

void Registration::forget() {
  window = nullptr;
  handle = nullptr;
}
