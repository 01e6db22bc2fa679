//===- FlowBound.cpp - Bounds for values that flow between ops ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Sharding/Propagation/FlowBound.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <numeric>
#include <utility>

using namespace mlir::tp;

/// Minima are computed in this many lanes, so that the compiler vectorizes
/// them.
constexpr unsigned kLanes = 8;
/// The most uses of a group, which share exactly: each more doubles the time
/// for a marginal.
constexpr unsigned kMaxShared = 4;
/// An assignment is looked for after every kRoundsPerTry rounds. In between,
/// the gap must shrink by the fraction kLeastProgress.
constexpr unsigned kRoundsPerTry = 4;
constexpr double kLeastProgress = 0.002;
/// Sums of whole numbers up to here are exact.
constexpr double kLargestSum = 9.0e15;

unsigned FlowBound::addVariable(std::vector<Cost> costs) {
  own.push_back(std::move(costs));
  valuesOf.emplace_back();
  portsOf.emplace_back();
  return own.size() - 1;
}

unsigned FlowBound::addMoves(unsigned numHad, unsigned numWanted,
                             llvm::ArrayRef<Cost> costs) {
  unsigned stride = llvm::alignTo(numWanted, kLanes);
  Moves added{numHad, numWanted, stride,
              Costs(size_t(numHad) * stride, kInfinite), 0};
  for (unsigned had = 0; had < numHad; ++had)
    for (unsigned wanted = 0; wanted < numWanted; ++wanted) {
      Cost cost = costs[size_t(had) * numWanted + wanted];
      added.costs[size_t(had) * stride + wanted] = cost;
      if (cost < kInfinite)
        added.largest = std::max(added.largest, cost);
    }
  moves.push_back(std::move(added));
  return moves.size() - 1;
}

void FlowBound::addValue(unsigned moves, Port definition,
                         std::vector<Port> uses) {
  Value value{moves, {std::move(definition)}};
  for (Port &use : uses)
    value.ports.push_back(std::move(use));
  for (const Port &port : value.ports)
    if (!llvm::is_contained(valuesOf[port.variable], values.size()))
      valuesOf[port.variable].push_back(values.size());
  values.push_back(std::move(value));
}

bool FlowBound::isExact() const {
  double sum = 0;
  for (const Costs &costs : own) {
    double largest = 0;
    for (Cost cost : costs)
      if (cost < kInfinite)
        largest = std::max(largest, cost);
    sum += largest;
  }
  for (const Value &value : values)
    sum += moves[value.moves].largest * (value.ports.size() - 1);
  return sum <= kLargestSum;
}

/// The moves for one of `count` parts of a value's uses. Costs are rounded
/// down, so all parts together cost no more than the value.
unsigned FlowBound::getShare(unsigned of, unsigned count) {
  if (count == 1)
    return of;
  Moves share = moves[of];
  for (Cost &cost : share.costs)
    if (cost < kInfinite)
      cost = std::floor(cost / count);
  moves.push_back(std::move(share));
  return moves.size() - 1;
}

/// The greatest common divisor of `unit` and all finite costs of `costs`.
static int64_t getUnit(int64_t unit, llvm::ArrayRef<double> costs) {
  for (double cost : costs)
    if (cost < FlowBound::kInfinite)
      unit = std::gcd(unit, static_cast<int64_t>(cost));
  return unit;
}

FlowBound::Cost FlowBound::getLowerBound() const {
  return unit ? std::ceil(bound / unit) * unit : bound;
}

