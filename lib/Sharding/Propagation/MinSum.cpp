//===- MinSum.cpp - Cheapest assignment of many variables -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Elimination.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include <climits>
#include <limits>
#include <numeric>

using namespace mlir::tp;

unsigned MinSum::addVariable(unsigned domainSize) {
  domains.push_back(domainSize);
  given.clear();
  return domains.size() - 1;
}

TableId MinSum::addTable(llvm::ArrayRef<unsigned> dims,
                         std::vector<CommunicationCost> costs) {
  return intern({llvm::SmallVector<unsigned>(dims), std::move(costs)});
}

void MinSum::addFactor(TableId table, llvm::ArrayRef<unsigned> scope) {
  given.clear();
  // Variables with only one value are left out of the scope.
  size_t begin = scopes.size();
  for (unsigned variable : scope)
    if (domains[variable] != 1)
      scopes.push_back(variable);
  unsigned size = scopes.size() - begin;
  unsigned last = *llvm::max_element(scope);
  if (size == 0) {
    bool isRepeated = repeatedBegin <= last && last < repeatedEnd;
    constant += tables[table]->costs.front() * (isRepeated ? numLayers : 1);
    return;
  }
  if (size < scope.size()) {
    auto [it, inserted] = squeezed.try_emplace(table, 0);
    if (inserted) {
      llvm::SmallVector<unsigned> dims;
      for (unsigned variable : llvm::ArrayRef(scopes).slice(begin, size))
        dims.push_back(domains[variable]);
      it->second = intern({dims, tables[table]->costs});
    }
    table = it->second;
  }
  factors.push_back({table, size, begin, last});
}

void MinSum::beginRepeated(unsigned count) {
  repeatedBegin = domains.size();
  numLayers = count;
}

void MinSum::endRepeated() { repeatedEnd = domains.size(); }

TableId MinSum::intern(Table table) {
  static_assert(std::has_unique_object_representations_v<CommunicationCost>,
                "costs are hashed as bytes");
  const char *costs = reinterpret_cast<const char *>(table.costs.data());
  size_t hash = llvm::hash_combine(
      llvm::hash_combine_range(table.dims.begin(), table.dims.end()),
      llvm::hash_combine_range(costs, costs + table.costs.size() *
                                                  sizeof(CommunicationCost)));
  auto [begin, end] = tablesByHash.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (tables[it->second]->dims == table.dims &&
        tables[it->second]->costs == table.costs)
      return it->second;
  tables.push_back(std::make_unique<Table>(std::move(table)));
  tablesByHash.insert({hash, tables.size() - 1});
  return tables.size() - 1;
}

TableId MinSum::add(TableId a, TableId b) {
  auto [it, inserted] = sums.try_emplace({a, b}, 0);
  if (inserted) {
    Table sum = *tables[a];
    for (auto [cost, other] : llvm::zip_equal(sum.costs, tables[b]->costs))
      cost += other;
    it->second = intern(std::move(sum));
  }
  return it->second;
}

CommunicationCost MinSum::lookUp(unsigned factor,
                                 llvm::ArrayRef<unsigned> values) const {
  const Table &table = *tables[factors[factor].table];
  size_t index = 0;
  for (auto [variable, size] : llvm::zip(getScope(factor), table.dims))
    index = index * size + values[variable];
  return table.costs[index];
}

const MinSum::FactorLists &MinSum::getGiven() {
  if (!given.empty())
    return given;
  given.resize(domains.size());
  for (unsigned factor = 0; factor < factors.size(); ++factor)
    for (unsigned variable : getScope(factor))
      given[variable].push_back(factor);
  return given;
}

//===----------------------------------------------------------------------===//
// Elimination
//===----------------------------------------------------------------------===//

/// The factors themselves must be evaluated: no value is possible, or the
/// factors were eliminated in several parts.
constexpr unsigned kNoChoice = ~0u;

