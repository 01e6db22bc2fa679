//===- Parallel.h - Independent work on several threads ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_SUPPORT_PARALLEL_H
#define TPRT_LIB_SUPPORT_PARALLEL_H

#include "tprt/Error.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace tprt {

/// Calls work(i) for 0 <= i < count, on at most `numThreads` threads including
/// this one. A nested call uses only this thread. The first exception ends the
/// others early, and is thrown here. The threads are kept for this thread's
/// next call, unless there is a ThreadPool::Scope. They run on the cores that
/// this thread could use when they were created.
TPRT_API void parallelFor(int64_t count, int64_t numThreads,
                          const std::function<void(int64_t)> &work);

/// Threads for parallelFor(). They are created when they are needed first, and
/// run on `cores`, if it isn't empty.
class TPRT_API ThreadPool {
public:
  explicit ThreadPool(std::vector<int> cores = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  class Impl;

  /// While it lives, parallelFor() in this thread uses `pool`.
  class TPRT_API Scope {
  public:
    explicit Scope(ThreadPool &pool);
    ~Scope();
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    Impl *before;
  };

private:
  std::unique_ptr<Impl> impl;
};

} // namespace tprt

#endif // TPRT_LIB_SUPPORT_PARALLEL_H
