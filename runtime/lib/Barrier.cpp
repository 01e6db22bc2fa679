//===- Barrier.cpp - A barrier that spins, then sleeps -------------------===//

#include "Barrier.h"

#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace tprt;

// std::atomic::wait has no timeout, so a waiting rank couldn't watch the clock.
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

void Barrier::wakeAll() {
  ::syscall(SYS_futex, &phase, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr,
            0);
}

void Barrier::sleepWhile(uint32_t current) {
  constexpr timespec pollInterval = {0, 10'000'000};
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  ::syscall(SYS_futex, &phase, FUTEX_WAIT_PRIVATE, current, &pollInterval,
            nullptr, 0);
  sleepers.fetch_sub(1, std::memory_order_relaxed);
}