/// Each word holds a table and the places of its first variables, or the places
/// of further variables.
WordList MinSum::getKey(unsigned variable, llvm::ArrayRef<unsigned> parts,
                        llvm::ArrayRef<unsigned> scope) const {
  WordList key = {domains[variable], scope.size()};
  for (unsigned part : parts) {
    key.push_back(factors[part].table);
    unsigned free = sizeof(Word) - sizeof(TableId);
    for (unsigned other : getScope(part)) {
      if (free == 0) {
        key.push_back(0);
        free = sizeof(Word);
      }
      // The eliminated variable's place is the number after the scope's last
      // one.
      key.back() =
          key.back() << CHAR_BIT | (llvm::find(scope, other) - scope.begin());
      --free;
    }
  }
  return key;
}

/// Calls `visit` for each combination of values of `scope`, with the costs of
/// the values of `variable` (which isn't in `scope`) by the sum of `parts`.
void MinSum::forEachRow(
    unsigned variable, llvm::ArrayRef<unsigned> parts,
    llvm::ArrayRef<unsigned> scope,
    llvm::function_ref<void(llvm::ArrayRef<CommunicationCost>)> visit) const {
  size_t numPlaces = scope.size(), numValues = domains[variable];
  size_t numEntries = 1;
  for (unsigned other : scope)
    numEntries *= domains[other];
  // The stride in each part of every place and of the variable, and the index
  // of the current entry.
  struct Part {
    const CommunicationCost *costs;
    llvm::SmallVector<size_t> strides;
    size_t base = 0;
  };
  // The parts, by the number of leading places that decide a part's costs.
  std::vector<llvm::SmallVector<Part, 2>> levels(numPlaces + 1);
  for (unsigned part : parts) {
    const Table &table = *tables[factors[part].table];
    Part operand{table.costs.data(), llvm::SmallVector<size_t>(numPlaces + 1)};
    size_t stride = 1, level = 0;
    for (size_t i = table.dims.size(); i-- > 0; stride *= table.dims[i]) {
      size_t place = llvm::find(scope, getScope(part)[i]) - scope.begin();
      operand.strides[place] = stride;
      if (place < numPlaces)
        level = std::max(level, place + 1);
    }
    levels[level].push_back(std::move(operand));
  }
  // The costs of the values by the parts up to each level.
  const std::vector<CommunicationCost> zeros(numValues);
  std::vector<std::vector<CommunicationCost>> rows(numPlaces + 1, zeros);
  auto addUp = [&](size_t level) {
    std::vector<CommunicationCost> &row = rows[level];
    const std::vector<CommunicationCost> *before =
        level > 0 ? &rows[level - 1] : &zeros;
    for (const Part &part : levels[level]) {
      const CommunicationCost *at = part.costs + part.base;
      size_t step = part.strides[numPlaces];
      for (size_t value = 0; value < numValues; ++value, at += step) {
        CommunicationCost cost = (*before)[value];
        cost.addUnlessInfinite(*at);
        row[value] = cost;
      }
      before = &row;
    }
    if (before != &row)
      llvm::copy(*before, row.begin());
  };
  for (size_t level = 0; level <= numPlaces; ++level)
    addUp(level);
  llvm::SmallVector<unsigned> place(numPlaces, 0);
  for (size_t entry = 0; entry < numEntries; ++entry) {
    visit(rows[numPlaces]);
    // Advances to the next entry and updates the rows that change.
    for (size_t i = numPlaces; i-- > 0;) {
      bool carries = ++place[i] == domains[scope[i]];
      for (auto &parts : llvm::drop_begin(levels, i + 1))
        for (Part &part : parts)
          part.base += carries ? -part.strides[i] * (domains[scope[i]] - 1)
                               : part.strides[i];
      if (!carries) {
        for (size_t level = i + 1; level <= numPlaces; ++level)
          addUp(level);
        break;
      }
      place[i] = 0;
    }
  }
}

