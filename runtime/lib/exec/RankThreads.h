//===- RankThreads.h - The threads of a process's ranks ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_EXEC_RANKTHREADS_H
#define TPRT_LIB_EXEC_RANKTHREADS_H

#include "device/Device.h"
#include "exec/Rank.h"
#include "support/Parallel.h"

#include <atomic>
#include <mutex>
#include <thread>

namespace tprt {

/// The ranks that this process hosts, each with its communicator. The first one
/// may run in the thread that calls run(); the others have threads of their
/// own. These spin for a while before they sleep, so that calls that follow
/// each other wake no thread up.
class RankThreads {
public:
  /// With `usesCaller`, the first rank runs in the thread that calls run().
  RankThreads(const Manifest &manifest, const SessionOptions &options,
              Device &device, bool usesCaller);
  ~RankThreads();
  RankThreads(const RankThreads &) = delete;
  RankThreads &operator=(const RankThreads &) = delete;

  using Work = std::function<void(tprt_rank &)>;

  /// Calls `work` for every rank, in its thread, and returns when all calls
  /// have. If one throws, the others leave their collectives and this throws an
  /// execution error. It can't run again after that. Other threads may call it,
  /// but only one at a time.
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

  /// Of the calling thread, if it runs a rank.
  std::optional<tprt_rank> first;
  std::vector<int> coresOfFirst;
  std::optional<ThreadPool> helpersOfFirst;

  const uint32_t spins;
  const Work *current = nullptr;    ///< of the round
  std::atomic<uint32_t> round{0};   ///< counts runs, and the end
  std::atomic<uint32_t> numBusy{0}; ///< threads that haven't ended the round
  std::atomic<bool> isOver{false};
  std::mutex mutex; ///< guards the next member
  /// The first failure. Ranks that only left because of it don't count.
  std::string failure;

  std::vector<std::thread> threads;
};

} // namespace tprt

#endif // TPRT_LIB_EXEC_RANKTHREADS_H
