//===- Nccl.h - NCCL --------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts of NCCL that the runtime uses, under NCCL's names.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_COMM_NCCL_NCCL_H
#define TPRT_LIB_COMM_NCCL_NCCL_H

#include "cuda/Driver.h"

namespace tprt::cuda {

struct ncclComm;
struct ncclWindow_vidmem;

using ncclResult_t = int32_t;
using ncclComm_t = ncclComm *;
using ncclWindow_t = ncclWindow_vidmem *;
using ncclDataType_t = int32_t;
using ncclRedOp_t = int32_t;
struct ncclUniqueId {
  char internal[128];
};

enum : int32_t {
  ncclSuccess = 0,

  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt64 = 4,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,

  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4,

  NCCL_SPLIT_NOCOLOR = -1,
  NCCL_WIN_COLL_SYMMETRIC = 1,
};

#define TPRT_NCCL_FUNCTIONS(X)                                                 \
  X(ncclGetVersion, ncclResult_t, (int *))                                     \
  X(ncclGetErrorString, const char *, (ncclResult_t))                          \
  X(ncclGetLastError, const char *, (ncclComm_t))                              \
  X(ncclGetUniqueId, ncclResult_t, (ncclUniqueId *))                           \
  X(ncclCommInitRank, ncclResult_t,                                            \
    (ncclComm_t *, int numRanks, ncclUniqueId, int rank))                      \
  X(ncclCommSplit, ncclResult_t,                                               \
    (ncclComm_t, int color, int key, ncclComm_t *, void *config))              \
  X(ncclCommDestroy, ncclResult_t, (ncclComm_t))                               \
  X(ncclCommAbort, ncclResult_t, (ncclComm_t))                                 \
  X(ncclCommGetAsyncError, ncclResult_t, (ncclComm_t, ncclResult_t *))         \
  X(ncclGroupStart, ncclResult_t, ())                                          \
  X(ncclGroupEnd, ncclResult_t, ())                                            \
  X(ncclAllReduce, ncclResult_t,                                               \
    (const void *send, void *receive, size_t count, ncclDataType_t,            \
     ncclRedOp_t, ncclComm_t, CUstream))                                       \
  X(ncclAllGather, ncclResult_t,                                               \
    (const void *send, void *receive, size_t sendCount, ncclDataType_t,        \
     ncclComm_t, CUstream))                                                    \
  X(ncclReduceScatter, ncclResult_t,                                           \
    (const void *send, void *receive, size_t receiveCount, ncclDataType_t,     \
     ncclRedOp_t, ncclComm_t, CUstream))                                       \
  X(ncclReduce, ncclResult_t,                                                  \
    (const void *send, void *receive, size_t count, ncclDataType_t,            \
     ncclRedOp_t, int root, ncclComm_t, CUstream))                             \
  X(ncclBroadcast, ncclResult_t,                                               \
    (const void *send, void *receive, size_t count, ncclDataType_t, int root,  \
     ncclComm_t, CUstream))                                                    \
  X(ncclSend, ncclResult_t,                                                    \
    (const void *, size_t count, ncclDataType_t, int peer, ncclComm_t,         \
     CUstream))                                                                \
  X(ncclRecv, ncclResult_t,                                                    \
    (void *, size_t count, ncclDataType_t, int peer, ncclComm_t, CUstream))

// Registered memory, which NCCL reads and writes directly: since 2.19.
#define TPRT_NCCL_MEMORY_FUNCTIONS(X)                                          \
  X(ncclMemAlloc, ncclResult_t, (void **, size_t bytes))                       \
  X(ncclMemFree, ncclResult_t, (void *))                                       \
  X(ncclCommRegister, ncclResult_t,                                            \
    (ncclComm_t, void *, size_t bytes, void **handle))                         \
  X(ncclCommDeregister, ncclResult_t, (ncclComm_t, void *handle))

// Symmetric memory, which ranks access at the same offsets: since 2.27.
#define TPRT_NCCL_WINDOW_FUNCTIONS(X)                                          \
  X(ncclCommWindowRegister, ncclResult_t,                                      \
    (ncclComm_t, void *, size_t bytes, ncclWindow_t *, int flags))             \
  X(ncclCommWindowDeregister, ncclResult_t, (ncclComm_t, ncclWindow_t))

struct Nccl {
#define TPRT_FUNCTION(name, result, parameters) result(*name) parameters;
  TPRT_NCCL_FUNCTIONS(TPRT_FUNCTION)
  // Null if canRegister or canShare is false.
  TPRT_NCCL_MEMORY_FUNCTIONS(TPRT_FUNCTION)
  TPRT_NCCL_WINDOW_FUNCTIONS(TPRT_FUNCTION)
#undef TPRT_FUNCTION

  /// "2.28.9".
  std::string getVersionString() const;
  bool canRegister = false, canShare = false;

  /// Loads NCCL once. Throws an input error if it is missing or too old.
  static const Nccl &get();

  /// Throws an execution error with the function's name and NCCL's message,
  /// unless `result` is ncclSuccess. `comm` may be null.
  void check(ncclResult_t result, const char *function, ncclComm_t comm) const;

private:
  Nccl();

  int code = 0; ///< 22809 is 2.28.9
  Version version;
};

} // namespace tprt::cuda

#endif // TPRT_LIB_COMM_NCCL_NCCL_H
