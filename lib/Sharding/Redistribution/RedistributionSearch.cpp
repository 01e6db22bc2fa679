//===- RedistributionSearch.cpp - Search for redistribution plans ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// There are two searches, forward from the source and backward from the target.
// Each visits placements in the order of the lower bound on the bytes of a plan
// through them. The searches meet in a placement that both reach, or in two
// placements with the same blocks on different ranks; a permute then leads from
// one to the other. No plan needs two permutes (Rink et al., arXiv 2112.01075),
// so neither search has to try any.
//
//===----------------------------------------------------------------------===//

#include "RedistributionSearch.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::redistribution;

namespace {

/// Plans are ordered by this. `steps` prefers a named collective to an
/// exchange, and fewer slices. `peers` prefers small groups: it counts the
/// ranks that a rank waits for (twice for an all-reduce, which has two phases).
struct Cost {
  int64_t bytes = 0, collectives = 0, steps = 0, peers = 0;
  Cost operator+(const Cost &other) const {
    return {bytes + other.bytes, collectives + other.collectives,
            steps + other.steps, peers + other.peers};
  }
};

constexpr int64_t kExchangeSteps = 100;

struct Node {
  State state;
  Cost cost;
  /// A lower bound on the elements that the rest of a plan through this node
  /// receives.
  int64_t remaining = 0;
  int previous = -1;
  /// Leads from `previous` to this node; in the backward search, from this node
  /// to `previous`.
  Move move;
  bool closed = false;
};

struct Entry {
  Cost estimate;
  int64_t remaining;
  int id;
};

/// One of the two searches.
struct Frontier {
  explicit Frontier(bool forward) : forward(forward) {}

  const bool forward;
  std::vector<Node> nodes;
  llvm::StringMap<int> ids;
  std::vector<Entry> open;
  /// The closed nodes without a pending reduction, by the sizes of their
  /// blocks.
  llvm::StringMap<SmallVector<int>> bySizes;
};

class Search {
public:
  Search(const Space &space, const State &from, const State &to,
         const SearchOptions &options)
      : space(space), from(from), to(to), options(options),
        evenOnly(!space.hasOverlaps() && space.isEven(from) &&
                 space.isEven(to)) {}

  std::optional<SmallVector<Move>> run(uint64_t &numStates);

private:
  bool isLess(const Cost &a, const Cost &b) const {
    if (options.fewestCollectives)
      return std::tie(a.collectives, a.bytes, a.steps, a.peers) <
             std::tie(b.collectives, b.bytes, b.steps, b.peers);
    return std::tie(a.bytes, a.collectives, a.steps, a.peers) <
           std::tie(b.bytes, b.collectives, b.steps, b.peers);
  }
  auto getLater() const {
    return [this](const Entry &a, const Entry &b) {
      if (isLess(b.estimate, a.estimate))
        return true;
      if (isLess(a.estimate, b.estimate))
        return false;
      return std::tie(b.remaining, b.id) < std::tie(a.remaining, a.id);
    };
  }
  /// There is a lower bound for the bytes still to come, but none for the
  /// collectives.
  Cost getEstimate(Cost cost, int64_t remaining) const {
    if (!options.fewestCollectives)
      cost.bytes += remaining;
    return cost;
  }
  bool isHopeless(const Cost &estimate) const {
    if (options.below >= 0 && estimate.bytes >= options.below)
      return true;
    return best && !isLess(estimate, best->cost);
  }
  int64_t getRemaining(const State &state, bool forward) const;
  int64_t getBytes(const State &before, const Move &move) const;
  int64_t getPeers(const Move &move) const;
  bool isAllowed(const State &state) const;

  void visit(Frontier &side, int at, const State &next, Move move);
  void addLists(Frontier &side, int at);
  void addAllToAllOfSeveral(Frontier &side, int at);
  void addReductions(int at);
  void close(Frontier &side, Frontier &other, int at);
  void meet(int forward, int backward, std::optional<Move> link, Cost cost);

