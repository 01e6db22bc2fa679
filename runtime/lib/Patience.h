//===- Patience.h - How long something is waited for -------------*- C++
//-*-===//

#ifndef TPRT_LIB_PATIENCE_H
#define TPRT_LIB_PATIENCE_H

#include <algorithm>
#include <chrono>

namespace tprt {

/// How long something has been waited for, by who looks every 50 ms or more
/// often. What passes between two looks counts as 100 ms at most: so the time
/// in which this process was stopped (SIGSTOP, Ctrl-Z) doesn't count.
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
  /// Begins anew.
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

#endif // TPRT_LIB_PATIENCE_H
