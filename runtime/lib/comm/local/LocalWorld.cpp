//===- LocalWorld.cpp - Shared state of the ranks of one process ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "comm/local/LocalWorld.h"

#include "support/Patience.h"
#include "support/Spin.h"

using namespace tprt;

LocalWorld::LocalWorld(const Manifest &manifest,
                       const CommunicatorOptions &options)
    : contributions(manifest.worldSize), manifest(manifest),
      timeout(options.timeout), states(manifest.worldSize) {
  uint32_t spins = chooseSpins(manifest.worldSize);
  std::map<std::vector<int64_t>, Group *> known;
  auto getOrMakeGroup = [&](const std::vector<int64_t> &ranks) {
    Group *&group = known[ranks];
    if (!group)
      group = &groups.emplace_back(ranks, spins);
    return group;
  };
  std::vector<int64_t> everyone(manifest.worldSize);
  for (int64_t rank = 0; rank < manifest.worldSize; ++rank)
    everyone[rank] = rank;
  groups.emplace_back(everyone, spins); // shared with no collective

  plans.resize(manifest.collectives.size() * manifest.worldSize);
  for (size_t id = 0; id < manifest.collectives.size(); ++id) {
    const Collective &collective = manifest.collectives[id];
    LocalPlan *ofRank = &plans[id * manifest.worldSize];
    for (const std::vector<int64_t> &ranks : collective.groups) {
      Group *group = getOrMakeGroup(ranks);
      InFlightCollective *started = collective.isStarted
                                        ? &inFlight.emplace_back(*group, spins)
                                        : nullptr;
      for (size_t position = 0; position < ranks.size(); ++position) {
        LocalPlan &plan = ofRank[ranks[position]];
        plan.group = group;
        plan.started = started;
        plan.position = position;
        plan.resultBytes =
            numElements(collective.resultShapes[ranks[position]]) *
            byteWidth(collective.dtype);
      }
    }
    if (collective.kind != CollectiveKind::AllReduce)
      makeReads(collective, ofRank);
  }
}

void LocalWorld::makeReads(const Collective &collective, LocalPlan *ofRank) {
  std::vector<bool> isRead(manifest.worldSize); // for another rank or position
  for (int64_t rank = 0; rank < manifest.worldSize; ++rank) {
    if (!ofRank[rank].group)
      continue;
    for (const Transfer &transfer : getTransfers(collective, rank)) {
      if (numElements(transfer.size) == 0)
        continue;
      ofRank[rank].reads.push_back(
          {ofRank[transfer.from].position,
           StridedCopy(transfer.size,
                       {collective.operandShapes[transfer.from], transfer.src},
                       {collective.resultShapes[rank], transfer.dst})});
      if (transfer.from == rank && transfer.src == transfer.dst)
        continue;
      ofRank[rank].isInPlace = false;
      isRead[transfer.from] = true;
    }
  }
  for (int64_t rank = 0; rank < manifest.worldSize; ++rank)
    ofRank[rank].overwrites = isRead[rank] && !ofRank[rank].isInPlace;
}

void LocalWorld::checkAborted() {
  if (!isAborted.load(std::memory_order_acquire))
    return;
  std::lock_guard<std::mutex> lock(reasonMutex);
  throw AbortedError(abortReason);
}

void LocalWorld::abort(const std::string &reason) {
  {
    std::lock_guard<std::mutex> lock(reasonMutex);
    if (isAborted.load(std::memory_order_relaxed))
      return;
    abortReason = reason;
    isAborted.store(true, std::memory_order_release);
  }
  for (Group &group : groups)
    group.barrier.wakeAll();
  for (InFlightCollective &started : inFlight) {
    started.starts.wakeAll();
    started.tasks.wakeAll();
  }
}

/// "rank 0 waits in collective 3 (…); rank 1 computes after collective 2 (…)".
std::string LocalWorld::describeRanks() {
  std::string text;
  for (int64_t rank = 0; rank < manifest.worldSize; ++rank) {
    int64_t activity = states[rank].activity.load();
    int64_t last = states[rank].lastDone.load();
    text += (rank ? "; rank " : "rank ") + std::to_string(rank);
    if (activity >= 0) {
      text += " waits in " + describeCollective(manifest, activity);
      continue;
    }
    text += activity == finished    ? " has ended"
            : activity == inBarrier ? " waits for the run's start or end"
                                    : " computes";
    if (last >= 0)
      text += " after " + describeCollective(manifest, last);
  }
  return text;
}

void LocalWorld::refuse(const Awaited &self, int64_t other, int64_t otherId) {
  const std::vector<int64_t> &ranks = self.group.ranks;
  abort("the ranks' programs don't match: rank " +
        std::to_string(ranks[self.position]) + " is in " +
        describeCollective(manifest, self.id) + ", rank " +
        std::to_string(ranks[other]) + " in " +
        describeCollective(manifest, otherId));
  checkAborted();
}

/// Whether a rank won't arrive any more, because it has ended or has gone on to
/// a barrier.
bool LocalWorld::isGone(const Awaited &awaited, int64_t position) {
  State &state = states[awaited.group.ranks[position]];
  State &self = states[awaited.group.ranks[awaited.position]];
  return state.activity.load() == finished ||
         state.numBarriers.load() > self.numBarriers.load();
}

/// Whether a member has issued another collective instead of the awaited one.
bool LocalWorld::hasIssuedAnother(const Awaited &awaited, int64_t position) {
  if (awaited.id < 0)
    return false;
  const Issued &issued = awaited.group.issued[position];
  int64_t count = issued.count.load(std::memory_order_acquire);
  if (count <= awaited.number)
    return false;
  // A rank increments numStarts before it counts the collective as issued.
  if (const InFlightCollective *started = awaited.started)
    return started->members[position].numStarts.load() <
           started->members[awaited.position].round;
  // A rank that runs this collective can't go on to the next one before it is
  // over.
  return count > awaited.number + 1 || issued.last.load() != awaited.id;
}

void LocalWorld::await(Barrier &barrier, uint64_t target,
                       const Awaited &awaited) {
  barrier.await(target, [&](std::chrono::steady_clock::duration waited) {
    checkAborted();
    const Group &group = awaited.group;
    // The others' states only matter while this round isn't over.
    for (size_t p = 0; p < group.ranks.size(); ++p) {
      if (hasIssuedAnother(awaited, p) && !barrier.isOver(target))
        refuse(awaited, p, group.issued[p].last.load());
      if (isGone(awaited, p) && !barrier.isOver(target)) {
        abort("rank " + std::to_string(group.ranks[p]) +
              " has ended while others wait for it: " + describeRanks());
        checkAborted();
      }
    }
    if (timeout.count() > 0 && waited > timeout) {
      abort("no progress for " + formatTimeout(timeout) + ": " +
            describeRanks());
      checkAborted();
    }
  });
}

void LocalWorld::barrier(int64_t rank) {
  Group &everyone = groups.front();
  await(everyone.barrier, everyone.barrier.arrive(), {everyone, rank});
}