/// Divides the uses of each value into groups of at most kMaxShared; uses share
/// moves within a group.
void FlowBound::makeGroups() {
  std::vector<std::pair<std::pair<unsigned, unsigned>, unsigned>> shares;
  for (const Value &value : values) {
    unsigned numUses = value.ports.size() - 1;
    unsigned count = llvm::divideCeil(numUses, kMaxShared);
    auto *known =
        llvm::find_if(llvm::MutableArrayRef(shares), [&](auto &share) {
          return share.first == std::pair(value.moves, count);
        });
    if (known == shares.data() + shares.size()) {
      shares.push_back({{value.moves, count}, getShare(value.moves, count)});
      known = &shares.back();
    }
    unsigned share = known->second;
    const Moves &costs = moves[share];
    for (unsigned index = 0; index < count; ++index) {
      Group group{share, {}, {}, {}};
      auto addPort = [&](const Port &port, unsigned numPlaces) {
        portsOf[port.variable].push_back(
            {static_cast<unsigned>(groups.size()),
             static_cast<unsigned>(group.variables.size())});
        group.variables.push_back(port.variable);
        group.states.push_back(&port.states);
        Costs given(llvm::alignTo(numPlaces, kLanes), kInfinite);
        for (unsigned state : port.states)
          given[state] = 0;
        group.costs.push_back(std::move(given));
      };
      addPort(value.ports.front(), costs.numHad);
      for (unsigned use = index; use < numUses; use += count)
        addPort(value.ports[use + 1], costs.numWanted);
      groups.push_back(std::move(group));
    }
  }
}

/// The minimum of a[i] + b[i].
static double getLeastSum(const double *a, const double *b, unsigned size) {
  double least[kLanes];
  std::fill(least, least + kLanes, FlowBound::kInfinite);
  for (unsigned i = 0; i < size; i += kLanes)
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      double sum = a[i + lane] + b[i + lane];
      least[lane] = sum < least[lane] ? sum : least[lane];
    }
  return *std::min_element(least, least + kLanes);
}

/// The least cost in `group` of each state of `port`. A choice of states
/// divides the uses into sets, each with one state, and each set pays for its
/// move once. Two sets with the same state needn't be excluded: their union
/// never costs more.
FlowBound::Costs FlowBound::getMarginal(const Group &group, unsigned port) {
  const Moves &by = moves[group.moves];
  unsigned stride = by.stride, numUses = group.variables.size() - 1,
           numSets = 1u << numUses;
  // The costs of each state for the uses of each set.
  std::vector<Costs> wanted(numSets);
  for (unsigned set = 1; set < numSets; ++set) {
    unsigned use = llvm::countr_zero(set);
    wanted[set] = group.costs[use + 1];
    if (unsigned rest = set & (set - 1))
      for (unsigned i = 0; i < stride; ++i)
        wanted[set][i] += wanted[rest][i];
  }
  Costs result(group.costs[port].size(), kInfinite);
  unsigned bit = port == 0 ? 0 : 1u << (port - 1);
  std::vector<Costs> ofSet(numSets);
  if (port)
    for (unsigned set = 1; set < numSets; ++set)
      if (set & bit)
        ofSet[set].assign(stride, kInfinite);
  Costs one(numSets), all(numSets);
  for (unsigned had = 0; had < by.numHad; ++had) {
    Cost given = group.costs.front()[had];
    if (given == kInfinite)
      continue;
    const Cost *row = &by.costs[size_t(had) * stride];
    // The cheapest state for each set, and the cheapest division of each set
    // into sets.
    for (unsigned set = 1; set < numSets; ++set) {
      if (set & bit)
        continue;
      numEntries += stride;
      one[set] = getLeastSum(row, wanted[set].data(), stride);
      all[set] = kInfinite;
      unsigned first = set & -set;
      for (unsigned part = set; part; part = (part - 1) & set)
        if (part & first)
          all[set] = std::min(all[set], one[part] + all[set & ~part]);
    }
    if (port == 0) {
      result[had] = given + all[numSets - 1];
      continue;
    }
    for (unsigned set = 1; set < numSets; ++set) {
      Cost others = given + all[(numSets - 1) & ~set];
      if (!(set & bit) || others == kInfinite)
        continue;
      numEntries += stride;
      Cost *least = ofSet[set].data();
      for (unsigned i = 0; i < stride; ++i) {
        Cost sum = row[i] + others;
        least[i] = sum < least[i] ? sum : least[i];
      }
    }
  }
  if (port)
    for (unsigned set = 1; set < numSets; ++set)
      if (set & bit)
        for (unsigned i = 0; i < stride; ++i)
          result[i] = std::min(result[i], ofSet[set][i] + wanted[set][i]);
  return result;
}

