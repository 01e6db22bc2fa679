//===- LocalCommunicator.cpp - Ranks as threads of one process -----------===//
//
// A collective is: publish the addresses of operand and result, meet, read the
// others' operands, meet. What a rank reads is a list of boxes, made before the
// program runs. All-reduce reduces by chunks, one per rank, which writes it to
// everyone's result.
//
// On a device the same happens later, in the order of the ranks' streams: where
// threads meet, each has announced an event, and its stream waits for those of
// the others.
//
//===----------------------------------------------------------------------===//

#include "Barrier.h"
#include "Cores.h"
#include "Device.h"
#include "tprt/Communicator.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

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
      : ranks(ranks), barrier(ranks.size(), spins) {
    for (std::vector<Event *> &announced : events)
      announced.resize(ranks.size());
  }

  std::vector<int64_t> ranks;
  Barrier barrier;
  /// What the members' streams have announced, by position. Who announces the
  /// next one while others still look for the last has met them in between, so
  /// that two take turns.
  std::vector<Event *> events[2];
};

/// A box of the operand of rank `from` and where it goes.
struct Read {
  int64_t from;
  Walk walk; ///< operand to result
};

/// One collective as one rank takes part in it.
struct Part {
  Group *group = nullptr; ///< null: not at all
  int64_t position = 0;   ///< in the group
  std::vector<Read> reads;
  int64_t resultBytes = 0;
  /// In place, everything that is read is where it belongs already.
  bool isInPlace = true;
  /// In place, writing the result would overwrite what is still to be read.
  bool overwrites = false;
};

/// What all ranks of the process share.
class World {
public:
  World(const Manifest &manifest, const CommunicatorOptions &options);

  const Manifest &getManifest() const { return manifest; }
  State &getState(int64_t rank) { return states[rank]; }
  Group &getWorldGroup() { return groups.front(); }
  const Part &getPart(int64_t id, int64_t rank) const {
    return parts[id * manifest.worldSize + rank];
  }

  void wait(Group &group, int64_t rank);
  void abort(const std::string &reason);
  void checkAborted();

private:
  void makeReads(const Collective &collective, Part *parts);
  std::string describeRanks();

  const Manifest &manifest;
  const std::chrono::milliseconds timeout;
  std::deque<State> states;
  std::deque<Group> groups; // the barrier of all ranks first
  std::vector<Part> parts;  // [id][rank]

  std::atomic<bool> isAborted{false};
  std::mutex reasonMutex;
  std::string abortReason;
};

} // namespace

/// Spinning pays while every rank has a core: about 0.2 ms, several times what
/// waking a thread costs.
static uint32_t chooseSpins(int64_t worldSize) {
  return worldSize <= static_cast<int64_t>(getUsableCores().size()) ? 8192 : 32;
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

  parts.resize(manifest.collectives.size() * manifest.worldSize);
  for (size_t id = 0; id < manifest.collectives.size(); ++id) {
    const Collective &collective = manifest.collectives[id];
    Part *ofRank = &parts[id * manifest.worldSize];
    for (const std::vector<int64_t> &ranks : collective.groups)
      for (size_t position = 0; position < ranks.size(); ++position) {
        Part &part = ofRank[ranks[position]];
        part.group = getOrMakeGroup(ranks);
        part.position = position;
        part.resultBytes =
            numElements(collective.resultShapes[ranks[position]]) *
            byteWidth(collective.dtype);
      }
    if (collective.kind != CollectiveKind::AllReduce)
      makeReads(collective, ofRank);
  }
}

