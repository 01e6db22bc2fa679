//===- LocalCommunicator.cpp - Ranks as threads of one process -----------===//
//
// A collective is: publish the addresses of operand and result, meet, read the
// others' operands, meet. All-reduce reduces by chunks, one per rank, meets
// once more in between, and copies the others' chunks.
//
//===----------------------------------------------------------------------===//

#include "Barrier.h"
#include "Box.h"
#include "Reduce.h"
#include "tprt/Communicator.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

using namespace tprt;

// What State::activity says besides the id of the collective that a rank is in.
static constexpr int64_t computing = -1;
static constexpr int64_t inBarrier = -2;
static constexpr int64_t finished = -3;

namespace {

/// What one rank shows to the others. Each on its own cache line.
struct alignas(64) State {
  const std::byte *src = nullptr;
  std::byte *dst = nullptr;
  int64_t id = 0;
  std::atomic<int64_t> activity{computing};
  std::atomic<int64_t> lastDone{-1};
  std::atomic<int64_t> numBarriers{0}; ///< entered so far
};

/// Ranks that communicate with each other.
struct Group {
  Group(const std::vector<int64_t> &ranks, uint32_t spins)
      : ranks(ranks), barrier(ranks.size(), spins) {}

  std::vector<int64_t> ranks;
  Barrier barrier;
};

/// What all ranks of the process share.
class World {
public:
  World(const Manifest &manifest, const CommunicatorOptions &options);

  const Manifest &getManifest() const { return manifest; }
  State &getState(int64_t rank) { return states[rank]; }
  Group &getWorldGroup() { return groups.front(); }
  /// The group of `rank` in collective `id`; null when it is in none.
  Group *getGroup(int64_t id, int64_t rank) {
    return groupOf[id * manifest.worldSize + rank];
  }

  void wait(Group &group, int64_t rank);
  void abort(const std::string &reason);
  void checkAborted();

private:
  std::string describeRanks();

  const Manifest &manifest;
  const std::chrono::milliseconds timeout;
  std::deque<State> states;
  std::deque<Group> groups; // the barrier of all ranks first
  std::vector<Group *> groupOf;

  std::atomic<bool> isAborted{false};
  std::mutex reasonMutex;
  std::string abortReason;
};

} // namespace

/// Spinning pays while every rank has a core: about 0.2 ms, several times what
/// waking a thread costs.
static uint32_t chooseSpins(int64_t worldSize) {
  return worldSize <= std::thread::hardware_concurrency() ? 8192 : 32;
}

World::World(const Manifest &manifest, const CommunicatorOptions &options)
    : manifest(manifest), timeout(options.timeout), states(manifest.worldSize) {
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

  groupOf.resize(manifest.collectives.size() * manifest.worldSize);
  for (size_t id = 0; id < manifest.collectives.size(); ++id)
    for (const std::vector<int64_t> &ranks : manifest.collectives[id].groups)
      for (int64_t rank : ranks)
        groupOf[id * manifest.worldSize + rank] = getOrMakeGroup(ranks);
}

void World::checkAborted() {
  if (!isAborted.load(std::memory_order_acquire))
    return;
  std::lock_guard<std::mutex> lock(reasonMutex);
  throw AbortedError(abortReason);
}

void World::abort(const std::string &reason) {
  {
    std::lock_guard<std::mutex> lock(reasonMutex);
    if (isAborted.load(std::memory_order_relaxed))
      return;
    abortReason = reason;
    isAborted.store(true, std::memory_order_release);
  }
  for (Group &group : groups)
    group.barrier.wakeAll();
}

/// "rank 0 waits in collective 3 (…); rank 1 computes after collective 2 (…)".
std::string World::describeRanks() {
  std::string text;
  for (int64_t rank = 0; rank < manifest.worldSize; ++rank) {
    int64_t activity = states[rank].activity.load();
    int64_t last = states[rank].lastDone.load();
    text += (rank ? "; rank " : "rank ") + std::to_string(rank);
    if (activity >= 0) {
      text += " waits in " + describe(manifest.collectives[activity], activity);
      continue;
    }
    text += activity == finished    ? " has ended"
            : activity == inBarrier ? " waits for the run's start or end"
                                    : " computes";
    if (last >= 0)
      text += " after " + describe(manifest.collectives[last], last);
  }
  return text;
}

