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
// too, which may go on computing. See InFlightCollective.
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
#include "support/Division.h"

#include <algorithm>
#include <utility>

using namespace tprt;

namespace {

/// The work of a collective for one rank.
struct Participant {
  Stream &stream;
  const Collective &collective;
  const LocalPlan &plan;
  const std::vector<Published> &published; ///< by position
  int64_t elementBytes;
  int64_t received = 0; ///< bytes from other ranks

  void count(int64_t from, int64_t bytes) {
    if (from != plan.position)
      received += bytes;
  }

  /// Does all the work, once everyone has published operand and result.
  void run(std::byte *dst);
  void copy(std::byte *dst);
  void reduceScatter(std::byte *dst);
  void allReduce();
};

} // namespace

void Participant::copy(std::byte *dst) {
  for (const Read &read : plan.reads) {
    const std::byte *src = published[read.from].src;
    if (read.from == plan.position && src == dst)
      continue; // already in place, and nothing overwrites it
    if (collective.hasSparseRows) {
      count(read.from, stream.copyRows(read.strided, elementBytes,
                                       collective.getRowElements(), src, dst));
      continue;
    }
    stream.copy(read.strided, elementBytes, src, dst);
    count(read.from, read.strided.getNumElements() * elementBytes);
  }
}

void Participant::reduceScatter(std::byte *dst) {
  if (plan.reads.empty())
    return;
  // The members' operands have the same shape, so one StridedCopy describes all
  // reads.
  std::vector<const std::byte *> operands(plan.reads.size());
  plan.reads.front().strided.forEachRun(
      [&](int64_t src, int64_t result, int64_t size) {
        for (size_t i = 0; i < operands.size(); ++i)
          operands[i] = published[plan.reads[i].from].src + src * elementBytes;
        stream.reduce(collective.reduction, collective.dtype, operands,
                      {dst + result * elementBytes}, size);
      });
  for (const Read &read : plan.reads)
    count(read.from, read.strided.getNumElements() * elementBytes);
}

void Participant::allReduce() {
  int64_t total = plan.resultBytes / elementBytes;
  int64_t n = published.size();
  int64_t chunk = divideCeil(total, n);
  auto getBegin = [&](int64_t p) { return std::min(p * chunk, total); };
  auto getSize = [&](int64_t p) { return getBegin(p + 1) - getBegin(p); };

  // Nobody else touches this rank's chunk of any operand or result, so results
  // may lie where operands do.
  int64_t begin = getBegin(plan.position) * elementBytes;
  std::vector<const std::byte *> operands(n);
  std::vector<std::byte *> results(n);
  for (int64_t p = 0; p < n; ++p) {
    operands[p] = published[p].src + begin;
    results[p] = published[p].dst + begin;
    count(p, getSize(plan.position) * elementBytes);
    count(p, getSize(p) * elementBytes); // written here by rank p
  }
  // Its own last: that stays in this core's cache.
  std::swap(results[plan.position], results.back());
  stream.reduce(collective.reduction, collective.dtype, operands, results,
                getSize(plan.position));
}

