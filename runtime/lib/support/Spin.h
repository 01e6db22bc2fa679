//===- Spin.h - Waiting on a core -------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_SUPPORT_SPIN_H
#define TPRT_LIB_SUPPORT_SPIN_H

#include <cstdint>
#include <thread>

namespace tprt {

/// Tells the core that this thread spins.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// How often threads that wait for each other look before they sleep. Spinning
/// pays off if every thread has a core. It then lasts about 0.2 ms, several
/// times the cost of waking a thread.
uint32_t chooseSpins(int64_t numThreads);

/// Looks at most `spins` times whether isOver(). Returns what it says.
template <typename IsOver>
bool spin(uint32_t spins, IsOver isOver) {
  for (uint32_t i = 0; i < spins; ++i) {
    if (isOver())
      return true;
    // The thread that we wait for may be queued for this core.
    if (i % 64 == 63)
      std::this_thread::yield();
    else
      relax();
  }
  return isOver();
}

} // namespace tprt

#endif // TPRT_LIB_SUPPORT_SPIN_H