void World::wait(Group &group, int64_t rank) {
  group.barrier.wait([&](std::chrono::steady_clock::duration waited,
                         auto isOver) {
    checkAborted();
    // A rank that has ended, or passed on to a barrier, won't arrive any more;
    // unless it has done so before.
    for (int64_t other : group.ranks) {
      State &state = states[other];
      bool isGone = state.activity.load() == finished ||
                    state.numBarriers.load() > states[rank].numBarriers.load();
      if (!isGone || isOver())
        continue;
      abort("rank " + std::to_string(other) +
            " has ended while others wait for it: " + describeRanks());
      checkAborted();
    }
    if (timeout.count() > 0 && waited > timeout) {
      char seconds[32];
      std::snprintf(seconds, sizeof(seconds), "%g", timeout.count() / 1000.0);
      abort(std::string("no progress for ") + seconds +
            " s: " + describeRanks());
      checkAborted();
    }
  });
}

namespace {

/// One collective as one rank sees it.
struct Participant {
  World &world;
  const Collective &collective;
  Group &group;
  int64_t rank;
  size_t position;
  int64_t elementBytes;
  int64_t received = 0; ///< bytes from other ranks

  size_t getGroupSize() const { return group.ranks.size(); }
  State &getPeer(size_t p) { return world.getState(group.ranks[p]); }
  void meet() { world.wait(group, rank); }

  /// Copies a box of peer p's operand.
  void copyFrom(size_t p, const Shape &size, const Shape &readOffset,
                const Shape &writeOffset, std::byte *dst) {
    int64_t bytes =
        copyBox(size, elementBytes, {collective.operandShape, readOffset},
                getPeer(p).src, {collective.resultShape, writeOffset}, dst);
    count(p, bytes);
  }
  void count(size_t p, int64_t bytes) {
    if (p != position)
      received += bytes;
  }

  void gather(std::byte *dst);
  void reduceScatter(std::byte *dst);
  void allReduce(std::byte *dst);
  void exchange(std::byte *dst);
  void copyWhole(size_t p, std::byte *dst);
};

} // namespace

void Participant::gather(std::byte *dst) {
  Shape zero(collective.operandShape.size(), 0), offset = zero;
  for (size_t p = 0; p < getGroupSize(); ++p) {
    copyFrom(p, collective.operandShape, zero, offset, dst);
    offset[collective.dim] += collective.operandShape[collective.dim];
  }
}

void Participant::reduceScatter(std::byte *dst) {
  Shape zero(collective.operandShape.size(), 0), offset = zero;
  offset[collective.dim] = position * collective.resultShape[collective.dim];
  std::vector<const std::byte *> operands(getGroupSize());
  forEachRun(collective.resultShape, {collective.operandShape, offset},
             {collective.resultShape, zero},
             [&](int64_t read, int64_t write, int64_t size) {
               for (size_t p = 0; p < getGroupSize(); ++p) {
                 operands[p] = getPeer(p).src + read * elementBytes;
                 count(p, size * elementBytes);
               }
               reduce(collective.reduction, collective.dtype, operands,
                      dst + write * elementBytes, size);
             });
}

void Participant::allReduce(std::byte *dst) {
  int64_t total = numElements(collective.operandShape);
  int64_t n = getGroupSize();
  int64_t chunk = (total + n - 1) / n;
  auto getBegin = [&](int64_t p) { return std::min(p * chunk, total); };
  auto getSize = [&](int64_t p) { return getBegin(p + 1) - getBegin(p); };

  // Nobody else reads this rank's chunk of any operand, so results may be
  // written over operands.
  int64_t begin = getBegin(position) * elementBytes;
  std::vector<const std::byte *> operands(n);
  for (int64_t p = 0; p < n; ++p) {
    operands[p] = getPeer(p).src + begin;
    count(p, getSize(position) * elementBytes);
  }
  reduce(collective.reduction, collective.dtype, operands, dst + begin,
         getSize(position));
  meet();
  for (int64_t step = 1; step < n; ++step) {
    int64_t p = (position + step) % n; // each rank begins with another peer
    int64_t start = getBegin(p) * elementBytes;
    int64_t bytes = getSize(p) * elementBytes;
    if (bytes > 0)
      std::memcpy(dst + start, getPeer(p).dst + start, bytes);
    count(p, bytes);
  }
}

void Participant::exchange(std::byte *dst) {
  Shape size = collective.operandShape;
  size[collective.splitDim] /= static_cast<int64_t>(getGroupSize());
  Shape read(size.size(), 0), write(size.size(), 0);
  read[collective.splitDim] = position * size[collective.splitDim];
  for (size_t p = 0; p < getGroupSize(); ++p) {
    copyFrom(p, size, read, write, dst);
    write[collective.concatDim] += size[collective.concatDim];
  }
}

