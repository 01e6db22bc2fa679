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

#include "tprt/Error.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

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

} // namespace tprt

#endif // TPRT_JOB_H