  const Space &space;
  const State from, to;
  const SearchOptions &options;
  /// Whether states with blocks of different sizes are left out.
  const bool evenOnly;
  Frontier ahead{/*forward=*/true}, back{/*forward=*/false};

  /// The nodes where the two searches meet, and the step between them, if any.
  struct Meeting {
    Cost cost;
    int forward, backward;
    std::optional<Move> link;
  };
  std::optional<Meeting> best;
};

} // namespace

/// A key that is equal for states with the same blocks on different ranks.
static std::string getSizesKey(const State &state) {
  std::string key;
  for (const List *list : state.dims) {
    int64_t size = list->blocks;
    if (!list->even) {
      SmallVector<int64_t> sizes = llvm::map_to_vector(
          list->intervals, [](Interval interval) { return interval.size; });
      llvm::sort(sizes);
      size = 0;
      for (int64_t each : sizes)
        size = (size * 31 + each) & 0x7fffffff;
      size = -1 - size;
    }
    key.append(reinterpret_cast<const char *>(&size), sizeof(size));
  }
  return key;
}

/// A lower bound, because no step reduces the number of missing elements by
/// more than it receives. If n parts of a sum must be added, each element takes
/// n - 1 transfers, and the c ranks that want the sum take c - 1 more.
int64_t Search::getRemaining(const State &state, bool forward) const {
  const State &have = forward ? state : from, &want = forward ? to : state;
  if (!have.pending)
    return space.getMissing(have, want);
  return space.getTotal(want) +
         (space.getNumPending(have) - 2) * space.getNumElements();
}

/// The elements that all ranks together receive in a step other than a permute.
int64_t Search::getBytes(const State &before, const Move &move) const {
  int64_t n = space.getNumBlocks(move.atoms);
  int64_t total = space.getTotal(move.result);
  switch (move.kind) {
  case RedistributionStep::LocalSlice:
    return 0;
  case RedistributionStep::ReduceScatter:
    return (n - 1) * total;
  case RedistributionStep::AllReduce:
    return 2 * (n - 1) * (total / n);
  case RedistributionStep::AllGather:
    return total - space.getTotal(before);
  case RedistributionStep::AllToAll:
    if (evenOnly)
      return total / n * (n - 1);
    return space.getMissing(before, move.result);
  case RedistributionStep::Permute:
  case RedistributionStep::Exchange:
    break;
  }
  llvm_unreachable("not a move of the search");
}

int64_t Search::getPeers(const Move &move) const {
  if (move.kind == RedistributionStep::LocalSlice)
    return 0;
  int64_t others = space.getNumBlocks(move.atoms) - 1;
  return move.kind == RedistributionStep::AllReduce ? 2 * others : others;
}

/// Whether a search that leaves out uneven placements allows this one.
bool Search::isAllowed(const State &state) const {
  auto begins = [](const List *list, const List *whole) {
    ArrayRef<uint8_t> atoms = list->atoms;
    return ArrayRef(whole->atoms).take_front(atoms.size()) == atoms;
  };
  return llvm::all_of(
      llvm::zip_equal(state.dims, from.dims, to.dims), [&](auto lists) {
        auto [list, first, last] = lists;
        return list->even || begins(list, first) || begins(list, last);
      });
}

