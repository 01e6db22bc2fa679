//===- Parallel.cpp - Independent work on several threads -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/Parallel.h"

#include "support/Cores.h"
#include "support/Spin.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace tprt;

/// More than there are cores anywhere.
static constexpr int64_t maxThreads = 1 << 12;

namespace {

/// A loop whose iterations several threads share.
struct ParallelLoop {
  const std::function<void(int64_t)> &work;
  int64_t count;
  std::atomic<int64_t> next{0};
  std::mutex mutex{};
  std::exception_ptr failure = nullptr;

  /// Runs the remaining iterations, together with the other threads.
  void run() {
    for (int64_t i; (i = next++) < count;)
      try {
        work(i);
      } catch (...) {
        std::lock_guard<std::mutex> lock(mutex);
        if (!failure)
          failure = std::current_exception();
        next = count;
      }
  }
};

} // namespace

/// Threads that share loops of the one that created them. They are kept between
/// loops: an idle one spins for some microseconds, because a program's next
/// kernel may need it, and then sleeps. If one wakes up too late, run() doesn't
/// wait for it.
class ThreadPool::Impl {
public:
  explicit Impl(std::vector<int> cores = {}) : cores(std::move(cores)) {}
  ~Impl() {
    // A process that was forked has none of them.
    if (process != getpid()) {
      (void)new auto(std::move(threads));
      return;
    }
    isOver = true;
    announce();
    for (std::thread &thread : threads)
      thread.join();
  }

  /// Runs `loop` together with at most `numWorkers` threads of the pool.
  void run(ParallelLoop &loop, int64_t numWorkers) {
    while (static_cast<int64_t>(threads.size()) < numWorkers && mayGrow)
      try {
        threads.emplace_back([this] { serve(); });
      } catch (const std::system_error &) {
        mayGrow = false; // the existing threads do the work
      }
    current = &loop;
    places = numWorkers * onePlace;
    announce();
    isBusy = true;
    loop.run();
    isBusy = false;
    // Remove the free places, and wait until the last worker has left.
    for (uint32_t inside = places &= onePlace - 1; inside != 0;
         inside = places) {
      for (int i = 0; i < numSpins && places == inside; ++i)
        relax();
      places.wait(inside);
    }
  }

  /// Whether this is called from within a loop.
  bool isInUse() const { return isBusy; }

private:
  static constexpr int numSpins = 2000;
  static constexpr uint32_t onePlace = 1 << 16;

  void announce() {
    ++round;
    round.notify_all();
  }

  /// Takes a place, if one is free.
  bool enter() {
    uint32_t seen = places;
    while (seen >= onePlace)
      if (places.compare_exchange_weak(seen, seen - onePlace + 1))
        return true;
    return false;
  }

  void serve() {
    pinThread(cores);
    for (uint32_t seen = 0; !isOver;) {
      for (int i = 0; i < numSpins && round == seen; ++i)
        relax();
      round.wait(seen);
      seen = round;
      if (!enter())
        continue;
      current.load()->run();
      if (--places == 0)
        places.notify_one();
    }
  }

  const pid_t process = getpid();
  const std::vector<int> cores;
  std::vector<std::thread> threads;
  std::atomic<ParallelLoop *> current{nullptr};
  /// Upper half: the number of workers that may still enter. Lower half: the
  /// number of workers that are working.
  std::atomic<uint32_t> places{0};
  std::atomic<uint32_t> round{0}; ///< counts loops
  std::atomic<bool> isOver{false};
  bool isBusy = false;
  bool mayGrow = true; ///< the system hasn't refused a thread yet
};

/// The one that parallelFor() uses in this thread.
static ThreadPool::Impl *&getPool() {
  thread_local ThreadPool::Impl own;
  thread_local ThreadPool::Impl *pool = &own;
  return pool;
}

ThreadPool::ThreadPool(std::vector<int> cores)
    : impl(std::make_unique<Impl>(std::move(cores))) {}

ThreadPool::~ThreadPool() = default;

ThreadPool::Scope::Scope(ThreadPool &pool)
    : before(std::exchange(getPool(), pool.impl.get())) {}

ThreadPool::Scope::~Scope() { getPool() = before; }

void tprt::parallelFor(int64_t count, int64_t numThreads,
                       const std::function<void(int64_t)> &work) {
  ThreadPool::Impl &pool = *getPool();
  ParallelLoop loop{work, count};
  int64_t numWorkers = std::min({numThreads, count, maxThreads}) - 1;
  if (numWorkers > 0 && !pool.isInUse())
    pool.run(loop, numWorkers);
  else
    loop.run();
  if (loop.failure)
    std::rethrow_exception(loop.failure);
}