void World::makeReads(const Collective &collective, Part *ofRank) {
  std::vector<bool> isRead(manifest.worldSize); // by somebody else
  for (int64_t rank = 0; rank < manifest.worldSize; ++rank) {
    if (!ofRank[rank].group)
      continue;
    for (const Transfer &transfer : getTransfers(collective, rank)) {
      if (numElements(transfer.size) == 0)
        continue;
      ofRank[rank].reads.push_back(
          {transfer.from,
           Walk(transfer.size,
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

/// One call of a collective by one rank.
struct Participant {
  World &world;
  Stream &stream;
  const Collective &collective;
  const Part &part;
  int64_t rank;
  int64_t elementBytes;
  int64_t received = 0;  ///< bytes from other ranks
  bool isSecond = false; ///< of the two meetings

  const std::vector<int64_t> &getRanks() const { return part.group->ranks; }
  void meet();

  void count(int64_t from, int64_t bytes) {
    if (from != rank)
      received += bytes;
  }

  void copy(std::byte *dst);
  void reduceScatter(std::byte *dst);
  void allReduce();
};

} // namespace

/// What is enqueued after this runs after all that the members have enqueued
/// before.
void Participant::meet() {
  std::vector<Event *> &events = part.group->events[isSecond];
  isSecond = true;
  events[part.position] = stream.announce();
  world.wait(*part.group, rank);
  if (!events[part.position])
    return;
  for (size_t i = 0; i < events.size(); ++i)
    if (static_cast<int64_t>(i) != part.position)
      stream.waitFor(events[i]);
}

void Participant::copy(std::byte *dst) {
  for (const Read &read : part.reads) {
    const std::byte *src = world.getState(read.from).src;
    if (read.from == rank && src == dst)
      continue; // it is in its place: nothing is overwritten here
    stream.copy(read.walk, elementBytes, src, dst);
    count(read.from, read.walk.getNumElements() * elementBytes);
  }
}

void Participant::reduceScatter(std::byte *dst) {
  if (part.reads.empty())
    return;
  // The members' operands have one shape, so that one walk is that of all.
  std::vector<const std::byte *> operands(part.reads.size());
  part.reads.front().walk.forEachRun([&](int64_t src, int64_t result,
                                         int64_t size) {
    for (size_t i = 0; i < operands.size(); ++i)
      operands[i] = world.getState(part.reads[i].from).src + src * elementBytes;
    stream.reduce(collective.reduction, collective.dtype, operands,
                  {dst + result * elementBytes}, size);
  });
  for (const Read &read : part.reads)
    count(read.from, read.walk.getNumElements() * elementBytes);
}

void Participant::allReduce() {
  int64_t total = part.resultBytes / elementBytes;
  int64_t n = getRanks().size();
  int64_t chunk = (total + n - 1) / n;
  auto getBegin = [&](int64_t p) { return std::min(p * chunk, total); };
  auto getSize = [&](int64_t p) { return getBegin(p + 1) - getBegin(p); };

  // Nobody else touches this rank's chunk of any operand or result, so results
  // may lie where operands do.
  int64_t begin = getBegin(part.position) * elementBytes;
  std::vector<const std::byte *> operands(n);
  std::vector<std::byte *> results(n);
  for (int64_t p = 0; p < n; ++p) {
    const State &state = world.getState(getRanks()[p]);
    operands[p] = state.src + begin;
    results[p] = state.dst + begin;
    count(getRanks()[p], getSize(part.position) * elementBytes);
  }
  // Its own last: that stays in this core's cache.
  std::swap(results[part.position], results.back());
  stream.reduce(collective.reduction, collective.dtype, operands, results,
                getSize(part.position));
  meet();
  // What the others have written here.
  for (int64_t p = 0; p < n; ++p)
    count(getRanks()[p], getSize(p) * elementBytes);
}

namespace {

class LocalCommunicator final : public Communicator {
public:
  /// `stream` is null on the host.
  LocalCommunicator(std::shared_ptr<World> world, int64_t rank, Stream *stream)
      : world(std::move(world)), rank(rank),
        stream(stream ? *stream : hostStream) {}

  int64_t getRank() const override { return rank; }
  int64_t run(int64_t id, const std::byte *src, std::byte *dst) override;
  void barrier() override;
  void abort(const std::string &reason) override { world->abort(reason); }
  void finish() override { world->getState(rank).activity = finished; }

private:
  void checkSameCollective(const Participant &self, int64_t id);

  std::shared_ptr<World> world;
  int64_t rank;
  HostStream hostStream;
  Stream &stream;
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
void LocalCommunicator::checkSameCollective(const Participant &self,
                                            int64_t id) {
  for (int64_t peer : self.getRanks()) {
    int64_t other = world->getState(peer).id;
    if (other == id)
      continue;
    const std::vector<Collective> &all = world->getManifest().collectives;
    world->abort("the ranks' programs don't match: rank " +
                 std::to_string(rank) + " is in " + describe(all[id], id) +
                 ", rank " + std::to_string(peer) + " in " +
                 describe(all[other], other));
    world->checkAborted();
  }
}

int64_t LocalCommunicator::run(int64_t id, const std::byte *src,
                               std::byte *dst) {
  world->checkAborted();
  const Collective &collective = world->getManifest().collectives[id];
  const Part &part = world->getPart(id, rank);
  if (!part.group)
    throw executionError("rank " + std::to_string(rank) +
                         " is in no group of " + describe(collective, id));
  State &state = world->getState(rank);
  state.src = src;
  state.dst = dst;
  state.id = id;
  state.activity.store(id, std::memory_order_relaxed);
  Participant self{*world, stream, collective,
                   part,   rank,   byteWidth(collective.dtype)};
  self.meet();
  checkSameCollective(self, id);

  if (collective.kind == CollectiveKind::AllReduce) {
    self.allReduce();
  } else if (collective.kind == CollectiveKind::ReduceScatter) {
    self.reduceScatter(dst);
    self.meet();
  } else if (src == dst && part.overwrites) {
    std::byte *staged = stream.getStaging(part.resultBytes);
    self.copy(staged);
    self.meet();
    stream.copy(dst, staged, part.resultBytes);
  } else {
    if (src != dst || !part.isInPlace)
      self.copy(dst);
    self.meet();
  }
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
    communicators.push_back(std::make_unique<LocalCommunicator>(
        world, rank,
        options.device ? options.device->getStream(rank) : nullptr));
  return communicators;
}
