//===- LocalCommunicator.cpp - Ranks as threads of one process ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A collective has these steps: publish the addresses of operand and result,
// meet, read the others' operands, meet. Each rank reads a list of boxes that
// is made before the program runs. In an all-reduce, each rank reduces one
// chunk and writes it to everyone's result.
//
// Starting a collective only publishes the addresses. Once all ranks have
// started it, the first rank that waits for it does the work, for the others
// too, which may go on computing. See Flight.
//
// On a device the same happens later, in the order of the ranks' streams: where
// threads meet, each has announced an event, and its stream waits for the
// events of the others. Started collectives run on a separate stream, beside
// the one that computes.
//
//===----------------------------------------------------------------------===//

#include "tprt/LocalCommunicator.h"

#include "comm/local/LocalWorld.h"
#include "device/Device.h"

#include <algorithm>
#include <utility>

using namespace tprt;

namespace {

/// The work of a collective for one rank.
struct Participant {
  Stream &stream;
  const Collective &collective;
  const Part &part;
  const std::vector<Shown> &shown; ///< by position
  int64_t elementBytes;
  int64_t received = 0; ///< bytes from other ranks

  void count(int64_t from, int64_t bytes) {
    if (from != part.position)
      received += bytes;
  }

  /// Does all the work, once everyone has shown operand and result.
  void run(std::byte *dst);
  void copy(std::byte *dst);
  void reduceScatter(std::byte *dst);
  void allReduce();
};

} // namespace

void Participant::copy(std::byte *dst) {
  for (const Read &read : part.reads) {
    const std::byte *src = shown[read.from].src;
    if (read.from == part.position && src == dst)
      continue; // already in place, and nothing overwrites it
    stream.copy(read.strided, elementBytes, src, dst);
    count(read.from, read.strided.getNumElements() * elementBytes);
  }
}

void Participant::reduceScatter(std::byte *dst) {
  if (part.reads.empty())
    return;
  // The members' operands have the same shape, so one StridedCopy describes all
  // reads.
  std::vector<const std::byte *> operands(part.reads.size());
  part.reads.front().strided.forEachRun(
      [&](int64_t src, int64_t result, int64_t size) {
        for (size_t i = 0; i < operands.size(); ++i)
          operands[i] = shown[part.reads[i].from].src + src * elementBytes;
        stream.reduce(collective.reduction, collective.dtype, operands,
                      {dst + result * elementBytes}, size);
      });
  for (const Read &read : part.reads)
    count(read.from, read.strided.getNumElements() * elementBytes);
}

void Participant::allReduce() {
  int64_t total = part.resultBytes / elementBytes;
  int64_t n = shown.size();
  int64_t chunk = (total + n - 1) / n;
  auto getBegin = [&](int64_t p) { return std::min(p * chunk, total); };
  auto getSize = [&](int64_t p) { return getBegin(p + 1) - getBegin(p); };

  // Nobody else touches this rank's chunk of any operand or result, so results
  // may lie where operands do.
  int64_t begin = getBegin(part.position) * elementBytes;
  std::vector<const std::byte *> operands(n);
  std::vector<std::byte *> results(n);
  for (int64_t p = 0; p < n; ++p) {
    operands[p] = shown[p].src + begin;
    results[p] = shown[p].dst + begin;
    count(p, getSize(part.position) * elementBytes);
    count(p, getSize(p) * elementBytes); // written here by rank p
  }
  // Its own last: that stays in this core's cache.
  std::swap(results[part.position], results.back());
  stream.reduce(collective.reduction, collective.dtype, operands, results,
                getSize(part.position));
}

void Participant::run(std::byte *dst) {
  if (collective.kind == CollectiveKind::AllReduce)
    allReduce();
  else if (collective.kind == CollectiveKind::ReduceScatter)
    reduceScatter(dst);
  else if (shown[part.position].src != dst || !part.isInPlace)
    copy(dst);
}

namespace {

class LocalCommunicator final : public Communicator {
public:
  /// `stream` is null on the host.
  LocalCommunicator(std::shared_ptr<LocalWorld> world, int64_t rank,
                    DeviceStream *stream)
      : world(std::move(world)), rank(rank),
        stream(stream ? *static_cast<Stream *>(stream) : hostStream),
        communication(stream && this->world->startsAny()
                          ? stream->getCommunication()
                          : this->stream) {}

  int64_t getRank() const override { return rank; }
  int64_t run(int64_t id, const std::byte *src, std::byte *dst) override;
  void start(int64_t id, const std::byte *src, std::byte *dst) override;
  int64_t wait(int64_t id) override;
  void barrier() override;
  void abort(const std::string &reason) override { world->abort(reason); }
  void finish() override {
    world->getState(rank).activity = LocalWorld::finished;
  }

private:
  const Part &getPart(int64_t id) const;
  void meet(const LocalWorld::Awaited &self, bool isSecond);
  void runParts(Flight &flight, const LocalWorld::Awaited &self);

  std::shared_ptr<LocalWorld> world;
  int64_t rank;
  HostStream hostStream;
  Stream &stream;
  Stream &communication; ///< where started collectives run
};

} // namespace

void LocalCommunicator::barrier() {
  world->checkAborted();
  LocalWorld::State &state = world->getState(rank);
  state.activity = LocalWorld::inBarrier;
  ++state.numBarriers;
  world->barrier(rank);
  state.activity = LocalWorld::computing;
}