void Participant::copyWhole(size_t p, std::byte *dst) {
  int64_t bytes = numElements(collective.operandShape) * elementBytes;
  const std::byte *src = getPeer(p).src;
  if (bytes > 0 && src != dst)
    std::memcpy(dst, src, bytes);
  count(p, bytes);
}

namespace {

class LocalCommunicator final : public Communicator {
public:
  LocalCommunicator(std::shared_ptr<World> world, int64_t rank)
      : world(std::move(world)), rank(rank) {}

  int64_t getRank() const override { return rank; }
  int64_t run(int64_t id, const std::byte *src, std::byte *dst) override;
  void barrier() override;
  void abort(const std::string &reason) override { world->abort(reason); }
  void finish() override { world->getState(rank).activity = finished; }

private:
  void checkSameCollective(Participant &self, int64_t id);

  std::shared_ptr<World> world;
  int64_t rank;
  std::shared_ptr<std::byte> staging;
  int64_t stagingBytes = 0;
};

} // namespace

void LocalCommunicator::barrier() {
  world->checkAborted();
  State &state = world->getState(rank);
  state.activity = inBarrier;
  ++state.numBarriers;
  world->wait(world->getWorldGroup(), rank);
  state.activity = computing;
}

/// All members of a group must be in the same collective; a program that orders
/// them differently has a bug.
void LocalCommunicator::checkSameCollective(Participant &self, int64_t id) {
  for (size_t p = 0; p < self.getGroupSize(); ++p) {
    int64_t other = self.getPeer(p).id;
    if (other == id)
      continue;
    const std::vector<Collective> &all = world->getManifest().collectives;
    world->abort("the ranks' programs don't match: rank " +
                 std::to_string(rank) + " is in " + describe(all[id], id) +
                 ", rank " + std::to_string(self.group.ranks[p]) + " in " +
                 describe(all[other], other));
    world->checkAborted();
  }
}

int64_t LocalCommunicator::run(int64_t id, const std::byte *src,
                               std::byte *dst) {
  world->checkAborted();
  const Collective &collective = world->getManifest().collectives[id];
  Group *group = world->getGroup(id, rank);
  if (!group)
    throw executionError("rank " + std::to_string(rank) +
                         " is in no group of " + describe(collective, id));
  State &state = world->getState(rank);
  state.src = src;
  state.dst = dst;
  state.id = id;
  state.activity.store(id, std::memory_order_relaxed);
  size_t position = std::find(group->ranks.begin(), group->ranks.end(), rank) -
                    group->ranks.begin();
  Participant self{*world, collective, *group,
                   rank,   position,   byteWidth(collective.dtype)};
  self.meet();
  checkSameCollective(self, id);

  // In place, a result would overwrite what others still have to read.
  bool isStaged = src == dst && group->ranks.size() > 1 &&
                  (collective.kind == CollectiveKind::AllToAll ||
                   collective.kind == CollectiveKind::Permute);
  int64_t bytes = numElements(collective.resultShape) * self.elementBytes;
  if (isStaged && stagingBytes < bytes) {
    staging = allocateAligned(bytes);
    stagingBytes = bytes;
  }
  std::byte *target = isStaged ? staging.get() : dst;

  switch (collective.kind) {
  case CollectiveKind::AllGather:
    if (src != dst)
      self.gather(target);
    break;
  case CollectiveKind::ReduceScatter:
    self.reduceScatter(target);
    break;
  case CollectiveKind::AllReduce:
    self.allReduce(target);
    break;
  case CollectiveKind::AllToAll:
    if (src != target)
      self.exchange(target);
    break;
  case CollectiveKind::Permute:
    self.copyWhole(collective.source[position], target);
    break;
  case CollectiveKind::Broadcast:
    self.copyWhole(collective.root, target);
    break;
  }
  self.meet();
  if (isStaged)
    std::memcpy(dst, target, bytes);
  state.lastDone.store(id, std::memory_order_relaxed);
  state.activity.store(computing, std::memory_order_relaxed);
  return self.received;
}

std::vector<std::unique_ptr<Communicator>>
tprt::makeLocalCommunicators(const Manifest &manifest,
                             const CommunicatorOptions &options) {
  auto world = std::make_shared<World>(manifest, options);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int64_t rank = 0; rank < manifest.worldSize; ++rank)
    communicators.push_back(std::make_unique<LocalCommunicator>(world, rank));
  return communicators;
}