/// Makes all states infinite that no remaining value of `variable` gives or
/// wants.
void FlowBound::remove(unsigned variable) {
  for (auto [group, port] : portsOf[variable]) {
    Costs &costs = groups[group].costs[port];
    Costs kept(costs.size(), kInfinite);
    for (auto [value, state] : llvm::enumerate(*groups[group].states[port]))
      if (left[variable][value] < kInfinite)
        kept[state] = costs[state];
    costs = std::move(kept);
  }
}

/// Moves the costs of `variable`'s groups to the variable, adds their minimum
/// to the bound, and gives shares of the rest to the groups that have variables
/// which the sweep has yet to visit.
void FlowBound::visit(unsigned variable, bool isForward) {
  Costs &costs = left[variable];
  unsigned numAhead = 0, numBehind = 0;
  llvm::SmallVector<PortRef, 4> ahead;
  for (PortRef at : portsOf[variable]) {
    Group &group = groups[at.group];
    Costs marginal = getMarginal(group, at.port);
    for (auto [value, state] : llvm::enumerate(*group.states[at.port]))
      if (costs[value] < kInfinite)
        costs[value] += marginal[state];
    for (auto [cost, taken] : llvm::zip_equal(group.costs[at.port], marginal))
      cost = taken < kInfinite ? cost - taken : kInfinite;
    auto isAhead = [&](unsigned other) {
      return isForward ? other > variable : other < variable;
    };
    bool hasAhead = llvm::any_of(group.variables, isAhead);
    numAhead += hasAhead;
    numBehind += llvm::any_of(group.variables, [&](unsigned other) {
      return other != variable && !isAhead(other);
    });
    if (hasAhead)
      ahead.push_back(at);
  }
  Cost least = *llvm::min_element(costs);
  bound += least;
  if (bound == kInfinite)
    return;
  bool isRemoved = false;
  for (Cost &cost : costs) {
    cost -= least;
    // This also catches values that are infinite already, which changes
    // nothing.
    if (bound + cost > best) {
      cost = kInfinite;
      isRemoved = true;
    }
  }
  if (isRemoved || best == kInfinite)
    remove(variable);
  unsigned numShares = std::max(numAhead, numBehind);
  for (size_t index = 0; index < ahead.size(); ++index) {
    Group &group = groups[ahead[index].group];
    unsigned port = ahead[index].port;
    Costs share(group.costs[port].size(), kInfinite);
    for (auto [value, state] : llvm::enumerate(*group.states[port]))
      share[state] = std::min(share[state], costs[value]);
    for (Cost &cost : share)
      cost = cost < kInfinite ? std::floor(cost / (numShares - index)) : 0;
    for (auto [value, state] : llvm::enumerate(*group.states[port]))
      costs[value] -= share[state];
    for (auto [cost, added] : llvm::zip_equal(group.costs[port], share))
      cost += added;
  }
}

FlowBound::Cost FlowBound::evaluate(const Value &value,
                                    llvm::ArrayRef<unsigned> assignment) const {
  auto getPlace = [&](const Port &port) {
    return port.states[assignment[port.variable]];
  };
  const Moves &by = moves[value.moves];
  const Cost *row =
      &by.costs[size_t(getPlace(value.ports.front())) * by.stride];
  Cost cost = 0;
  for (size_t i = 1; i < value.ports.size(); ++i) {
    unsigned wanted = getPlace(value.ports[i]);
    bool isShared = false;
    for (size_t j = 1; j < i && !isShared; ++j)
      isShared = getPlace(value.ports[j]) == wanted;
    if (!isShared)
      cost += row[wanted];
  }
  return cost;
}

