//===- Backends.cpp - The backends of this library ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Backends.h"

#include "comm/Rendezvous.h"
#include "tprt/Connection.h"

#include <algorithm>

using namespace tprt;

/// Every backend. The folder comm/NAME defines backends::NAME().
#define TPRT_BACKENDS(BACKEND)                                                 \
  BACKEND(local) BACKEND(nccl) BACKEND(mpi) BACKEND(tcp)

#define TPRT_DECLARE(name) const Backend &name();
namespace tprt::backends {
TPRT_BACKENDS(TPRT_DECLARE)
} // namespace tprt::backends

std::span<const Backend *const> tprt::getBackends() {
#define TPRT_ENTRY(name) &backends::name(),
  static const Backend *const table[] = {TPRT_BACKENDS(TPRT_ENTRY)};
  return table;
}

const Backend *tprt::findBackend(std::string_view name) {
  auto all = getBackends();
  auto found = std::find_if(all.begin(), all.end(), [&](const Backend *each) {
    return each->name == name;
  });
  return found == all.end() ? nullptr : *found;
}

void tprt::checkNumProcesses(const Manifest &manifest, const Job &job) {
  if (job.worldSize != manifest.worldSize)
    throw inputError(
        "the program has " + std::to_string(manifest.worldSize) +
        " ranks, but there " +
        (job.worldSize == 1
             ? "is 1 process"
             : "are " + std::to_string(job.worldSize) + " processes"));
}

CommunicatorFactory tprt::makeFactory(const Backend &backend,
                                      Connection *connection) {
  return [&backend, connection](const Manifest &manifest,
                                const CommunicatorOptions &options) {
    if (std::string missing = backend.explainMissing(); !missing.empty())
      throw inputError(missing);
    if (connection)
      checkNumProcesses(manifest, connection->getRendezvous().getJob());
    return backend.makeCommunicators(
        manifest, options, connection ? &connection->getRendezvous() : nullptr);
  };
}