const Part &LocalCommunicator::getPart(int64_t id) const {
  const Part &part = world->getPart(id, rank);
  if (!part.group)
    throw executionError("rank " + std::to_string(rank) +
                         " is in no group of " +
                         describe(world->getManifest().collectives[id], id));
  return part;
}

/// Work that is enqueued after this runs after all work that the members have
/// enqueued before it.
void LocalCommunicator::meet(const LocalWorld::Awaited &self, bool isSecond) {
  Group &group = self.group;
  std::vector<Event *> &events = group.events[isSecond];
  events[self.position] = stream.announce();
  world->await(group.barrier, group.barrier.arrive(), self);
  if (!events[self.position])
    return;
  for (size_t i = 0; i < events.size(); ++i)
    if (static_cast<int64_t>(i) != self.position)
      stream.waitFor(events[i]);
}

int64_t LocalCommunicator::run(int64_t id, const std::byte *src,
                               std::byte *dst) {
  world->checkAborted();
  const Collective &collective = world->getManifest().collectives[id];
  const Part &part = getPart(id);
  if (part.flight) { // others may start it
    if (src == dst && part.overwrites) {
      std::byte *staged = stream.getStaging(part.resultBytes);
      stream.copy(staged, src, part.resultBytes);
      src = staged;
    }
    start(id, src, dst);
    return wait(id);
  }
  Group &group = *part.group;
  LocalWorld::State &state = world->getState(rank);
  state.activity.store(id, std::memory_order_relaxed);
  group.shown[part.position] = {src, dst, id};
  LocalWorld::Awaited self{group, part.position, id,
                           group.issued[part.position].add(id)};
  meet(self, /*isSecond=*/false);
  // All members must be in the same collective; a program that orders them
  // differently has a bug.
  for (size_t p = 0; p < group.shown.size(); ++p)
    if (group.shown[p].id != id)
      world->refuse(self, p, group.shown[p].id);

  Participant participant{stream, collective, part, group.shown,
                          byteWidth(collective.dtype)};
  if (src == dst && part.overwrites) {
    std::byte *staged = stream.getStaging(part.resultBytes);
    participant.run(staged);
    meet(self, /*isSecond=*/true);
    stream.copy(dst, staged, part.resultBytes);
  } else {
    participant.run(dst);
    meet(self, /*isSecond=*/true);
  }
  state.lastDone.store(id, std::memory_order_relaxed);
  state.activity.store(LocalWorld::computing, std::memory_order_relaxed);
  return participant.received;
}

void LocalCommunicator::start(int64_t id, const std::byte *src,
                              std::byte *dst) {
  world->checkAborted();
  const Part &part = getPart(id);
  Flight &flight = *part.flight;
  Flight::Member &self = flight.members[part.position];
  ++self.round;
  self.ready = stream.announce();
  Issued &issued = flight.group.issued[part.position];
  flight.shown[part.position] = {src, dst, issued.count.load()};
  self.numStarts.store(self.round);
  flight.starts.arrive();
  issued.add(id);
}

/// Does the parts that no rank has begun. Once all parts are done, members may
/// change what they show, so a rank that claims no part mustn't read it.
void LocalCommunicator::runParts(Flight &flight,
                                 const LocalWorld::Awaited &self) {
  int64_t id = self.id, position = self.position;
  const Collective &collective = world->getManifest().collectives[id];
  const std::vector<int64_t> &ranks = flight.group.ranks;
  int64_t n = ranks.size(), round = flight.members[position].round;
  bool isOrdered = false;
  for (int64_t i = 0; i < n; ++i) {
    int64_t p = (position + i) % n;
    if (!flight.claim(p, round))
      continue;
    if (!std::exchange(isOrdered, true))
      for (int64_t other = 0; other < n; ++other) {
        if (flight.shown[other].id != self.number)
          world->refuse(self, other, flight.group.issued[other].last.load());
        communication.waitFor(flight.members[other].ready);
      }
    Participant participant{communication, collective,
                            world->getPart(id, ranks[p]), flight.shown,
                            byteWidth(collective.dtype)};
    participant.run(flight.shown[p].dst);
    Flight::Member &member = flight.members[p];
    member.received = participant.received;
    member.isDone = communication.announce();
    flight.parts.arrive();
  }
}

int64_t LocalCommunicator::wait(int64_t id) {
  world->checkAborted();
  const Part &part = getPart(id);
  Flight &flight = *part.flight;
  const Flight::Member &member = flight.members[part.position];
  uint64_t target = member.round * flight.members.size();
  LocalWorld::State &state = world->getState(rank);
  state.activity.store(id, std::memory_order_relaxed);
  LocalWorld::Awaited self{flight.group, part.position, id,
                           flight.shown[part.position].id, &flight};
  world->await(flight.starts, target, self);
  runParts(flight, self);
  world->await(flight.parts, target, self);
  for (const Flight::Member &other : flight.members)
    communication.waitFor(other.isDone);
  stream.waitFor(communication.announce());
  state.lastDone.store(id, std::memory_order_relaxed);
  state.activity.store(LocalWorld::computing, std::memory_order_relaxed);
  return member.received;
}

std::vector<std::unique_ptr<Communicator>>
tprt::makeLocalCommunicators(const Manifest &manifest,
                             const CommunicatorOptions &options) {
  auto world = std::make_shared<LocalWorld>(manifest, options);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int64_t rank = 0; rank < manifest.worldSize; ++rank)
    communicators.push_back(std::make_unique<LocalCommunicator>(
        world, rank,
        options.device ? options.device->getStream(rank) : nullptr));
  return communicators;
}