FlowBound::Cost FlowBound::evaluate(llvm::ArrayRef<unsigned> assignment) const {
  Cost cost = 0;
  for (auto [variable, costs] : llvm::enumerate(own))
    cost += costs[assignment[variable]];
  for (const Value &value : values)
    cost += evaluate(value, assignment);
  return cost;
}

/// Improves one choice after the other as long as that is possible.
void FlowBound::improve(std::vector<unsigned> &assignment) const {
  auto getCost = [&](unsigned variable) {
    Cost cost = own[variable][assignment[variable]];
    for (unsigned value : valuesOf[variable])
      cost += evaluate(values[value], assignment);
    return cost;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned variable = 0; variable < own.size(); ++variable) {
      unsigned chosen = assignment[variable];
      Cost least = getCost(variable);
      for (unsigned value = 0; value < own[variable].size(); ++value) {
        if (left[variable][value] == kInfinite)
          continue;
        assignment[variable] = value;
        if (Cost cost = getCost(variable); cost < least) {
          least = cost;
          chosen = value;
          changed = true;
        }
      }
      assignment[variable] = chosen;
    }
  }
}

void FlowBound::sweep() {
  for (unsigned i = 0; i < own.size() && bound < kInfinite; ++i)
    visit(i, /*isForward=*/true);
  for (unsigned i = own.size(); i-- > 0 && bound < kInfinite;)
    visit(i, /*isForward=*/false);
}

/// Chooses one variable after the other, by the remaining costs and the earlier
/// choices.
void FlowBound::decode() {
  std::vector<std::vector<Costs>> before;
  for (const Group &group : groups)
    before.push_back(group.costs);
  std::vector<unsigned> assignment;
  for (unsigned variable = 0; variable < own.size(); ++variable) {
    Costs costs = left[variable];
    for (auto [group, port] : portsOf[variable]) {
      Costs marginal = getMarginal(groups[group], port);
      for (auto [value, state] : llvm::enumerate(*groups[group].states[port]))
        costs[value] += marginal[state];
    }
    unsigned chosen = llvm::min_element(costs) - costs.begin();
    assignment.push_back(chosen);
    for (auto [group, port] : portsOf[variable]) {
      unsigned state = (*groups[group].states[port])[chosen];
      for (auto [other, cost] : llvm::enumerate(groups[group].costs[port]))
        if (other != state)
          cost = kInfinite;
    }
  }
  for (auto [group, costs] : llvm::zip_equal(groups, before))
    group.costs = std::move(costs);
  improve(assignment);
  if (Cost cost = evaluate(assignment); cost < best) {
    best = cost;
    bestValues = std::move(assignment);
  }
}

void FlowBound::run(uint64_t maxEntries) {
  uint64_t end = numEntries + maxEntries;
  if (left.empty()) {
    for (const Costs &costs : own)
      unit = getUnit(unit, costs);
    for (const Moves &by : moves)
      unit = getUnit(unit, by.costs);
    left = own;
    makeGroups();
  }
  // Looks for the first assignment after one round: once one is known, values
  // can be removed.
  for (unsigned numRounds = 1;
       numEntries < end && bound < kInfinite && getLowerBound() < best;
       numRounds = kRoundsPerTry) {
    Cost gap = best - bound;
    for (unsigned round = 0; round < numRounds && numEntries < end; ++round)
      sweep();
    if (bound == kInfinite)
      return;
    decode();
    if (best - bound > gap * (1 - kLeastProgress))
      break;
  }
  // Removes the values that cost more than the best assignment found.
  if (best < kInfinite)
    sweep();
}

llvm::BitVector FlowBound::getKept(unsigned variable) const {
  llvm::BitVector kept(own[variable].size(), true);
  if (!left.empty())
    for (auto [value, cost] : llvm::enumerate(left[variable]))
      if (cost == kInfinite)
        kept.reset(value);
  return kept;
}
