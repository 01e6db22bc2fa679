//===- Connection.h - A process and the others of its job -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_CONNECTION_H
#define TPRT_CONNECTION_H

#include "tprt/Job.h"
#include "tprt/Session.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace tprt {

/// A process's connection with the others of its job.
class TPRT_API Connection {
public:
  /// Waits for all of them. Throws an execution error after `timeout` (zero:
  /// never), and where a rank has ended; an input error where others could
  /// connect from other hosts, and the job has no token.
  Connection(const Job &job, std::chrono::milliseconds timeout);
  ~Connection();

  /// What each rank has handed in, by rank. All ranks call it. Throws
  /// AbortedError when one of them has left, has handed in more than `limit`
  /// bytes, or makes this one wait for longer than the timeout.
  std::vector<std::string> exchange(const std::string &mine, size_t limit);

  /// The same, but only rank 0 gets what the others hand in.
  std::vector<std::string> gather(const std::string &mine, size_t limit);

  /// What rank 0 has handed in, on all ranks, which all call it. Throws as
  /// exchange(), without its time limit: a rank waits as long as rank 0 works.
  std::string broadcast(const std::string &mine, size_t limit);

  /// Calls `work` at rank 0 with a function that gives whole parameters by
  /// name, and may be called by several threads, and returns when it has; the
  /// others hand in what they have meanwhile. All ranks call it while nothing
  /// runs. Throws what `work` throws, elsewhere AbortedError.
  void withParameters(const Session &session, const UseParameters &work);

  /// Tells the others why this rank ends.
  void abort(const std::string &reason) noexcept;

  /// The `nccl` backend: this process is one rank, on a device of its own.
  /// Where NCCL's sums are in another order than `local`'s, results may differ
  /// in the last bits. This outlives the communicators.
  CommunicatorFactory getNccl();

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace tprt

#endif // TPRT_CONNECTION_H
