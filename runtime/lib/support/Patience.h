//===- Patience.h - Limits of waits -----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_SUPPORT_PATIENCE_H
#define TPRT_LIB_SUPPORT_PATIENCE_H

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

namespace tprt {

/// "2.5 s".
inline std::string formatTimeout(std::chrono::milliseconds timeout) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g s", timeout.count() / 1000.0);
  return text;
}

/// Measures a wait in which getWaited() or isOver() is called at least every 50
/// ms. The time between two calls counts as at most 100 ms, so that time in
/// which this process is stopped (SIGSTOP, Ctrl-Z) hardly counts.
class Patience {
public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds longestGap{100};

  /// Zero: no limit.
  explicit Patience(std::chrono::milliseconds limit = {}) : limit(limit) {}

  Clock::duration getWaited() {
    Clock::time_point now = Clock::now();
    waited += std::min<Clock::duration>(now - last, longestGap);
    last = now;
    return waited;
  }
  bool isOver() {
    Clock::duration soFar = getWaited();
    return limit.count() > 0 && soFar > limit;
  }
  /// Starts over.
  void renew() {
    waited = {};
    last = Clock::now();
  }

private:
  std::chrono::milliseconds limit;
  Clock::duration waited = {};
  Clock::time_point last = Clock::now();
};

} // namespace tprt

#endif // TPRT_LIB_SUPPORT_PATIENCE_H
