//===- LocalBackend.cpp - The entry of `local` in the table ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Backend.h"
#include "tprt/LocalCommunicator.h"

namespace tprt::backends {

const Backend &local() {
  static const Backend backend = {
      .name = "local",
      .description = "all are threads of this process and share a device",
      .needsProcesses = false,
      .explainMissing = [] { return std::string(); },
      .makeCommunicators =
          [](const Manifest &manifest, const CommunicatorOptions &options,
             Rendezvous *) {
            return makeLocalCommunicators(manifest, options);
          }};
  return backend;
}

} // namespace tprt::backends
