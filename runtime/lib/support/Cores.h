//===- Cores.h - Cores of ranks ---------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_SUPPORT_CORES_H
#define TPRT_LIB_SUPPORT_CORES_H

#include "tprt/Error.h"

#include <cstdint>
#include <optional>
#include <sched.h>
#include <vector>

namespace tprt {

/// The cores that this process may use (taskset, cgroups' cpusets), ascending.
TPRT_API const std::vector<int> &getUsableCores();

/// The cores of the `position`-th of `numRanks` ranks. Each rank gets the same
/// number of neighboring cores. Empty if there are fewer cores than ranks.
TPRT_API std::vector<int> chooseCores(const std::vector<int> &cores,
                                      int64_t position, int64_t numRanks);

/// Pins this thread, and those that it creates, to these cores. Does nothing if
/// `cores` is empty. It isn't an error if the system doesn't allow this.
void pinThread(const std::vector<int> &cores);

/// Moves this thread to these cores if it is on others, and keeps it there until
/// this is destroyed. Then the thread may use the cores that it could use
/// before. A thread that is on one of these cores already isn't pinned: that
/// would take microseconds, and the system hardly moves a thread that runs. Does
/// nothing if `cores` is empty.
class TPRT_API PinnedThread {
public:
  explicit PinnedThread(const std::vector<int> &cores);
  ~PinnedThread();
  PinnedThread(const PinnedThread &) = delete;
  PinnedThread &operator=(const PinnedThread &) = delete;

private:
  std::optional<cpu_set_t> before;
};

} // namespace tprt

#endif // TPRT_LIB_SUPPORT_CORES_H
