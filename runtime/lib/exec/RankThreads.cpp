//===- RankThreads.cpp - The threads of a process's ranks -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "exec/RankThreads.h"

#include "support/Cores.h"
#include "support/Spin.h"

#include <cfenv>
#include <system_error>

using namespace tprt;

namespace {
/// While it lives, floats in this thread behave by default: denormal numbers
/// aren't zero, and results are rounded to nearest. The caller may have another
/// mode, and all ranks must compute alike.
class DefaultFloats {
public:
  DefaultFloats() {
    ::fegetenv(&before);
    ::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloats() { ::fesetenv(&before); }
  DefaultFloats(const DefaultFloats &) = delete;
  DefaultFloats &operator=(const DefaultFloats &) = delete;

private:
  fenv_t before;
};
} // namespace

RankThreads::RankThreads(const Manifest &manifest,
                         const SessionOptions &options, Device &device,
                         bool usesCaller)
    : manifest(manifest), device(device),
      spins(chooseSpins(manifest.worldSize)) {
  CommunicatorOptions communicatorOptions = options.communicator;
  communicatorOptions.device = &device;
  communicators = options.makeCommunicators(manifest, communicatorOptions);
  for (const std::unique_ptr<Communicator> &communicator : communicators)
    ranks.push_back(communicator->getRank());
  for (size_t i = 0; i < communicators.size(); ++i) {
    std::vector<int> cores;
    if (options.pinRanks)
      cores = chooseCores(getUsableCores(), i, communicators.size());
    if (i == 0 && usesCaller) {
      first.emplace(manifest, *communicators[i]);
      coresOfFirst = cores;
      helpersOfFirst.emplace(cores);
      continue;
    }
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
  isOver = true;
  ++round;
  round.notify_all();
  if (first)
    first->communicator.finish();
  for (std::thread &thread : threads)
    thread.join();
}

void RankThreads::run(const Work &work) {
  current = &work;
  numBusy = threads.size();
  ++round;
  round.notify_all();
  if (first) {
    PinnedThread pinned(coresOfFirst);
    ThreadPool::Scope scope(*helpersOfFirst);
    DefaultFloats floats;
    call(*first, work);
    spin(spins, [this] { return numBusy == 0; }); // the others end now, too
  }
  for (uint32_t busy; (busy = numBusy) != 0;)
    numBusy.wait(busy);
  current = nullptr;
  if (!failure.empty())
    throw executionError(failure);
}

/// The main function of a rank's thread.
void RankThreads::serve(Communicator &communicator,
                        const std::vector<int> &cores) {
  DefaultFloats floats; // the creator's are inherited
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
  for (uint32_t seen = 0;; ++seen) {
    spin(spins, [&] { return round != seen; });
    round.wait(seen);
    if (isOver)
      break;
    if (rank) {
      call(*rank, *current);
    } else {
      noteFailure(problem);
      communicator.abort(problem);
    }
    if (--numBusy == 0)
      numBusy.notify_one();
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
