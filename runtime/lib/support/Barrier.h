//===- Barrier.h - A barrier that spins, then sleeps ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_SUPPORT_BARRIER_H
#define TPRT_LIB_SUPPORT_BARRIER_H

#include "support/Patience.h"
#include "support/Spin.h"

#include <atomic>
#include <cstdint>

namespace tprt {

/// A reusable barrier for a fixed number of arrivals, after which a next round
/// begins. A thread may arrive now and wait later, and may wait without having
/// arrived. If each thread has a core, they meet within a microsecond by
/// spinning. Otherwise they sleep in the kernel, so that many ranks on few
/// cores yield their core instead of spinning.
class Barrier {
public:
  Barrier(uint32_t numThreads, uint32_t spins)
      : numThreads(numThreads), spins(spins) {}

  /// Arrives, and returns the target to pass to await().
  uint64_t arrive() {
    // One counter holds both the number of arrivals and the round. The last
    // thread therefore releases the others by its arrival itself.
    uint64_t ticket = arrivals.fetch_add(1, std::memory_order_seq_cst);
    uint64_t target = (ticket / numThreads + 1) * numThreads;
    if (ticket + 1 == target && sleepers.load(std::memory_order_seq_cst) > 0)
      wakeAll();
    return target;
  }

  /// Whether the round of this target is complete.
  bool isOver(uint64_t target) const {
    return arrivals.load(std::memory_order_seq_cst) >= target;
  }

  /// Waits until the round of this target is complete. From time to time a
  /// waiting thread calls poll(time waited); this time excludes periods in
  /// which the process was stopped. poll may throw to stop waiting; the barrier
  /// can't be used after that.
  template <typename Poll>
  void await(uint64_t target, Poll poll) {
    if (spin(spins, [&] {
          return arrivals.load(std::memory_order_acquire) >= target;
        }))
      return;
    for (Patience patience; !isOver(target);) {
      poll(patience.getWaited());
      sleepUntil(target);
    }
  }

  /// Wakes sleeping threads so that they poll.
  void wakeAll();

private:
  /// Sleeps until woken, at most some 10 ms; not at all when `target` have
  /// arrived.
  void sleepUntil(uint64_t target);

  const uint32_t numThreads;
  const uint32_t spins;
  alignas(64) std::atomic<uint64_t> arrivals{0}; ///< of all rounds
  alignas(64) std::atomic<uint32_t> sleepers{0};
};

} // namespace tprt

#endif // TPRT_LIB_SUPPORT_BARRIER_H
