//===- Ranks.h - Ranks whose communicators are tested -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_UNITTESTS_RANKS_H
#define TPRT_UNITTESTS_RANKS_H

#include "TestedBackends.h"

#include <numeric>
#include <thread>

namespace tprt::test {

inline Manifest makeManifest(int64_t worldSize,
                             std::vector<Collective> collectives) {
  Manifest manifest;
  manifest.worldSize = worldSize;
  manifest.collectives = std::move(collectives);
  return manifest;
}

inline std::vector<int64_t> firstRanks(int64_t count) {
  std::vector<int64_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// Runs `body(communicator)` on a thread per rank of this process; returns what
/// each threw, by rank.
template <typename Body>
std::vector<std::string>
runRanks(const Manifest &manifest, const CommunicatorOptions &options,
         Body body, const Backend *backend = findBackend("local")) {
  auto communicators = makeCommunicators(*backend, manifest, options);
  std::vector<std::string> errors(manifest.worldSize);
  std::vector<std::thread> threads;
  for (auto &communicator : communicators)
    threads.emplace_back([&] {
      try {
        body(*communicator);
      } catch (const Error &error) {
        errors[communicator->getRank()] = error.what();
      }
      communicator->finish();
    });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

} // namespace tprt::test

#endif // TPRT_UNITTESTS_RANKS_H
