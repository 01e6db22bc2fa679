//===- Job.h - One process among those of a program -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs whose ranks are processes, one device each, are started by mpirun,
// srun, torchrun, or `tp-run -n`; each process finds out from its environment
// which one it is.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_JOB_H
#define TPRT_JOB_H

#include "tprt/Session.h"

#include <functional>
#include <optional>

namespace tprt {

/// What has become of a rank's process, as far as its launcher knows.
struct Fate {
  enum Kind {
    Unknown, ///< it runs, or no launcher watches it
    Stopped, ///< by a signal; may be continued
    Ended,   ///< having done its work, also where a comparison failed or a
             ///< training was interrupted
    Failed,  ///< with the exit code of an error
    Killed   ///< by a signal
  } kind = Unknown;
  /// What follows "rank 1" in a message: "was ended by signal 9 (Killed)", "is
  /// stopped by SIGSTOP".
  std::string description;
};

/// The shortest token.
constexpr size_t minTokenBytes = 32;

/// Which rank this process is, and where the processes meet.
struct Job {
  int64_t rank = 0, worldSize = 1;
  int64_t localRank = 0; ///< among those of this host: which device to take
  std::string address = "127.0.0.1"; ///< of the host of rank 0
  uint16_t port = 29555;             ///< of rank 0
  /// A secret that only the job's ranks have. Without one, the address must be
  /// a loopback address.
  std::string token;
  int listener = -1; ///< of rank 0, where its parent listens already
  std::function<Fate(int64_t rank)> getFate; ///< null: no launcher watches

  /// From TP_RANK, TP_WORLD_SIZE, TP_LOCAL_RANK; else those of torchrun (RANK,
  /// …), Open MPI, MPICH and Slurm, in this order; nothing where there are
  /// none. The meeting point is TP_ADDRESS and TP_PORT, else MASTER_ADDR and
  /// the port after MASTER_PORT, which torchrun itself listens on. The token is
  /// TP_TOKEN, or the content of the file that TP_TOKEN_FILE names, without the
  /// end of the line. Throws an input error when a variable is no number, the
  /// rank isn't one of the world's, the token is shorter than minTokenBytes, or
  /// its file is another user's or may be read by others. `get` gives a
  /// variable's value, or null.
  TPRT_API static std::optional<Job>
  fromEnvironment(const std::function<const char *(const char *)> &get);
};

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

#endif // TPRT_JOB_H