void Participant::run(std::byte *dst) {
  if (collective.kind == CollectiveKind::AllReduce)
    allReduce();
  else if (collective.kind == CollectiveKind::ReduceScatter)
    reduceScatter(dst);
  else if (published[plan.position].src != dst || !plan.isInPlace)
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
  Stream *getStream(int64_t) override { return &communication; }
  std::vector<std::string> exchange(const std::string &mine,
                                    size_t limit) override;
  void barrier() override;
  void abort(const std::string &reason) override { world->abort(reason); }
  void finish() override {
    world->getState(rank).activity = LocalWorld::finished;
  }

private:
  const LocalPlan &getPlan(int64_t id) const;
  void meet(const LocalWorld::Awaited &self, bool isSecond);
  void runTasks(InFlightCollective &started, const LocalWorld::Awaited &self);

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

std::vector<std::string> LocalCommunicator::exchange(const std::string &mine,
                                                     size_t) {
  world->contributions[rank] = mine;
  barrier();
  std::vector<std::string> all = world->contributions;
  barrier(); // before a rank contributes again
  return all;
}

const LocalPlan &LocalCommunicator::getPlan(int64_t id) const {
  const LocalPlan &plan = world->getPlan(id, rank);
  if (!plan.group)
    throw executionError("rank " + std::to_string(rank) +
                         " is in no group of " +
                         describeCollective(world->getManifest(), id));
  return plan;
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
  const LocalPlan &plan = getPlan(id);
  if (plan.started) { // others may start it
    if (src == dst && plan.overwrites) {
      std::byte *staged = stream.getStaging(plan.resultBytes);
      stream.copy(staged, src, plan.resultBytes);
      src = staged;
    }
    start(id, src, dst);
    return wait(id);
  }
  Group &group = *plan.group;
  LocalWorld::State &state = world->getState(rank);
  state.activity.store(id, std::memory_order_relaxed);
  group.published[plan.position] = {src, dst, id};
  LocalWorld::Awaited self{group, plan.position, id,
                           group.issued[plan.position].add(id)};
  meet(self, /*isSecond=*/false);
  // All members must be in the same collective; a program that orders them
  // differently has a bug.
  for (size_t p = 0; p < group.published.size(); ++p)
    if (group.published[p].id != id)
      world->refuse(self, p, group.published[p].id);

  Participant participant{stream, collective, plan, group.published,
                          byteWidth(collective.dtype)};
  if (src == dst && plan.overwrites) {
    std::byte *staged = stream.getStaging(plan.resultBytes);
    participant.run(staged);
    meet(self, /*isSecond=*/true);
    stream.copy(dst, staged, plan.resultBytes);
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
  const LocalPlan &plan = getPlan(id);
  InFlightCollective &started = *plan.started;
  InFlightCollective::Member &self = started.members[plan.position];
  ++self.round;
  self.ready = stream.announce();
  Issued &issued = started.group.issued[plan.position];
  started.published[plan.position] = {src, dst, issued.count.load()};
  self.numStarts.store(self.round);
  started.starts.arrive();
  issued.add(id);
}

/// Does the tasks that no rank has begun. Once all tasks are done, members may
/// change what they have published, so a rank that claims no task mustn't read
/// it.
void LocalCommunicator::runTasks(InFlightCollective &started,
                                 const LocalWorld::Awaited &self) {
  int64_t id = self.id, position = self.position;
  const Collective &collective = world->getManifest().collectives[id];
  const std::vector<int64_t> &ranks = started.group.ranks;
  int64_t n = ranks.size(), round = started.members[position].round;
  bool isOrdered = false;
  for (int64_t i = 0; i < n; ++i) {
    int64_t p = (position + i) % n;
    if (!started.claim(p, round))
      continue;
    if (!std::exchange(isOrdered, true))
      for (int64_t other = 0; other < n; ++other) {
        if (started.published[other].id != self.number)
          world->refuse(self, other, started.group.issued[other].last.load());
        communication.waitFor(started.members[other].ready);
      }
    Participant participant{communication, collective,
                            world->getPlan(id, ranks[p]), started.published,
                            byteWidth(collective.dtype)};
    participant.run(started.published[p].dst);
    InFlightCollective::Member &member = started.members[p];
    member.received = participant.received;
    member.isDone = communication.announce();
    started.tasks.arrive();
  }
}

int64_t LocalCommunicator::wait(int64_t id) {
  world->checkAborted();
  const LocalPlan &plan = getPlan(id);
  InFlightCollective &started = *plan.started;
  const InFlightCollective::Member &member = started.members[plan.position];
  uint64_t target = member.round * started.members.size();
  LocalWorld::State &state = world->getState(rank);
  state.activity.store(id, std::memory_order_relaxed);
  LocalWorld::Awaited self{started.group, plan.position, id,
                           started.published[plan.position].id, &started};
  world->await(started.starts, target, self);
  runTasks(started, self);
  world->await(started.tasks, target, self);
  for (const InFlightCollective::Member &other : started.members)
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
