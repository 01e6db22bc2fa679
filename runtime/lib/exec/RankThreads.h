//===- RankThreads.h - The threads of a process's ranks ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_EXEC_RANKTHREADS_H
#define TPRT_LIB_EXEC_RANKTHREADS_H

#include "device/Device.h"
#include "exec/Rank.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace tprt {

/// The ranks that this process hosts, each with its communicator and a thread.
/// Threads sleep between calls of run(), so that a training step only has to
/// wake them up, not to create threads and communicators.
class RankThreads {
public:
  RankThreads(const Manifest &manifest, const SessionOptions &options,
              Device &device);
  ~RankThreads();
  RankThreads(const RankThreads &) = delete;
  RankThreads &operator=(const RankThreads &) = delete;

  using Work = std::function<void(tprt_rank &)>;

  /// Calls `work` for every rank, in its thread, and returns when all calls
  /// have. If one throws, the others leave their collectives and this throws an
  /// execution error. It can't run again after that.
  void run(const Work &work);

  const std::vector<int64_t> &getRanks() const { return ranks; }
  /// In the order of getRanks().
  const std::vector<std::unique_ptr<Communicator>> &getCommunicators() const {
    return communicators;
  }

private:
  void stop();
  void serve(Communicator &communicator, const std::vector<int> &cores);
  void call(tprt_rank &rank, const Work &work);
  void noteFailure(const std::string &message);

  const Manifest &manifest;
  Device &device;
  std::vector<std::unique_ptr<Communicator>> communicators;
  std::vector<int64_t> ranks;

  std::mutex mutex; ///< guards the members below
  std::condition_variable changed;
  const Work *current = nullptr;
  int64_t numRuns = 0;
  size_t numBusy = 0;
  bool isOver = false;
  /// The first failure. Ranks that only left because of it don't count.
  std::string failure;

  std::vector<std::thread> threads;
};

} // namespace tprt

#endif // TPRT_LIB_EXEC_RANKTHREADS_H
