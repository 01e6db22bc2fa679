//===- RedistributionSearch.cpp - The cheapest way between placements -----===//

#include "RedistributionSearch.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include <queue>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::redistribution;

namespace {

/// What plans are ordered by. `steps` prefers a named collective to an
/// exchange, and fewer slices.
struct Cost {
  int64_t first = 0, second = 0, steps = 0;
  Cost operator+(const Cost &other) const {
    return {first + other.first, second + other.second, steps + other.steps};
  }
  bool operator<(const Cost &other) const {
    return std::tie(first, second, steps) <
           std::tie(other.first, other.second, other.steps);
  }
};

constexpr int64_t kExchangeSteps = 100;
/// States that are looked at before the search gives up.
constexpr size_t kMaxStates = 4000;

class Search {
public:
  Search(const Space &space, const State &from, const State &to,
         const SearchOptions &options)
      : space(space), from(from), to(to), options(options) {}

  std::optional<SmallVector<Move>> run();

private:
  SmallVector<Move> getMoves(const State &state) const;
  void addReductions(const State &state, SmallVector<Move> &moves) const;
  void addPermutes(const State &state, SmallVector<Move> &moves) const;
  Cost getCost(const State &state, const Move &move) const;
  Cost getRemaining(const State &state) const;
  int64_t getPeak(const State &state) const {
    return *llvm::max_element(space.getSizes(state));
  }

  const Space &space;
  const State &from, &to;
  const SearchOptions &options;
};

} // namespace

/// The partial atoms that are reduced on the way. They are scattered in the
/// order in which the target splits a dimension by them, or reduced, all of a
/// kind at once or one by one.
void Search::addReductions(const State &state, SmallVector<Move> &moves) const {
  auto isPending = [&](auto entry) {
    return !llvm::is_contained(to.partial, entry);
  };
  auto without = [&](const State &s, ArrayRef<uint8_t> atoms) {
    State result = s;
    llvm::erase_if(result.partial, [&](auto entry) {
      return llvm::is_contained(atoms, entry.first);
    });
    return result;
  };
  std::map<ReductionKind, SmallVector<uint8_t, 4>> byKind;
  for (auto entry : state.partial)
    if (isPending(entry))
      byKind[entry.second].push_back(entry.first);
  for (auto &[kind, atoms] : byKind) {
    SmallVector<SmallVector<uint8_t, 4>> subsets = {atoms};
    if (atoms.size() > 1)
      for (uint8_t atom : atoms)
        subsets.push_back({atom});
    for (ArrayRef<uint8_t> subset : subsets)
      moves.push_back({RedistributionStep::AllReduce,
                       SmallVector<uint8_t, 4>(subset), 0, 0, kind,
                       without(state, subset)});
    for (int64_t dim = 0; dim < space.getRank(); ++dim) {
      if (space.isFrozen(dim))
        continue;
      auto scatter = [&](ArrayRef<uint8_t> list) {
        Move move{RedistributionStep::ReduceScatter,
                  SmallVector<uint8_t, 4>(list),
                  dim,
                  0,
                  kind,
                  without(state, list)};
        move.result.dims[dim].append(list.begin(), list.end());
        moves.push_back(std::move(move));
      };
      for (uint8_t atom : atoms)
        scatter(atom);
      // Several at once, as the target nests them.
      ArrayRef<uint8_t> have = state.dims[dim], want = to.dims[dim];
      if (have.size() > want.size() || want.take_front(have.size()) != have)
        continue;
      ArrayRef<uint8_t> run =
          want.drop_front(have.size()).take_while([&](uint8_t atom) {
            return llvm::is_contained(atoms, atom);
          });
      for (size_t n = 2; n <= run.size(); ++n)
        scatter(run.take_front(n));
    }
  }
}

/// The placements whose blocks are those of `state` on other ranks.
void Search::addPermutes(const State &state, SmallVector<Move> &moves) const {
  if (space.hasOverlaps())
    return;
  uint64_t taken = 0;
  for (auto [atom, kind] : state.partial)
    taken |= uint64_t(1) << atom;
  State next = state;
  for (int64_t dim = 0; dim < space.getRank(); ++dim) {
    if (!space.isFrozen(dim))
      next.dims[dim].clear();
    for (uint8_t atom : next.dims[dim])
      taken |= uint64_t(1) << atom;
  }
  auto place = [&](auto &self, int64_t dim) -> void {
    if (dim == space.getRank()) {
      if (!(next == state) && space.isPermutation(state, next))
        moves.push_back(
            {RedistributionStep::Permute, {}, 0, 0, ReductionKind::Sum, next});
      return;
    }
    int64_t have = space.getNumBlocks(next.dims[dim]);
    int64_t want = space.getNumBlocks(state.dims[dim]);
    if (have == want || space.isFrozen(dim)) {
      self(self, dim + 1);
      return;
    }
    for (uint8_t atom = 0; atom < space.getNumAtoms(); ++atom) {
      if (taken >> atom & 1 || want % (have * space.getAtom(atom).size))
        continue;
      taken |= uint64_t(1) << atom;
      next.dims[dim].push_back(atom);
      self(self, dim);
      next.dims[dim].pop_back();
      taken &= ~(uint64_t(1) << atom);
    }
  };
  place(place, 0);
}

