//===- NcclBackend.cpp - The entry of `nccl` in the table -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// This process is one rank, on a device of its own. NCCL may add in another
// order than `local`, so results may differ in the last bits.
//
//===----------------------------------------------------------------------===//

#include "comm/nccl/Nccl.h"
#include "comm/nccl/NcclCommunicator.h"
#include "tprt/Backend.h"
#include "tprt/Error.h"

namespace tprt::backends {

static std::string explainMissing() {
  try {
    cuda::Nccl::get();
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}

static std::vector<std::unique_ptr<Communicator>>
makeCommunicators(const Manifest &manifest, const CommunicatorOptions &options,
                  Rendezvous *rendezvous) {
  const Job &job = rendezvous->getJob();
  std::vector<std::unique_ptr<Communicator>> communicators;
  communicators.push_back(cuda::makeNcclCommunicator(
      manifest, options, job.rank, job.worldSize, *rendezvous));
  return communicators;
}

const Backend &nccl() {
  static const Backend backend = {
      .name = "nccl",
      .description =
          "each is a process that mpirun, srun, torchrun or -n has started",
      .needsProcesses = true,
      .programs = Backend::OfDevices,
      .launchers = "mpirun, srun, torchrun or 'tp-run -n'",
      .explainMissing = explainMissing,
      .makeCommunicators = makeCommunicators};
  return backend;
}

} // namespace tprt::backends
