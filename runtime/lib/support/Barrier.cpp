//===- Barrier.cpp - A barrier that spins, then sleeps --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/Barrier.h"

#include <bit>
#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace tprt;

// std::atomic::wait has no timeout, so a waiting rank couldn't watch the clock.
// A futex has 32 bits. It is the counter's lower half, which changes with every
// arrival.
static_assert(sizeof(std::atomic<uint64_t>) == sizeof(uint64_t));

static uint32_t *getFutex(std::atomic<uint64_t> &counter) {
  constexpr bool isLittle = std::endian::native == std::endian::little;
  return reinterpret_cast<uint32_t *>(&counter) + (isLittle ? 0 : 1);
}

void Barrier::wakeAll() {
  ::syscall(SYS_futex, getFutex(arrivals), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
            nullptr, 0);
}

void Barrier::sleepUntil(uint64_t target) {
  constexpr timespec pollInterval = {0, 10'000'000};
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  uint64_t seen = arrivals.load(std::memory_order_seq_cst);
  if (seen < target)
    ::syscall(SYS_futex, getFutex(arrivals), FUTEX_WAIT_PRIVATE,
              static_cast<uint32_t>(seen), &pollInterval, nullptr, 0);
  sleepers.fetch_sub(1, std::memory_order_relaxed);
}