/// The sum of `parts` over `scope`, minimized over `variable`, which isn't in
/// `scope`.
const MinSum::Message &MinSum::eliminate(unsigned variable,
                                         llvm::ArrayRef<unsigned> parts,
                                         llvm::ArrayRef<unsigned> scope) {
  auto [number, isNew] = messageNumbers.insert(getKey(variable, parts, scope));
  if (!isNew)
    return messages[number];

  Table result;
  size_t numEntries = 1;
  for (unsigned other : scope) {
    result.dims.push_back(domains[other]);
    numEntries *= domains[other];
  }
  result.costs.reserve(numEntries);
  Message &message = messages.emplace_back();
  message.choices.reserve(numEntries);
  CommunicationCost least = CommunicationCost::infinite();
  forEachRow(
      variable, parts, scope, [&](llvm::ArrayRef<CommunicationCost> row) {
        const CommunicationCost *best = nullptr;
        for (const CommunicationCost &cost : row)
          if (!cost.isInfinite() && (!best || cost < *best))
            best = &cost;
        result.costs.push_back(best ? *best : CommunicationCost::infinite());
        message.choices.push_back(best ? best - row.begin() : kNoChoice);
        least = std::min(least, result.costs.back());
      });
  if (!least.isInfinite())
    for (CommunicationCost &cost : result.costs)
      cost = cost - least;
  message.constant = least;
  message.table = intern(std::move(result));
  return message;
}

/// The least cost of each value of `variable` by the sum of `parts`.
const std::vector<CommunicationCost> &
MinSum::getMarginals(unsigned variable, llvm::ArrayRef<unsigned> parts,
                     llvm::ArrayRef<unsigned> scope) {
  auto [number, isNew] = marginalNumbers.insert(getKey(variable, parts, scope));
  if (isNew) {
    auto &least = marginals.emplace_back(domains[variable],
                                         CommunicationCost::infinite());
    forEachRow(variable, parts, scope,
               [&](llvm::ArrayRef<CommunicationCost> row) {
                 for (auto [known, cost] : llvm::zip_equal(least, row))
                   if (!cost.isInfinite() && cost < known)
                     known = cost;
               });
  }
  return marginals[number];
}

/// The first sweep eliminates variables that leave at most kFirstLimit entries,
/// in their order; then the limit grows by this factor from sweep to sweep.
constexpr double kFirstLimit = 128, kLimitGrowth = 4;

void MinSum::Elimination::eliminatePart(unsigned variable,
                                        llvm::ArrayRef<unsigned> part,
                                        llvm::ArrayRef<unsigned> scope) {
  const Message &message = problem.eliminate(variable, part, scope);
  bound += message.constant;
  for (unsigned factor : part)
    isActive[factor] = false;
  size_t begin = problem.scopes.size();
  llvm::append_range(problem.scopes, scope);
  // A factor is added even if its scope is empty, because the step refers to
  // it.
  steps.back().message = &message;
  steps.back().left = factors.size();
  if (scope.size() == 1)
    return addOwn(scope.front(), message.table, begin);
  factors.push_back(
      {message.table, static_cast<unsigned>(scope.size()), begin});
  isActive.push_back(!scope.empty());
  for (unsigned other : scope)
    append(other, factors.size() - 1);
}

/// Each part chooses the value of `variable` that is cheapest for itself, which
/// makes the bound loose. So costs are moved between the parts until each
/// value's least cost is the same in all parts (Flerova, Ihler, Dechter and
/// Otten, "Mini-bucket elimination with moment matching", 2011). The sum of the
/// parts doesn't change, and the bound rises.
void MinSum::Elimination::shiftCosts(
    unsigned variable,
    llvm::MutableArrayRef<llvm::SmallVector<unsigned, 4>> parts) {
  size_t numValues = domains[variable];
  int64_t numParts = parts.size();
  std::vector<std::vector<CommunicationCost>> costs;
  for (const auto &part : parts)
    costs.push_back(
        problem.getMarginals(variable, part, getScope(variable, part)));
  for (size_t value = 0; value < numValues; ++value) {
    CommunicationCost sum;
    for (const auto &own : costs)
      sum += own[value];
    // A value that is impossible for one part is impossible for all.
    CommunicationCost mean = sum.isInfinite() ? sum : sum / numParts;
    CommunicationCost rest = sum.isInfinite() ? sum : sum - mean * numParts;
    for (auto [index, own] : llvm::enumerate(costs))
      own[value] = sum.isInfinite() ? CommunicationCost()
                                    : (index ? mean : mean + rest) - own[value];
  }
  for (auto [part, own] : llvm::zip_equal(parts, costs)) {
    part.push_back(factors.size());
    factors.push_back({problem.intern({{domains[variable]}, std::move(own)}), 1,
                       problem.scopes.size()});
    problem.scopes.push_back(variable);
    isActive.push_back(false);
  }
}

