//===- TestedBackends.cpp - Communicators of one process ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestedBackends.h"

#include "Jobs.h"

using namespace tprt;
using namespace tprt::test;

std::vector<const Backend *> test::getBackendsHere() {
  std::vector<const Backend *> here = getBackendsOfTests();
  for (const Backend *backend : getBackends())
    if (canBeHere(*backend) && backend->explainMissing().empty())
      here.push_back(backend);
  return here;
}

std::vector<std::unique_ptr<Communicator>>
test::makeCommunicators(const Backend &backend, const Manifest &manifest,
                        const CommunicatorOptions &options) {
  auto make = [&](int64_t rank, Connection *connection) {
    CommunicatorOptions here = options;
    here.device = getDevice(rank);
    return makeFactory(backend, connection)(manifest, here);
  };
  if (!backend.needsProcesses)
    return make(/*rank=*/0, nullptr);
  int64_t worldSize = manifest.worldSize;
  std::vector<Job> jobs = makeJobs(worldSize);
  static std::vector<std::unique_ptr<Connection>> connections; // outlive them
  size_t first = connections.size();
  connections.resize(first + worldSize);
  std::vector<std::unique_ptr<Communicator>> communicators(worldSize);
  runThreads(worldSize, [&](int64_t rank) {
    connections[first + rank] =
        std::make_unique<Connection>(jobs[rank], std::chrono::seconds(60));
    communicators[rank] =
        std::move(make(rank, connections[first + rank].get()).front());
  });
  return communicators;
}
