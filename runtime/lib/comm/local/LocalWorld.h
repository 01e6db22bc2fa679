//===- LocalWorld.h - Shared state of the ranks of one process --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_COMM_LOCAL_LOCALWORLD_H
#define TPRT_LIB_COMM_LOCAL_LOCALWORLD_H

#include "device/Stream.h"
#include "support/Barrier.h"
#include "support/StridedCopy.h"
#include "tprt/Communicator.h"

#include <deque>
#include <mutex>

namespace tprt {

/// What one rank publishes of a collective to the others. On its own cache
/// line.
struct alignas(64) Published {
  const std::byte *src = nullptr;
  std::byte *dst = nullptr;
  /// A number that the members must agree on: the collective, or for one that
  /// is started, its index among those that the group has issued.
  int64_t id = 0;
};

/// The collectives that a member has issued in its group, whether it runs or
/// starts them.
struct alignas(64) Issued {
  std::atomic<int64_t> last{-1};
  std::atomic<int64_t> count{0};

  /// Returns the collective's index among those that the member has issued.
  int64_t add(int64_t id) {
    int64_t number = count.load(std::memory_order_relaxed);
    last.store(id, std::memory_order_release);
    count.store(number + 1, std::memory_order_release);
    return number;
  }
};

/// Ranks that communicate with each other. All vectors are indexed by position.
struct Group {
  Group(const std::vector<int64_t> &ranks, uint32_t spins)
      : ranks(ranks), barrier(ranks.size(), spins), published(ranks.size()),
        issued(ranks.size()) {
    for (std::vector<Event *> &announced : events)
      announced.resize(ranks.size());
  }

  std::vector<int64_t> ranks;
  Barrier barrier;
  std::vector<Published> published;
  std::vector<Issued> issued;
  /// The events that the members' streams have announced. A member may announce
  /// its next event while others still read the last ones, but no more than one
  /// ahead, so two sets alternate.
  std::vector<Event *> events[2];
};

/// A collective that ranks start and wait for later, in one group. Several may
/// be in flight, so each has its own state. Its members meet when all have
/// started it, and again when all tasks are done. A task is the work that makes
/// one member's result, or in an all-reduce, one member's chunk of all results.
/// A waiting rank does the tasks that no rank has begun, its own first.
/// Therefore, once all have started, it never waits for a rank that is still
/// computing.
struct InFlightCollective {
  struct alignas(64) Member {
    int64_t round = 0;       ///< how often it has started this
    Event *ready = nullptr;  ///< its operand is complete, its result is free
    Event *isDone = nullptr; ///< its task is done
    int64_t received = 0;    ///< by its task
    /// The number of times that it has started this, and that some rank has
    /// begun its task; read by other ranks.
    std::atomic<int64_t> numStarts{0};
    std::atomic<int64_t> numBegun{0};
  };

  InFlightCollective(Group &group, uint32_t spins)
      : group(group), starts(group.ranks.size(), spins),
        tasks(group.ranks.size(), spins), published(group.ranks.size()),
        members(group.ranks.size()) {}

  /// Returns whether the caller must do a member's task in this round.
  bool claim(int64_t position, int64_t round) {
    int64_t before = round - 1;
    return members[position].numBegun.compare_exchange_strong(before, round);
  }

  Group &group;
  Barrier starts, tasks;
  std::vector<Published> published;
  std::vector<Member> members;
};

/// A box of the operand of the member at `from` and its destination.
struct Read {
  int64_t from;
  StridedCopy strided; ///< operand to result
};

/// How one rank runs one collective.
struct LocalPlan {
  Group *group = nullptr; ///< null: the rank is in none
  /// Null if no rank starts the collective and waits later.
  InFlightCollective *started = nullptr;
  int64_t position = 0; ///< in the group
  std::vector<Read> reads;
  int64_t resultBytes = 0;
  /// In place, everything that is read is already where it belongs.
  bool isInPlace = true;
  /// In place, writing the result would overwrite elements that are still to be
  /// read.
  bool overwrites = false;
};

/// The state that all ranks of the process share.
class LocalWorld {
public:
  LocalWorld(const Manifest &manifest, const CommunicatorOptions &options);

  /// What one rank is doing, for error messages.
  struct alignas(64) State {
    std::atomic<int64_t> activity{computing}; ///< the collective it waits in
    std::atomic<int64_t> lastDone{-1};
    std::atomic<int64_t> numBarriers{0}; ///< entered so far
  };
  // Further activities.
  static constexpr int64_t computing = -1, inBarrier = -2, finished = -3;

  const Manifest &getManifest() const { return manifest; }
  /// Whether any collective is started and waited for later.
  bool startsAny() const { return !inFlight.empty(); }
  State &getState(int64_t rank) { return states[rank]; }
  const LocalPlan &getPlan(int64_t id, int64_t rank) const {
    return plans[id * manifest.worldSize + rank];
  }

  /// The event that a rank waits for.
  struct Awaited {
    Group &group;
    int64_t position;
    int64_t id = -1;    ///< the collective; -1: the run's start or end
    int64_t number = 0; ///< its index among the group's
    const InFlightCollective *started = nullptr; ///< of one that was started
  };
  /// Waits until the barrier's round of this target is complete. Throws
  /// AbortedError.
  void await(Barrier &barrier, uint64_t target, const Awaited &awaited);
  /// Meets all ranks.
  void barrier(int64_t rank);
  /// What each rank gives to the others, between two barriers.
  std::vector<std::string> contributions;

  void abort(const std::string &reason);
  void checkAborted();
  /// Aborts and throws, because another member of the group is in another
  /// collective.
  void refuse(const Awaited &self, int64_t other, int64_t otherId);

private:
  void makeReads(const Collective &collective, LocalPlan *plans);
  std::string describeRanks();
  bool isGone(const Awaited &awaited, int64_t position);
  bool hasIssuedAnother(const Awaited &awaited, int64_t position);

  const Manifest &manifest;
  const std::chrono::milliseconds timeout;
  std::deque<State> states;
  std::deque<Group> groups; // the first one has all ranks, for barrier()
  std::deque<InFlightCollective> inFlight;
  std::vector<LocalPlan> plans; // [id][rank]

  std::atomic<bool> isAborted{false};
  std::mutex reasonMutex;
  std::string abortReason;
};

} // namespace tprt

#endif // TPRT_LIB_COMM_LOCAL_LOCALWORLD_H