MinSum::Elimination::Variables
MinSum::Elimination::eliminate(unsigned variable) {
  size_t begin = buckets.size();
  if (own[variable] != kNone)
    buckets.push_back(own[variable]);
  llvm::append_range(buckets, prune(variable));
  steps.push_back({variable, 0, nullptr, begin, buckets.size()});
  llvm::ArrayRef<unsigned> bucket = llvm::ArrayRef(buckets).drop_front(begin);
  Variables scope = getScope(variable, bucket);
  if (getNumEntries(scope) * domains[variable] <=
      static_cast<double>(maxEntries)) {
    eliminatePart(variable, bucket, scope);
    return scope;
  }
  // Divides the bucket into several, each as large as fits.
  llvm::SmallVector<llvm::SmallVector<unsigned, 4>> parts;
  for (unsigned factor : bucket) {
    auto fits = [&](llvm::SmallVector<unsigned, 4> part) {
      part.push_back(factor);
      return getNumEntries(getScope(variable, part)) * domains[variable] <=
             static_cast<double>(maxEntries);
    };
    auto *part = llvm::find_if(parts, fits);
    if (part == parts.end())
      parts.emplace_back().push_back(factor);
    else
      part->push_back(factor);
  }
  isExact &= parts.size() < 2;
  if (mustBeExact && !isExact)
    return {};
  if (parts.size() > 1)
    shiftCosts(variable, parts);
  for (const auto &part : parts)
    eliminatePart(variable, part, getScope(variable, part));
  if (parts.size() > 1)
    steps.back().message = nullptr;
  return scope;
}

/// Sweeps in the variables' order, so that equal parts of a graph are
/// eliminated alike and neighbors are eliminated together.
void MinSum::Elimination::run(llvm::ArrayRef<unsigned> variables) {
  std::vector<unsigned> left;
  isDone.assign(domains.size(), true);
  for (unsigned variable : variables)
    if (domains[variable] > 1) {
      left.push_back(variable);
      isDone[variable] = false;
    }
  llvm::SmallVector<unsigned> again;
  for (double limit = kFirstLimit;
       !left.empty() && (isExact || !mustBeExact);) {
    double least = std::numeric_limits<double>::infinity();
    auto visit = [&](unsigned variable) {
      if (mustBeExact && !isExact)
        return;
      double size = getSize(variable, std::max(limit, least));
      if (size > limit) {
        least = std::min(least, size);
        return;
      }
      isDone[variable] = true;
      // Variables before this one have had their turn in this sweep, but may be
      // small enough now.
      for (unsigned other : eliminate(variable))
        if (other < variable)
          again.push_back(other);
    };
    for (unsigned variable : left) {
      if (!isDone[variable])
        visit(variable);
      while (!again.empty())
        if (unsigned other = again.pop_back_val(); !isDone[other])
          visit(other);
    }
    llvm::erase_if(left, [&](unsigned variable) { return isDone[variable]; });
    limit = std::max(limit * kLimitGrowth, least);
  }
}

std::vector<unsigned>
MinSum::Elimination::getLeft(llvm::ArrayRef<unsigned> variables) {
  std::vector<unsigned> left;
  for (unsigned variable : variables) {
    if (own[variable] != kNone)
      left.push_back(own[variable]);
    for (unsigned factor : prune(variable))
      if (problem.getScope(factor).front() == variable)
        left.push_back(factor);
  }
  return left;
}

/// Undoes the steps, last to first.
void MinSum::Elimination::choose(std::vector<unsigned> &values) const {
  for (const Step &step : llvm::reverse(steps)) {
    unsigned &value = values[step.variable];
    value = kNoChoice;
    if (step.message) {
      size_t index = 0;
      for (unsigned other : problem.getScope(step.left))
        index = index * domains[other] + values[other];
      value = step.message->choices[index];
    }
    if (value == kNoChoice)
      value = problem.choose(
          step.variable,
          llvm::ArrayRef(buckets).slice(step.bucketBegin,
                                        step.bucketEnd - step.bucketBegin),
          values);
  }
}

