//===- Backend.h - Interface of backends ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_BACKEND_H
#define TPRT_BACKEND_H

#include "tprt/Communicator.h"

#include <string>

namespace tprt {

class Rendezvous;

/// A way in which the ranks of a program exchange data.
struct Backend {
  /// For the command line and for reports: "nccl".
  const char *name;
  /// Where its ranks are, after "how ranks communicate: 'nccl', …".
  const char *description;
  /// Whether each rank is a process of a job. If not, all ranks are threads of
  /// one process.
  bool needsProcesses;
  /// Whether it only runs programs for CUDA devices.
  bool needsDevice;
  /// Says why this build or this machine doesn't have what the backend needs.
  /// Empty if it has.
  std::string (*explainMissing)();
  /// Makes the communicators of the ranks that this process hosts. `rendezvous`
  /// connects the processes of the job, and is null if ranks are threads. Both
  /// it and the manifest outlive the communicators. Throws an input error if
  /// the program or the job doesn't fit.
  std::vector<std::unique_ptr<Communicator>> (*makeCommunicators)(
      const Manifest &manifest, const CommunicatorOptions &options,
      Rendezvous *rendezvous);
};

} // namespace tprt

#endif // TPRT_BACKEND_H
