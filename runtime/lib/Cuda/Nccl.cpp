//===- Nccl.cpp - NCCL ---------------------------------------------------===//

#include "Cuda/Nccl.h"

using namespace tprt;
using namespace tprt::cuda;

Nccl::Nccl() {
  // The first one with ncclCommSplit.
  Library library({"NCCL", {"libnccl.so.2"}, {2, 18}});
#define TPRT_FUNCTION(name, result, parameters) library.find(#name, name);
  TPRT_NCCL_FUNCTIONS(TPRT_FUNCTION)
#undef TPRT_FUNCTION
  int version = 0; // 22809 is 2.28.9
  if (ncclGetVersion(&version) == ncclSuccess)
    library.checkVersion({version / 10000, version % 10000 / 100});
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
