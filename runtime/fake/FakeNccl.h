//===- FakeNccl.h - Internals of the fake NCCL ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_FAKE_FAKENCCL_H
#define TPRT_FAKE_FAKENCCL_H

#include "Work.h"
#include "comm/nccl/Nccl.h"

#include <filesystem>
#include <map>
#include <set>

#define EXPORT extern "C" __attribute__((visibility("default"))) ncclResult_t

namespace tprt::cuda {
struct ncclWindow_vidmem {
  const char *memory;
  size_t bytes;
};

struct ncclComm {
  std::string folder, name;
  int rank, numRanks;
  size_t numSplits = 0;
  // Counted when work runs: collectives, and messages by peer.
  size_t numDone = 0;
  std::map<int, size_t> numSent = {}, numReceived = {};
  ncclResult_t asyncError = ncclSuccess;
  size_t numWindows = 0;
  std::set<ncclWindow_t> windows = {};
  std::set<void *> handles = {};
};
} // namespace tprt::cuda

namespace tprt::fake {

/// Further results of NCCL.
enum : cuda::ncclResult_t {
  SystemError = 2,
  InvalidArgument = 4,
  InvalidUsage = 5
};

/// Reports a wrong use of NCCL, which NCCL itself may not notice.
cuda::ncclResult_t complain(const std::string &mistake);

/// Writes a file that appears only when it is complete.
void writeFile(const std::filesystem::path &path, const void *data,
               size_t bytes);
std::string readFile(const std::filesystem::path &path);
/// The file number `number` of a rank, about `what`.
std::filesystem::path getPath(const cuda::ncclComm &comm,
                              const std::string &what, size_t number, int rank);

} // namespace tprt::fake

#endif // TPRT_FAKE_FAKENCCL_H
