// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Times all-reduces of f32 over the ranks of libtprt's `local` backend, which
// are threads of this process, in place.
//
//     tp-bench-all-reduce RANKS BYTES CALLS [BYTES CALLS…]
//
// prints the seconds of a call, the median over CALLS, for each size.
// all_reduce.py runs it.

#include "tprt/LocalCommunicator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <thread>

using Clock = std::chrono::steady_clock;

static tprt::Manifest makeManifest(int64_t numRanks,
                                   const std::vector<int64_t> &sizes) {
  tprt::Manifest manifest;
  manifest.worldSize = numRanks;
  std::vector<int64_t> everyone;
  for (int64_t rank = 0; rank < numRanks; ++rank)
    everyone.push_back(rank);
  for (int64_t bytes : sizes) {
    tprt::Collective collective{};
    collective.kind = tprt::CollectiveKind::AllReduce;
    collective.dtype = tprt::Dtype::F32;
    collective.operandShapes.assign(numRanks, {bytes / 4});
    collective.resultShapes = collective.operandShapes;
    collective.groups = {everyone};
    manifest.collectives.push_back(collective);
  }
  return manifest;
}

/// One rank's calls of collective `id`; returns the seconds of one.
static double measure(tprt::Communicator &communicator, int64_t id,
                      int64_t bytes, int64_t numCalls) {
  std::shared_ptr<std::byte> data = tprt::allocateAligned(bytes);
  std::fill_n(reinterpret_cast<float *>(data.get()), bytes / 4, 0.0f);
  std::vector<double> seconds;
  for (int64_t call = -numCalls / 5; call < numCalls;
       ++call) { // the first ones warm up
    Clock::time_point start = Clock::now();
    communicator.run(id, data.get(), data.get());
    if (call >= 0)
      seconds.push_back(
          std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + numCalls / 2,
                   seconds.end());
  return seconds[numCalls / 2];
}

/// As a session pins its ranks.
static void pin(int64_t rank) {
  cpu_set_t all, one;
  CPU_ZERO(&one);
  sched_getaffinity(0, sizeof(all), &all);
  for (int core = 0, found = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &all) && found++ == rank)
      CPU_SET(core, &one);
  if (CPU_COUNT(&one))
    sched_setaffinity(0, sizeof(one), &one);
}

int main(int argc, char **argv) {
  int64_t numRanks = std::atoll(argv[1]);
  std::vector<int64_t> sizes, calls;
  for (int i = 2; i + 1 < argc; i += 2) {
    sizes.push_back(std::atoll(argv[i]));
    calls.push_back(std::atoll(argv[i + 1]));
  }
  tprt::Manifest manifest = makeManifest(numRanks, sizes);
  auto communicators = tprt::makeLocalCommunicators(manifest, {});
  std::vector<std::thread> threads;
  for (auto &communicator : communicators)
    threads.emplace_back([&] {
      pin(communicator->getRank());
      for (size_t id = 0; id < sizes.size(); ++id) {
        double seconds = measure(*communicator, id, sizes[id], calls[id]);
        if (communicator->getRank() == 0)
          std::printf("%.9f\n", seconds);
      }
      communicator->finish();
    });
  for (std::thread &thread : threads)
    thread.join();
}
