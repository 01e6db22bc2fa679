//===- Job.h - One process among those of a program -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If each rank of a program is a process, mpirun, srun, torchrun or `tp-run -n`
// starts the processes. Each process learns its rank
// from its environment.
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

/// What happened to a rank's process, as far as its launcher knows.
struct Fate {
  enum Kind {
    Unknown, ///< it runs, or no launcher watches it
    Stopped, ///< by a signal; may be continued
    Ended,   ///< after its work, even if a comparison failed or a training was
             ///< interrupted
    Failed,  ///< with the exit code of an error
    Killed   ///< by a signal
  } kind = Unknown;
  /// The text after "rank 1" in a message: "was ended by signal 9 (Killed)",
  /// "is stopped by SIGSTOP".
  std::string description;
};

/// The shortest token.
constexpr size_t minTokenBytes = 32;

/// Which rank this process is, and where the processes meet.
struct Job {
  int64_t rank = 0, worldSize = 1;
  int64_t localRank = 0;             ///< on this host; selects the device
  std::string address = "127.0.0.1"; ///< of the host of rank 0
  uint16_t port = 29555;             ///< of rank 0
  /// A secret that only the job's ranks have. Without one, the address must be
  /// a loopback address.
  std::string token;
  /// Whether the texts that this rank sends to the others carry checksums, which
  /// they check.
  bool checksum = false;
  int listener = -1; ///< of a rank that listens already, or its parent
  std::function<Fate(int64_t rank)> getFate; ///< null: no launcher watches

  /// Reads TP_RANK, TP_WORLD_SIZE and TP_LOCAL_RANK; else the variables of
  /// torchrun (RANK, …), Open MPI, MPICH or Slurm, in this order. Returns
  /// nullopt if none are set. The meeting point is TP_ADDRESS and TP_PORT, else
  /// MASTER_ADDR and the port after MASTER_PORT, which torchrun itself listens
  /// on. The token is TP_TOKEN, or the content of the file that TP_TOKEN_FILE
  /// names, without the end of the line. Throws an input error if a variable
  /// isn't a number, the rank isn't less than the world size, the token is
  /// shorter than minTokenBytes, or its file belongs to another user or is
  /// readable by others. `get` returns a variable's value, or null.
  TPRT_API static std::optional<Job>
  fromEnvironment(const std::function<const char *(const char *)> &get);

  /// For a rank that others connect to, or its parent: listens at a free port of
  /// `address`, and sets `port` and `listener`. Throws what Connection throws if
  /// the address is none of this host, or needs a token.
  TPRT_API void listenAtFreePort();
};

} // namespace tprt

#endif // TPRT_JOB_H
