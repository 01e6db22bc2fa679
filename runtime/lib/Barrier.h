//===- Barrier.h - A barrier that spins, then sleeps -------------*- C++
//-*-===//

#ifndef TPRT_LIB_BARRIER_H
#define TPRT_LIB_BARRIER_H

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace tprt {

/// A reusable barrier for a fixed number of threads. Threads that have a core
/// each meet within a microsecond by spinning; others sleep in the kernel, so
/// that many ranks on few cores hand over their core instead of burning it.
class Barrier {
public:
  Barrier(uint32_t numThreads, uint32_t spins)
      : numThreads(numThreads), spins(spins) {}

  /// Arrives and waits for the others. From time to time a waiting thread calls
  /// poll(time waited, isOver), which may throw to leave; the barrier can't be
  /// used after that. isOver() says whether the round is complete by now.
  template <typename Poll>
  void wait(Poll poll) {
    uint32_t current = phase.load(std::memory_order_acquire);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == numThreads) {
      arrived.store(0, std::memory_order_relaxed);
      phase.store(current + 1, std::memory_order_seq_cst);
      if (sleepers.load(std::memory_order_seq_cst) > 0)
        wakeAll();
      return;
    }
    for (uint32_t i = 0; i < spins; ++i) {
      if (phase.load(std::memory_order_acquire) != current)
        return;
      // The one we wait for may stand behind us in the queue for this core.
      if (i % 64 == 63)
        std::this_thread::yield();
      else
        relax();
    }
    auto isOver = [&] {
      return phase.load(std::memory_order_seq_cst) != current;
    };
    auto start = std::chrono::steady_clock::now();
    while (!isOver()) {
      poll(std::chrono::steady_clock::now() - start, isOver);
      sleepWhile(current);
    }
  }

  /// Wakes sleeping threads so that they poll.
  void wakeAll();

private:
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  /// Sleeps until woken while the phase is `current`, at most some 10 ms.
  void sleepWhile(uint32_t current);

  const uint32_t numThreads;
  const uint32_t spins;
  // Arrivals and the phase that the others spin on are on lines of their own.
  alignas(64) std::atomic<uint32_t> arrived{0};
  alignas(64) std::atomic<uint32_t> phase{0};
  std::atomic<uint32_t> sleepers{0};
};

} // namespace tprt

#endif // TPRT_LIB_BARRIER_H