void Search::visit(Frontier &side, int at, const State &next, Move move) {
  if ((evenOnly && !space.isEven(next)) ||
      (options.mostlyEven && !isAllowed(next)))
    return;
  if (options.maxPeak >= 0 && space.getPeak(next) > options.maxPeak)
    return;
  move.result = side.forward ? next : side.nodes[at].state;
  Cost step{getBytes(side.forward ? side.nodes[at].state : next, move),
            move.kind != RedistributionStep::LocalSlice, 1, getPeers(move)};
  // Consecutive gathers (or reduce-scatters) of one dimension are one step.
  const Move &after = side.nodes[at].move;
  if (side.nodes[at].previous >= 0 && after.kind == move.kind &&
      after.dim == move.dim && after.reduction == move.reduction &&
      (move.kind == RedistributionStep::AllGather ||
       move.kind == RedistributionStep::ReduceScatter))
    step.collectives = step.steps = 0;
  Cost cost = side.nodes[at].cost + step;
  if (isHopeless(cost))
    return;
  auto [it, isNew] = side.ids.try_emplace(next.getKey(), side.nodes.size());
  int id = it->second;
  if (isNew) {
    side.nodes.push_back({next, cost, 0, -1, {}});
    side.nodes[id].remaining = getRemaining(next, side.forward);
  } else if (side.nodes[id].closed || !isLess(cost, side.nodes[id].cost)) {
    return;
  }
  Node &node = side.nodes[id];
  node.cost = cost;
  node.previous = at;
  node.move = std::move(move);
  Cost estimate = getEstimate(cost, node.remaining);
  if (isHopeless(estimate))
    return;
  side.open.push_back({estimate, node.remaining, id});
  std::push_heap(side.open.begin(), side.open.end(), getLater());
}

/// Slices, gathers, and all-to-alls.
void Search::addLists(Frontier &side, int at) {
  const State state = side.nodes[at].state;
  uint64_t taken = space.getTaken(state);
  auto longer = side.forward ? RedistributionStep::LocalSlice
                             : RedistributionStep::AllGather;
  auto shorter = side.forward ? RedistributionStep::AllGather
                              : RedistributionStep::LocalSlice;
  for (int64_t dim = 0; dim < space.getRank(); ++dim) {
    if (space.isFrozen(dim))
      continue;
    auto lengthen = [&](ArrayRef<uint8_t> added) {
      if (llvm::any_of(
              added, [&](uint8_t atom) { return !space.isFree(taken, atom); }))
        return;
      State next = state;
      next.dims[dim] = space.append(state.dims[dim], dim, added);
      if (space.refines(next.dims[dim], dim, added.size()))
        visit(side, at, next, {longer, SmallVector<uint8_t, 4>(added), dim, 0});
    };
    for (uint8_t atom = 0; atom < space.getNumAtoms(); ++atom)
      lengthen(atom);
    if (!evenOnly)
      for (ArrayRef<uint8_t> unit : space.getUnits())
        if (unit.size() > 1)
          lengthen(unit);

    const List *list = state.dims[dim], *rest = list;
    for (size_t n = 1; n <= list->atoms.size(); ++n) {
      rest = rest->parent;
      if (!space.refines(list, dim, n))
        continue;
      SmallVector<uint8_t, 4> suffix(ArrayRef(list->atoms).take_back(n));
      State next = state;
      next.dims[dim] = rest;
      visit(side, at, next, {shorter, suffix, dim, 0});
      for (int64_t other = 0; other < space.getRank(); ++other) {
        if (other == dim || space.isFrozen(other))
          continue;
        next.dims[other] = space.append(state.dims[other], other, suffix);
        if (space.refines(next.dims[other], other, n))
          visit(side, at, next,
                {RedistributionStep::AllToAll, suffix,
                 side.forward ? other : dim, side.forward ? dim : other});
        next.dims[other] = state.dims[other];
      }
    }
  }
}

/// Moves all atoms that can go to their final dimensions at once, in one
/// all-to-all.
void Search::addAllToAllOfSeveral(Frontier &side, int at) {
  if (!evenOnly)
    return;
  const State state = side.nodes[at].state, &goal = side.forward ? to : from;
  Move move{RedistributionStep::AllToAll};
  State next = state;
  for (int64_t end = 0; end < space.getRank(); ++end) {
    const List *have = state.dims[end];
    ArrayRef<uint8_t> want = goal.dims[end]->atoms;
    if (space.isFrozen(end) || have->atoms.size() >= want.size() ||
        want.take_front(have->atoms.size()) != ArrayRef(have->atoms))
      continue;
    uint8_t atom = want[have->atoms.size()];
    for (int64_t begin = 0; begin < space.getRank(); ++begin) {
      // No dimension is in two pairs.
      if (begin == end || next.dims[begin] != state.dims[begin] ||
          next.dims[end] != state.dims[end] ||
          state.dims[begin]->atoms.empty() ||
          state.dims[begin]->atoms.back() != atom)
        continue;
      next.dims[begin] = state.dims[begin]->parent;
      next.dims[end] = space.append(have, end, atom);
      move.atoms.push_back(atom);
      move.pairs.push_back(side.forward ? std::pair(end, begin)
                                        : std::pair(begin, end));
    }
  }
  if (move.atoms.size() > 1)
    visit(side, at, next, std::move(move));
}

