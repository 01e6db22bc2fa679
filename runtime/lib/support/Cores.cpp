//===- Cores.cpp - Cores of ranks -----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/Cores.h"

#include <algorithm>
#include <thread>

using namespace tprt;

static std::vector<int> findUsableCores() {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set))
        cores.push_back(core);
  // For instance, if there are more cores than a set has room for.
  if (cores.empty())
    for (unsigned core = 0; core < std::thread::hardware_concurrency(); ++core)
      cores.push_back(core);
  return cores;
}

const std::vector<int> &tprt::getUsableCores() {
  static const std::vector<int> cores = findUsableCores();
  return cores;
}

std::vector<int> tprt::chooseCores(const std::vector<int> &cores,
                                   int64_t position, int64_t numRanks) {
  int64_t perRank = cores.size() / numRanks;
  auto begin = cores.begin() + position * perRank;
  return {begin, begin + perRank};
}

void tprt::pinThread(const std::vector<int> &cores) {
  if (cores.empty())
    return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core : cores)
    if (core < CPU_SETSIZE)
      CPU_SET(core, &set);
  ::sched_setaffinity(0, sizeof(set), &set);
}

PinnedThread::PinnedThread(const std::vector<int> &cores) {
  cpu_set_t set;
  if (cores.empty() || std::ranges::count(cores, ::sched_getcpu()) > 0 ||
      ::sched_getaffinity(0, sizeof(set), &set) != 0)
    return;
  before = set;
  pinThread(cores);
}

PinnedThread::~PinnedThread() {
  if (before)
    ::sched_setaffinity(0, sizeof(*before), &*before);
}
