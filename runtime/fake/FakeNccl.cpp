//===- FakeNccl.cpp - libnccl without a device ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks are threads or processes of one host, and meet by files. Each writes
// its operand of a collective to a file, and reads the files of the others once
// all exist.
//
//===----------------------------------------------------------------------===//

#include "FakeNccl.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt::fake;
namespace fs = std::filesystem;

/// The memory from ncclMemAlloc, with the number of its registrations.
static std::map<void *, size_t> &getMemory() {
  static auto &memory = *new std::map<void *, size_t>;
  return memory;
}

ncclResult_t fake::complain(const std::string &mistake) {
  Lock lock(getMutex());
  std::fprintf(stderr, "fake NCCL: %s\n", mistake.c_str());
  setFailed(700);
  return InvalidUsage;
}

void fake::writeFile(const fs::path &path, const void *data, size_t bytes) {
  fs::path aside = path;
  aside += ".part";
  std::ofstream(aside, std::ios::binary)
      .write(static_cast<const char *>(data), bytes);
  fs::rename(aside, path);
}

std::string fake::readFile(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

fs::path fake::getPath(const ncclComm &comm, const std::string &what,
                       size_t number, int rank) {
  return fs::path(comm.folder) /
         (comm.name + "." + what + "." + std::to_string(number) + "." +
          std::to_string(rank));
}

/// Doesn't return if a test wants so.
static ncclResult_t hang(const std::string &function) {
  auto isHanging = [&] {
    Lock lock(getMutex());
    return getSettings().hangingCall == function;
  };
  if (!isHanging())
    return ncclSuccess;
  setFailed(700);
  while (isHanging())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return SystemError;
}

/// Waits on the host for a file of each rank. Returns their contents. Gives up
/// after a while, so that no test hangs.
static std::vector<std::string> meet(const ncclComm &comm,
                                     const std::string &what, size_t number,
                                     const std::string &mine) {
  writeFile(getPath(comm, what, number, comm.rank), mine.data(), mine.size());
  std::vector<std::string> all;
  for (int rank = 0; rank < comm.numRanks; ++rank) {
    fs::path path = getPath(comm, what, number, rank);
    for (int attempt = 0; !fs::exists(path); ++attempt) {
      if (attempt == 30'000) {
        complain("rank " + std::to_string(rank) + " doesn't come");
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    all.push_back(readFile(path));
  }
  return all;
}

//===----------------------------------------------------------------------===//
// Communicators
//===----------------------------------------------------------------------===//

EXPORT ncclGetVersion(int *version) {
  *version = getSettings().ncclVersion;
  return ncclSuccess;
}

extern "C" __attribute__((visibility("default"))) const char *
ncclGetErrorString(ncclResult_t) {
  return "as the fake NCCL says";
}
extern "C" __attribute__((visibility("default"))) const char *
ncclGetLastError(ncclComm_t comm) {
  return comm ? comm->name.c_str() : "";
}

EXPORT ncclGetUniqueId(ncclUniqueId *id) {
  Lock lock(getMutex());
  if (int32_t status = note("ncclGetUniqueId"))
    return status;
  const char *parent = std::getenv("TPRT_FAKE_NCCL_FOLDER");
  std::string folder =
      std::string(parent ? parent : "/dev/shm") + "/tprt-fake-nccl-XXXXXX";
  if (folder.size() >= sizeof(id->internal) || !::mkdtemp(folder.data()))
    return SystemError;
  std::memcpy(id->internal, folder.c_str(), folder.size() + 1);
  return ncclSuccess;
}

EXPORT ncclCommInitRank(ncclComm_t *comm, int numRanks, ncclUniqueId id,
                        int rank) {
  {
    Lock lock(getMutex());
    if (int32_t status = note("ncclCommInitRank", std::to_string(rank)))
      return status;
  }
  if (ncclResult_t result = hang("ncclCommInitRank"))
    return result;
  *comm = new ncclComm{id.internal, "world", rank, numRanks};
  addLive(*comm);
  meet(**comm, "init", 0, "");
  return ncclSuccess;
}

EXPORT ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *result,
                     void *) {
  {
    Lock lock(getMutex());
    if (int32_t status = note("ncclCommSplit", std::to_string(color)))
      return status;
  }
  if (ncclResult_t result = hang("ncclCommSplit"))
    return result;
  size_t number = comm->numSplits++;
  std::vector<std::pair<int, int>> members; // key, rank
  std::vector<std::string> all =
      meet(*comm, "split", number,
           std::to_string(color) + " " + std::to_string(key));
  for (int rank = 0; rank < comm->numRanks; ++rank) {
    int otherColor = 0, otherKey = 0;
    std::sscanf(all[rank].c_str(), "%d %d", &otherColor, &otherKey);
    if (otherColor == color)
      members.emplace_back(otherKey, rank);
  }
  *result = nullptr;
  if (color == NCCL_SPLIT_NOCOLOR)
    return ncclSuccess;
  std::sort(members.begin(), members.end());
  auto self =
      std::find(members.begin(), members.end(), std::pair(key, comm->rank));
  *result = new ncclComm{comm->folder,
                         comm->name + "-" + std::to_string(number) + "-" +
                             std::to_string(color),
                         static_cast<int>(self - members.begin()),
                         static_cast<int>(members.size())};
  addLive(*result);
  return ncclSuccess;
}

/// Keeps `comm` until the end of the process, because remaining work may point
/// to it.
static void keep(ncclComm_t comm) {
  static auto &ended = *new std::vector<ncclComm_t>;
  ended.push_back(comm);
  removeLive(comm);
}

EXPORT ncclCommDestroy(ncclComm_t comm) {
  Lock lock(getMutex());
  note("ncclCommDestroy", comm->name);
  if (!comm->windows.empty() || !comm->handles.empty())
    return complain("memory is registered with a communicator that is "
                    "destroyed");
  if (comm->name == "world") { // the others may still read its files
    writeFile(getPath(*comm, "gone", 0, comm->rank), "", 0);
    bool isLast = true;
    for (int rank = 0; rank < comm->numRanks; ++rank)
      isLast &= fs::exists(getPath(*comm, "gone", 0, rank));
    std::error_code ignored;
    if (isLast)
      fs::remove_all(comm->folder, ignored);
  }
  keep(comm);
  return ncclSuccess;
}

EXPORT ncclCommAbort(ncclComm_t comm) {
  Lock lock(getMutex());
  note("ncclCommAbort", comm->name);
  for (ncclWindow_t window : comm->windows) {
    --getMemory()[const_cast<char *>(window->memory)];
    delete window;
  }
  for (void *memory : comm->handles)
    --getMemory()[memory];
  comm->windows.clear();
  comm->handles.clear();
  keep(comm);
  return ncclSuccess;
}

EXPORT ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  Lock lock(getMutex());
  *error = note("ncclCommGetAsyncError", comm->name);
  return ncclSuccess;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

EXPORT ncclMemAlloc(void **memory, size_t bytes) {
  Lock lock(getMutex());
  if (int32_t status = note("ncclMemAlloc", std::to_string(bytes)))
    return status;
  *memory = allocateMemory(bytes, 4096);
  if (!*memory)
    return 1; // unhandled CUDA error
  getMemory()[*memory] = 0;
  return ncclSuccess;
}

EXPORT ncclMemFree(void *memory) {
  Lock lock(getMutex());
  note("ncclMemFree");
  auto found = getMemory().find(memory);
  if (found == getMemory().end())
    return InvalidArgument;
  if (found->second > 0)
    return complain("memory is freed that is still registered");
  getMemory().erase(found);
  releaseMemory(memory);
  return ncclSuccess;
}

EXPORT ncclCommRegister(ncclComm_t comm, void *memory, size_t bytes,
                        void **handle) {
  Lock lock(getMutex());
  if (int32_t status =
          note("ncclCommRegister", std::to_string(bytes) + " " + comm->name))
    return status;
  if (!getMemory().contains(memory) || !comm->handles.insert(memory).second)
    return complain("ncclCommRegister: not memory of ncclMemAlloc, or twice");
  ++getMemory()[memory];
  *handle = memory;
  return ncclSuccess;
}

EXPORT ncclCommDeregister(ncclComm_t comm, void *handle) {
  Lock lock(getMutex());
  note("ncclCommDeregister", comm->name);
  if (comm->handles.erase(handle) == 0)
    return complain("ncclCommDeregister: nothing of this communicator");
  --getMemory()[handle];
  return ncclSuccess;
}

EXPORT ncclCommWindowRegister(ncclComm_t comm, void *memory, size_t bytes,
                              ncclWindow_t *window, int flags) {
  {
    Lock lock(getMutex());
    if (int32_t status = note("ncclCommWindowRegister",
                              std::to_string(bytes) + " " + comm->name))
      return status;
    if (!getMemory().contains(memory) || flags != NCCL_WIN_COLL_SYMMETRIC)
      return complain("ncclCommWindowRegister: not memory of ncclMemAlloc");
  }
  if (ncclResult_t result = hang("ncclCommWindowRegister"))
    return result;
  for (const std::string &other :
       meet(*comm, "window", comm->numWindows++, std::to_string(bytes)))
    if (other != std::to_string(bytes))
      return complain("ncclCommWindowRegister: " + std::to_string(bytes) +
                      " and " + other + " bytes");
  Lock lock(getMutex());
  *window = nullptr;
  if (!getSettings().ncclHasWindows)
    return ncclSuccess;
  ++getMemory()[memory];
  *window = new ncclWindow_vidmem{static_cast<char *>(memory), bytes};
  comm->windows.insert(*window);
  return ncclSuccess;
}

EXPORT ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  Lock lock(getMutex());
  note("ncclCommWindowDeregister", comm->name);
  if (comm->windows.erase(window) == 0)
    return complain("ncclCommWindowDeregister: nothing of this communicator");
  --getMemory()[const_cast<char *>(window->memory)];
  delete window;
  return ncclSuccess;
}
