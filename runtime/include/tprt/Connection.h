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

class Rendezvous;
struct Backend;

/// A process's connection with the others of its job.
class TPRT_API Connection {
public:
  /// Waits for all other processes. Throws an execution error after `timeout`
  /// (zero: never) or if a rank has ended. Throws an input error if other hosts
  /// could connect and the job has no token.
  Connection(const Job &job, std::chrono::milliseconds timeout);
  /// The same, for ranks that use `backend`, which may say where they meet.
  /// Throws an input error if something that it needs is missing.
  Connection(const Backend &backend, Job job,
             std::chrono::milliseconds timeout);
  ~Connection();

  /// Returns each rank's contribution, by rank. All ranks call it. Throws
  /// AbortedError if a rank has left, contributes more than `limit` bytes, or
  /// makes this one wait for longer than the timeout.
  std::vector<std::string> exchange(const std::string &mine, size_t limit);

  /// The same, but only rank 0 gets the contributions.
  std::vector<std::string> gather(const std::string &mine, size_t limit);

  /// Returns rank 0's contribution on all ranks. All ranks call it. Throws like
  /// exchange(), but without its time limit: a rank waits as long as rank 0
  /// works.
  std::string broadcast(const std::string &mine, size_t limit);

  /// Calls `work` at rank 0 with a function that returns global parameters by
  /// name and may be called by several threads. Meanwhile the other ranks send
  /// their shards. Returns when `work` has returned. All ranks call this while
  /// nothing runs. If `work` throws, rank 0 throws the same, and the others
  /// AbortedError.
  void withParameters(const Session &session, const UseParameters &work);

  /// Tells the others why this rank ends, if they don't know yet. They throw
  /// AbortedError of this kind.
  void abort(const std::string &reason,
             ErrorKind kind = ErrorKind::Execution) noexcept;

  /// After a failure, in another rank than 0: waits until rank 0 has ended its
  /// connections, for `limit` at most. Returns false if rank 0 doesn't know why
  /// this rank ends, or is still there.
  bool waitForRankZero(std::chrono::milliseconds limit) noexcept;
  /// After a failure, in rank 0: waits until each other rank has ended, or calls
  /// waitForRankZero(), for `limit` at most. A launcher may kill the ranks that
  /// are left as soon as one has ended.
  void waitForOthers(std::chrono::milliseconds limit) noexcept;

  /// For backends.
  Rendezvous &getRendezvous();

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace tprt

#endif // TPRT_CONNECTION_H
