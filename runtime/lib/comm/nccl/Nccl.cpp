//===- Nccl.cpp - NCCL ----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "comm/nccl/Nccl.h"

using namespace tprt;
using namespace tprt::cuda;

Nccl::Nccl() {
  // The first version with ncclCommSplit.
  Library library({"NCCL", {"libnccl.so.2"}, {2, 18}});
#define TPRT_FUNCTION(name, result, parameters) library.find(#name, name);
  TPRT_NCCL_FUNCTIONS(TPRT_FUNCTION)
#undef TPRT_FUNCTION
  if (ncclGetVersion(&code) != ncclSuccess)
    throw executionError("NCCL doesn't tell its version");
  version = {code / 10000, code % 10000 / 100};
  library.checkVersion(version);
  // Newer versions may drop functions, and older versions have unfinished ones.
  bool isThere = true;
#define TPRT_FUNCTION(name, result, parameters)                                \
  library.findOptional(#name, name);                                           \
  isThere &= name != nullptr;
  TPRT_NCCL_MEMORY_FUNCTIONS(TPRT_FUNCTION)
  canRegister = isThere && version >= Version{2, 19};
  TPRT_NCCL_WINDOW_FUNCTIONS(TPRT_FUNCTION)
  canShare = isThere && version >= Version{2, 27};
#undef TPRT_FUNCTION
}

std::string Nccl::getVersionString() const {
  return version.toString() + "." + std::to_string(code % 100);
}

const Nccl &Nccl::get() {
  static const Nccl nccl;
  return nccl;
}

void Nccl::check(ncclResult_t result, const char *function,
                 ncclComm_t comm) const {
  if (result == ncclSuccess)
    return;
  const char *detail = ncclGetLastError(comm);
  throw executionError(std::string(function) + ": " +
                       ncclGetErrorString(result) +
                       (detail && *detail ? ": " + std::string(detail) : ""));
}