static std::vector<unsigned> getNumbers(unsigned begin, unsigned end) {
  std::vector<unsigned> numbers(end - begin);
  std::iota(numbers.begin(), numbers.end(), begin);
  return numbers;
}

std::optional<MinSum::Solution> MinSum::solve(size_t maxEntries,
                                              bool mustBeExact) {
  size_t numGiven = factors.size(), numScopes = scopes.size();
  Elimination elimination(*this, maxEntries, getNumbers(0, factors.size()));
  elimination.mustBeExact = mustBeExact;
  elimination.run(getNumbers(0, domains.size()));
  bool isSolved = elimination.isExact || !mustBeExact;
  Solution solution;
  solution.values.assign(domains.size(), 0);
  if (isSolved)
    elimination.choose(solution.values);
  factors.resize(numGiven);
  scopes.resize(numScopes);
  if (!isSolved)
    return std::nullopt;
  solution.lowerBound = elimination.bound + constant;
  // The sum of the costs that normalisations took out is the optimum.
  if (elimination.isExact && !solution.lowerBound.isInfinite()) {
    solution.cost = solution.lowerBound;
    return solution;
  }
  if (!elimination.isExact)
    improve(solution.values);
  solution.cost = evaluate(solution.values);
  if (!elimination.isExact)
    if (Solution greedy = solveGreedily(); greedy.cost < solution.cost)
      solution = std::move(greedy);
  if (elimination.isExact)
    solution.lowerBound = solution.cost;
  else
    solution.lowerBound = elimination.bound + constant;
  return solution;
}

//===----------------------------------------------------------------------===//
// Assignments
//===----------------------------------------------------------------------===//

MinSum::Measure MinSum::measure(llvm::ArrayRef<unsigned> of,
                                llvm::ArrayRef<unsigned> values) const {
  Measure measure;
  for (unsigned factor : of) {
    CommunicationCost cost = lookUp(factor, values);
    if (cost.isInfinite())
      ++measure.first;
    else
      measure.second += cost;
  }
  return measure;
}

unsigned MinSum::choose(unsigned variable, llvm::ArrayRef<unsigned> bucket,
                        std::vector<unsigned> &values) const {
  unsigned best = 0;
  Measure least;
  for (unsigned value = 0; value < domains[variable]; ++value) {
    values[variable] = value;
    Measure own = measure(bucket, values);
    if (value == 0 || own < least) {
      best = value;
      least = own;
    }
  }
  return best;
}

CommunicationCost MinSum::evaluate(llvm::ArrayRef<unsigned> values) const {
  CommunicationCost cost = constant;
  for (unsigned factor = 0; factor < factors.size(); ++factor)
    cost += lookUp(factor, values);
  return cost;
}

void MinSum::improve(std::vector<unsigned> &values) {
  const FactorLists &given = getGiven();
  // Each round but the last makes the sum smaller.
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned variable = 0; variable < domains.size(); ++variable) {
      unsigned before = values[variable];
      Measure old = measure(given[variable], values);
      values[variable] = choose(variable, given[variable], values);
      if (measure(given[variable], values) < old)
        changed = true;
      else
        values[variable] = before;
    }
  }
}

MinSum::Solution MinSum::solveGreedily() {
  const FactorLists &given = getGiven();
  Solution solution;
  solution.values.assign(domains.size(), 0);
  for (unsigned variable = 0; variable < domains.size(); ++variable) {
    // The factors whose variables are all decided.
    llvm::SmallVector<unsigned> decided;
    llvm::copy_if(given[variable], std::back_inserter(decided),
                  [&](unsigned factor) {
                    return llvm::all_of(getScope(factor), [&](unsigned other) {
                      return other <= variable;
                    });
                  });
    solution.values[variable] = choose(variable, decided, solution.values);
  }
  improve(solution.values);
  solution.cost = evaluate(solution.values);
  return solution;
}