/// Reduces or scatters pending atoms: all atoms of one kind at once, those of
/// one axis, or single ones. Atoms are also scattered together in the order in
/// which the target nests them.
void Search::addReductions(int at) {
  const State state = ahead.nodes[at].state;
  llvm::SmallMapVector<ReductionKind, SmallVector<uint8_t, 4>, 2> byKind;
  for (uint8_t atom = 0; atom < space.getNumAtoms(); ++atom)
    if (state.pending >> atom & 1)
      byKind[*space.getAtom(atom).reduction].push_back(atom);
  auto isPending = [&](ReductionKind kind, uint8_t atom) {
    return state.pending >> atom & 1 && space.getAtom(atom).reduction == kind;
  };
  auto reduce = [&](ReductionKind kind, ArrayRef<uint8_t> atoms,
                    std::optional<int64_t> dim) {
    State next = state;
    for (uint8_t atom : atoms)
      next.pending &= ~(uint64_t(1) << atom);
    if (dim) {
      next.dims[*dim] = space.append(state.dims[*dim], *dim, atoms);
      if (!space.refines(next.dims[*dim], *dim, atoms.size()))
        return;
    }
    visit(ahead, at, next,
          {dim ? RedistributionStep::ReduceScatter
               : RedistributionStep::AllReduce,
           SmallVector<uint8_t, 4>(atoms), dim.value_or(0), 0, kind});
  };
  for (auto &[kind, atoms] : byKind) {
    SmallVector<SmallVector<uint8_t, 4>> sets = {atoms};
    for (ArrayRef<uint8_t> unit : space.getUnits())
      if (llvm::all_of(unit, [&, kind = kind](uint8_t atom) {
            return isPending(kind, atom);
          }))
        sets.emplace_back(unit);
    for (uint8_t atom : atoms)
      sets.push_back({atom});
    llvm::sort(sets);
    sets.erase(llvm::unique(sets), sets.end());
    for (ArrayRef<uint8_t> set : sets) {
      reduce(kind, set, std::nullopt);
      for (int64_t dim = 0; dim < space.getRank(); ++dim)
        if (!space.isFrozen(dim))
          reduce(kind, set, dim);
    }
    for (int64_t dim = 0; dim < space.getRank(); ++dim) {
      ArrayRef<uint8_t> have = state.dims[dim]->atoms,
                        want = to.dims[dim]->atoms;
      if (space.isFrozen(dim) || have.size() > want.size() ||
          want.take_front(have.size()) != have)
        continue;
      ArrayRef<uint8_t> run = want.drop_front(have.size())
                                  .take_while([&, kind = kind](uint8_t atom) {
                                    return isPending(kind, atom);
                                  });
      for (size_t n = 2; n <= run.size(); ++n)
        reduce(kind, run.take_front(n), dim);
    }
  }
}

void Search::meet(int forward, int backward, std::optional<Move> link,
                  Cost cost) {
  cost = cost + ahead.nodes[forward].cost + back.nodes[backward].cost;
  if (!isHopeless(cost))
    best = Meeting{cost, forward, backward, std::move(link)};
}

