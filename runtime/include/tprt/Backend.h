//===- Backend.h - Interface of backends ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_BACKEND_H
#define TPRT_BACKEND_H

#include "tprt/Communicator.h"

#include <string>

namespace tprt {

class Rendezvous;
struct Job;

/// A way in which the ranks of a program exchange data.
struct Backend {
  enum Programs { All, OfHost, OfDevices };

  /// For the command line and for reports: "nccl".
  const char *name;
  /// Where its ranks are, after "how ranks communicate: 'nccl', …".
  const char *description;
  /// Whether each rank is a process of a job. If not, all ranks are threads of
  /// one process.
  bool needsProcesses;
  /// Those that it runs.
  Programs programs = All;
  /// Whether messages of its collectives can carry checksums; see
  /// CommunicatorOptions::checksum.
  bool hasChecksums = false;
  /// If each rank is a process: what starts them, "mpirun, mpiexec or srun".
  const char *launchers = nullptr;
  /// Whether one of these has started this process. Null: any launcher of
  /// Job::fromEnvironment() will do, and so will `tp-run -n`.
  bool (*isLaunched)() = nullptr;
  /// Says why this build or this machine doesn't have what the backend needs.
  /// Empty if it has.
  std::string (*explainMissing)();
  /// Called before the processes of the job connect. May change where they
  /// meet. What it returns is kept until their connections have ended. Null:
  /// there is nothing to do.
  std::shared_ptr<void> (*join)(Job &job,
                                std::chrono::milliseconds timeout) = nullptr;
  /// Makes the communicators of the ranks that this process hosts. `rendezvous`
  /// connects the processes of the job, and is null if ranks are threads. Both
  /// it and the manifest outlive the communicators. Throws an input error if
  /// the program or the job doesn't fit.
  std::vector<std::unique_ptr<Communicator>> (*makeCommunicators)(
      const Manifest &manifest, const CommunicatorOptions &options,
      Rendezvous *rendezvous);

  /// Whether it runs this program.
  bool fits(const Manifest &manifest) const {
    return programs == All || manifest.isForCuda == (programs == OfDevices);
  }
};

} // namespace tprt

#endif // TPRT_BACKEND_H
