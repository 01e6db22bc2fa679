//===- Parallel.h - Independent work on several threads ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_SUPPORT_PARALLEL_H
#define TPRT_LIB_SUPPORT_PARALLEL_H

#include "tprt/Error.h"

#include <cstdint>
#include <functional>

namespace tprt {

/// Calls work(i) for 0 <= i < count, by at most `numThreads` threads, this one
/// among them; within such a call, by this one alone. The first exception ends
/// the others early, and is thrown here. The threads stay for this thread's
/// next call, on the cores that this one could run on when they were made.
TPRT_API void parallelFor(int64_t count, int64_t numThreads,
                          const std::function<void(int64_t)> &work);

} // namespace tprt

#endif // TPRT_LIB_SUPPORT_PARALLEL_H
