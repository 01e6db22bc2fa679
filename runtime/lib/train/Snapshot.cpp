//===- Snapshot.cpp - Checkpoints written beside the steps ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "train/Snapshot.h"

#include "support/Parallel.h"

#include <sched.h>

using namespace tprt;

Snapshot tprt::takeSnapshot(const Manifest &manifest,
                            const GetParameter &getParameter,
                            int64_t numThreads) {
  std::vector<Tensor> values(manifest.parameters.size());
  parallelFor(values.size(), numThreads, [&](int64_t i) {
    values[i] = getParameter(manifest.parameters[i].name);
  });
  Snapshot snapshot;
  for (size_t i = 0; i < values.size(); ++i)
    snapshot[manifest.parameters[i].name] = std::move(values[i]);
  return snapshot;
}

/// Leaves the cores to the ranks' threads whenever these have work, also when
/// they wake up. With the highest nice value instead, this thread would first
/// finish its slice, and steps would take 1.3 times as long beside it instead of
/// 1.1 times.
static void lowerPriority() {
  sched_param none = {};
  ::sched_setscheduler(/*the calling thread*/ 0, SCHED_IDLE, &none);
}

std::future<std::string> tprt::writeSnapshot(CheckpointDirectory &directory,
                                             const Manifest &manifest,
                                             Snapshot snapshot, int64_t step,
                                             const DataState &data,
                                             int64_t keep) {
  return std::async(std::launch::async, [&directory, &manifest,
                                         snapshot = std::move(snapshot), step,
                                         data, keep] {
    lowerPriority();
    try {
      std::string path = directory.write(
          manifest, [&](const std::string &name) { return snapshot.at(name); },
          step, data, /*numThreads=*/1);
      if (keep > 0)
        directory.keepLast(keep, step);
      return path;
    } catch (const Error &error) {
      throw Error(error.getKind(), "checkpoint of step " +
                                       std::to_string(step) + ": " +
                                       error.what());
    }
  });
}
