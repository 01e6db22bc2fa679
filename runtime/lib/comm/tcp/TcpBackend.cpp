//===- TcpBackend.cpp - The entry of `tcp` in the table -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// This process is one rank. Each pair of ranks has a connection of its own, by
// which all data of collectives goes. Nothing but the runtime is needed, so any
// launcher will do.
//
//===----------------------------------------------------------------------===//

#include "comm/ExchangeCommunicator.h"
#include "comm/tcp/TcpExchanger.h"
#include "tprt/Backend.h"

namespace tprt::backends {

static std::vector<std::unique_ptr<Communicator>>
makeCommunicators(const Manifest &manifest, const CommunicatorOptions &options,
                  Rendezvous *rendezvous) {
  std::vector<std::unique_ptr<Communicator>> communicators;
  communicators.push_back(std::make_unique<ExchangeCommunicator>(
      manifest, options,
      std::make_unique<tcp::TcpExchanger>(*rendezvous, options.timeout),
      "TCP"));
  return communicators;
}

const Backend &tcp() {
  static const Backend backend = {
      .name = "tcp",
      .description = "each is a process that srun, torchrun or -n has started",
      .needsProcesses = true,
      .programs = Backend::OfHost,
      .hasChecksums = true,
      .launchers = "srun, torchrun, 'tp-run -n' or another launcher that sets "
                   "TP_RANK and TP_WORLD_SIZE",
      .explainMissing = [] { return std::string(); },
      .makeCommunicators = makeCommunicators};
  return backend;
}

} // namespace tprt::backends
