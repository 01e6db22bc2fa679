//===- RankThreads.cpp - The threads of a process's ranks -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "exec/RankThreads.h"

#include "support/Cores.h"

#include <optional>
#include <system_error>

using namespace tprt;

RankThreads::RankThreads(const Manifest &manifest,
                         const SessionOptions &options, Device &device)
    : manifest(manifest), device(device) {
  CommunicatorOptions communicatorOptions = options.communicator;
  communicatorOptions.device = &device;
  communicators = options.makeCommunicators(manifest, communicatorOptions);
  for (const std::unique_ptr<Communicator> &communicator : communicators)
    ranks.push_back(communicator->getRank());
  for (size_t i = 0; i < communicators.size(); ++i) {
    std::vector<int> cores;
    if (options.pinRanks)
      cores = chooseCores(getUsableCores(), i, communicators.size());
    try {
      threads.emplace_back(
          [this, i, cores] { serve(*communicators[i], cores); });
    } catch (const std::system_error &error) {
      stop();
      throw executionError("cannot start a thread for rank " +
                           std::to_string(ranks[i]) + ": " +
                           error.code().message());
    }
  }
}

RankThreads::~RankThreads() { stop(); }

void RankThreads::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isOver = true;
  }
  changed.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

void RankThreads::run(const Work &work) {
  std::unique_lock<std::mutex> lock(mutex);
  current = &work;
  numBusy = ranks.size();
  ++numRuns;
  changed.notify_all();
  changed.wait(lock, [this] { return numBusy == 0; });
  current = nullptr;
  if (!failure.empty())
    throw executionError(failure);
}

/// The main function of a rank's thread.
void RankThreads::serve(Communicator &communicator,
                        const std::vector<int> &cores) {
  std::optional<tprt_rank> rank;
  std::string problem;
  try {
    pinThread(cores);
    rank.emplace(manifest, communicator,
                 device.getStream(communicator.getRank()));
  } catch (const std::exception &error) {
    problem = "rank " + std::to_string(communicator.getRank()) +
              " can't begin: " + error.what();
  }
  for (int64_t run = 1;; ++run) {
    const Work *work;
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return isOver || numRuns == run; });
      if (isOver)
        break;
      work = current;
    }
    if (rank) {
      call(*rank, *work);
    } else {
      noteFailure(problem);
      communicator.abort(problem);
    }
    std::lock_guard<std::mutex> lock(mutex);
    if (--numBusy == 0)
      changed.notify_all();
  }
  communicator.finish();
}

void RankThreads::noteFailure(const std::string &message) {
  std::lock_guard<std::mutex> lock(mutex);
  if (failure.empty())
    failure = message;
}

/// "rank 1 failed after collective 4 (all_reduce of 'mlp.down')".
static std::string describeFailure(const tprt_rank &rank) {
  std::string text =
      "rank " + std::to_string(rank.communicator.getRank()) + " failed";
  if (rank.lastCollective >= 0)
    text += (rank.isInCollective ? " in " : " after ") +
            describeCollective(rank.manifest, rank.lastCollective);
  return text;
}

void RankThreads::call(tprt_rank &rank, const Work &work) {
  try {
    work(rank);
  } catch (const AbortedError &error) {
    noteFailure(error.what());
  } catch (const std::exception &error) {
    std::string message = describeFailure(rank) + ": " + error.what();
    // When a device fails, the host may have enqueued the whole run already.
    if (std::string activity = rank.communicator.describeActivity();
        !activity.empty() && rank.lastCollective < 0)
      message += "; " + activity;
    noteFailure(message);
    rank.communicator.abort(message);
  }
}