/// Closes a node and looks for nodes of the other side that it can connect to.
void Search::close(Frontier &side, Frontier &other, int at) {
  side.nodes[at].closed = true;
  const State &state = side.nodes[at].state;
  if (state.pending)
    return;
  auto meetAt = [&](int id, std::optional<Move> link, Cost cost) {
    side.forward ? meet(at, id, std::move(link), cost)
                 : meet(id, at, std::move(link), cost);
  };
  if (auto it = other.ids.find(state.getKey());
      it != other.ids.end() && other.nodes[it->second].closed)
    meetAt(it->second, std::nullopt, {});
  if (options.exchange && side.forward) {
    int64_t missing = side.nodes[at].remaining;
    meetAt(0, Move{RedistributionStep::Exchange, {}, 0, 0, {}, {}, to},
           {missing, 1, kExchangeSteps});
  }
  if (space.hasOverlaps())
    return;
  std::string key = getSizesKey(state);
  side.bySizes[key].push_back(at);
  auto found = other.bySizes.find(key);
  if (found == other.bySizes.end())
    return;
  // If the blocks are equal in size, at most half of the elements are already
  // where they are wanted.
  int64_t least = evenOnly ? space.getTotal(state) / 2 : 0;
  for (int id : found->second) {
    const State &end = other.nodes[id].state;
    if (end == state)
      continue;
    const State &before = side.forward ? state : end;
    const State &after = side.forward ? end : state;
    Cost sum = side.nodes[at].cost + other.nodes[id].cost;
    if (isHopeless(sum))
      continue;
    if (isHopeless(sum + Cost{least, 1, 1}) && space.getMissing(before, after))
      continue;
    if (!space.isPermutation(before, after))
      continue;
    bool moves = !space.isSame(before, after);
    meetAt(id, Move{RedistributionStep::Permute, {}, 0, 0, {}, {}, after},
           {space.getPermuted(before, after), moves, 1, moves});
  }
}

std::optional<SmallVector<Move>> Search::run(uint64_t &numStates) {
  for (Frontier *side : {&ahead, &back}) {
    const State &start = side->forward ? from : to;
    side->nodes.push_back({start, {}, 0, -1, {}});
    side->nodes[0].remaining = getRemaining(start, side->forward);
    side->ids[start.getKey()] = 0;
    side->open.push_back({getEstimate({}, side->nodes[0].remaining),
                          side->nodes[0].remaining, 0});
  }
  for (int64_t count = 0; count < options.maxStates;) {
    Frontier *side = nullptr, *other = nullptr;
    auto offer = [&](Frontier &here, Frontier &there) {
      while (!here.open.empty() && here.nodes[here.open.front().id].closed) {
        std::pop_heap(here.open.begin(), here.open.end(), getLater());
        here.open.pop_back();
      }
      // With exchanges, it is enough to reach the target itself.
      if (here.open.empty() ||
          (options.exchange && !here.forward && back.nodes[0].closed))
        return;
      if (!side ||
          isLess(here.open.front().estimate, side->open.front().estimate)) {
        side = &here;
        other = &there;
      }
    };
    offer(back, ahead);
    offer(ahead, back);
    if (!side || isHopeless(side->open.front().estimate))
      break;
    int at = side->open.front().id;
    std::pop_heap(side->open.begin(), side->open.end(), getLater());
    side->open.pop_back();
    close(*side, *other, at);
    ++count;
    ++numStates;
    if (side->forward && side->nodes[at].state.pending)
      addReductions(at);
    if (side->forward || !options.exchange)
      addLists(*side, at);
    if (!options.exchange)
      addAllToAllOfSeveral(*side, at);
  }
  if (!best)
    return std::nullopt;
  SmallVector<Move> moves;
  for (int at = best->forward; at != 0; at = ahead.nodes[at].previous)
    moves.push_back(ahead.nodes[at].move);
  std::reverse(moves.begin(), moves.end());
  if (best->link)
    moves.push_back(*best->link);
  for (int at = best->backward; at != 0; at = back.nodes[at].previous)
    moves.push_back(back.nodes[at].move);
  return moves;
}

std::optional<SmallVector<Move>>
redistribution::search(const Space &space, const State &from, const State &to,
                       const SearchOptions &options, uint64_t &numStates) {
  return Search(space, from, to, options).run(numStates);
}
