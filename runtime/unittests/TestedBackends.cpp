//===- TestedBackends.cpp - Communicators of one process ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestedBackends.h"

#include "Jobs.h"

#include <cstdlib>

using namespace tprt;
using namespace tprt::test;

std::vector<const Backend *> test::getBackendsHere() {
  std::vector<const Backend *> here = getBackendsOfTests(), launched;
  for (const Backend *backend : getBackends()) {
    bool canBeLaunched = !backend->isLaunched || backend->isLaunched();
    if (canBeHere(*backend) && canBeLaunched &&
        backend->explainMissing().empty())
      (backend->isLaunched ? launched : here).push_back(backend);
  }
  return launched.empty() ? here : launched;
}

std::vector<int64_t> test::getWorldSizes(const Backend &backend) {
  if (backend.isLaunched)
    return {Job::fromEnvironment(::getenv).value().worldSize};
  return {1, 2, 3, 4, 5, 6};
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
  constexpr std::chrono::seconds limit(60);
  if (backend.isLaunched) {
    static Connection connection(backend,
                                 Job::fromEnvironment(::getenv).value(), limit);
    return make(/*rank=*/0, &connection);
  }
  int64_t worldSize = manifest.worldSize;
  std::vector<Job> jobs = makeJobs(worldSize);
  static std::vector<std::unique_ptr<Connection>> connections; // outlive them
  size_t first = connections.size();
  connections.resize(first + worldSize);
  std::vector<std::unique_ptr<Communicator>> communicators(worldSize);
  runThreads(worldSize, [&](int64_t rank) {
    connections[first + rank] = std::make_unique<Connection>(jobs[rank], limit);
    communicators[rank] =
        std::move(make(rank, connections[first + rank].get()).front());
  });
  return communicators;
}