SmallVector<Move> Search::getMoves(const State &state) const {
  SmallVector<Move> moves;
  addReductions(state, moves);
  for (int64_t dim = 0; dim < space.getRank(); ++dim) {
    if (space.isFrozen(dim))
      continue;
    for (uint8_t atom = 0; atom < space.getNumAtoms(); ++atom)
      if (space.isFree(state, atom)) {
        Move move{RedistributionStep::LocalSlice,
                  {atom},
                  dim,
                  0,
                  ReductionKind::Sum,
                  state};
        move.result.dims[dim].push_back(atom);
        moves.push_back(std::move(move));
      }
    ArrayRef<uint8_t> list = state.dims[dim];
    for (size_t n = 1; n <= list.size(); ++n) {
      SmallVector<uint8_t, 4> suffix(list.take_back(n));
      Move gather{RedistributionStep::AllGather,
                  suffix,
                  dim,
                  0,
                  ReductionKind::Sum,
                  state};
      gather.result.dims[dim].truncate(list.size() - n);
      for (int64_t other = 0; other < space.getRank(); ++other) {
        if (other == dim || space.isFrozen(other))
          continue;
        Move move{RedistributionStep::AllToAll, suffix,       other, dim,
                  ReductionKind::Sum,           gather.result};
        move.result.dims[other].append(suffix);
        moves.push_back(std::move(move));
      }
      moves.push_back(std::move(gather));
    }
  }
  State target = to;
  target.partial = state.partial;
  // What is partial still can't split a dimension already.
  State partialOnly = state;
  for (auto &list : partialOnly.dims)
    list.clear();
  bool conflicts = llvm::any_of(to.dims, [&](const auto &list) {
    return llvm::any_of(
        list, [&](uint8_t atom) { return !space.isFree(partialOnly, atom); });
  });
  if (target == state || conflicts)
    return moves;
  if (options.exchange) {
    moves.push_back(
        {RedistributionStep::Exchange, {}, 0, 0, ReductionKind::Sum, target});
    if (!space.hasOverlaps() && space.isPermutation(state, target))
      moves.push_back(
          {RedistributionStep::Permute, {}, 0, 0, ReductionKind::Sum, target});
  } else {
    addPermutes(state, moves);
  }
  return moves;
}

Cost Search::getCost(const State &state, const Move &move) const {
  int64_t bytes = llvm::sum_of(space.getReceived(state, move));
  bool isCollective = move.kind != RedistributionStep::LocalSlice;
  int64_t steps =
      move.kind == RedistributionStep::Exchange ? kExchangeSteps : 1;
  return options.fewestCollectives ? Cost{isCollective, bytes, steps}
                                   : Cost{bytes, isCollective, steps};
}

/// No step reduces what is missing by more than it receives.
Cost Search::getRemaining(const State &state) const {
  if (options.fewestCollectives)
    return {};
  int64_t missing = 0;
  SmallVector<int64_t> shared = space.getShared(state, to);
  for (auto [size, own] : llvm::zip_equal(space.getSizes(to), shared))
    missing += size - own;
  return {missing, 0, 0};
}

std::optional<SmallVector<Move>> Search::run() {
  struct Node {
    State state;
    Cost cost;
    int previous;
    Move move;
    bool closed = false;
  };
  std::vector<Node> nodes;
  llvm::StringMap<int> ids;
  using Entry = std::pair<Cost, int>;
  auto later = [](const Entry &a, const Entry &b) {
    return b.first < a.first || (!(a.first < b.first) && b.second < a.second);
  };
  std::priority_queue<Entry, std::vector<Entry>, decltype(later)> open(later);

  int64_t peak = std::max(getPeak(from), getPeak(to));
  nodes.push_back({from, {}, -1, {}});
  ids[from.getKey()] = 0;
  open.push({getRemaining(from), 0});
  while (!open.empty()) {
    int id = open.top().second;
    open.pop();
    if (nodes[id].closed)
      continue;
    nodes[id].closed = true;
    if (nodes[id].state == to) {
      SmallVector<Move> moves;
      for (int at = id; at != 0; at = nodes[at].previous)
        moves.push_back(nodes[at].move);
      std::reverse(moves.begin(), moves.end());
      return moves;
    }
    if (nodes.size() > kMaxStates)
      return std::nullopt;
    State state = nodes[id].state;
    for (Move &move : getMoves(state)) {
      if (options.memory && getPeak(move.result) > peak)
        continue;
      Cost cost = nodes[id].cost + getCost(state, move);
      auto [it, inserted] = ids.try_emplace(move.result.getKey(), nodes.size());
      int next = it->second;
      if (inserted)
        nodes.push_back({move.result, cost, id, move});
      else if (nodes[next].closed || !(cost < nodes[next].cost))
        continue;
      nodes[next].cost = cost;
      nodes[next].previous = id;
      nodes[next].move = move;
      open.push({cost + getRemaining(move.result), next});
    }
  }
  return std::nullopt;
}

std::optional<SmallVector<Move>>
redistribution::search(const Space &space, const State &from, const State &to,
                       const SearchOptions &options) {
  return Search(space, from, to, options).run();
}
