//===- Mpi.h - This process as a rank of MPI --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_COMM_MPI_MPI_H
#define TPRT_LIB_COMM_MPI_MPI_H

#include "comm/mpi/Plugin.h"
#include "tprt/Error.h"

#include <chrono>
#include <memory>
#include <string>

namespace tprt::mpi {

/// MPI, while somebody uses it. MPI_Init and MPI_Finalize are called in a thread
/// of their own, since they wait for the other ranks. All other calls may be
/// made by any thread, one at a time.
class Mpi {
public:
  /// Whether a launcher of MPI has started this process, as its variables say.
  static bool isLaunched();
  /// Why the implementation that has started this process can't be used. Empty
  /// if it can.
  static std::string explainMissing();

  /// Starts MPI, or returns what has been started. Throws an input error if the
  /// implementation can't be used or has ended already, and an execution error
  /// if other ranks don't start it within `timeout` (zero: forever).
  static std::shared_ptr<Mpi> start(std::chrono::milliseconds timeout);
  /// What has been started.
  static std::shared_ptr<Mpi> get();
  /// Ends MPI, unless giveUp() has been called or an exception is thrown.
  ~Mpi();
  Mpi(const Mpi &) = delete;
  Mpi &operator=(const Mpi &) = delete;

  int getRank() const { return rank; }
  int getWorldSize() const { return worldSize; }
  int getNumLocalRanks() const { return numLocal; }
  /// "Open MPI v4.1.4".
  const std::string &getVersion() const { return version; }
  const Plugin &getPlugin() const { return plugin; }
  /// A communicator of all ranks.
  Handle getWorld() const { return world; }

  /// Throws an execution error with the function's name and MPI's message,
  /// unless `code` is that of success.
  void check(int code, const char *function) const;

  /// Says that ranks have failed: MPI isn't ended, so that its launcher ends the
  /// others.
  void giveUp();

private:
  class Thread;

  explicit Mpi(std::chrono::milliseconds timeout);

  const Plugin &plugin;
  std::shared_ptr<Thread> thread;
  int rank = 0, worldSize = 1, numLocal = 1;
  Handle world = 0;
  std::string version;
  std::chrono::milliseconds timeout;
  bool isGivenUp = false;
};

} // namespace tprt::mpi

#endif // TPRT_LIB_COMM_MPI_MPI_H
