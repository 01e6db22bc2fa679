//===- Cores.h - Cores of ranks ---------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_SUPPORT_CORES_H
#define TPRT_LIB_SUPPORT_CORES_H

#include "tprt/Error.h"

#include <cstdint>
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

} // namespace tprt

#endif // TPRT_LIB_SUPPORT_CORES_H
