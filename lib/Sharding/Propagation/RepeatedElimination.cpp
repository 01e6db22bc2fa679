//===- RepeatedElimination.cpp - Variables that stand for many parts ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Elimination.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include <numeric>
#include <set>

using namespace mlir::tp;

/// Eliminates the variables before the parts first, then part by part (except
/// the variables that tie a part to the next), then the rest. If a part leaves
/// the same tables as it found, all following parts do too, and they are
/// eliminated once.
class MinSum::RepeatedElimination {
public:
  /// The parts may never settle: for example, if two placements stay apart in
  /// all parts, at different costs. After this many steps, it is better to
  /// eliminate all parts together.
  static constexpr unsigned kMaxSteps = 32;

  RepeatedElimination(MinSum &problem, size_t maxEntries)
      : problem(problem), maxEntries(maxEntries),
        numGiven(problem.factors.size()), numScopes(problem.scopes.size()),
        begin(problem.repeatedBegin), end(problem.repeatedEnd),
        before(2 * begin - end), cost(problem.constant) {}
  ~RepeatedElimination() {
    problem.factors.resize(numGiven);
    problem.scopes.resize(numScopes);
  }

  std::optional<Solution> run();

private:
  using Numbers = std::vector<unsigned>;
  /// Tables over the variables that tie two parts, with the variables' places.
  using Tables = std::vector<std::pair<TableId, Numbers>>;

  /// Sorts the factors into head, part and rest. Returns whether parts are tied
  /// only to their neighbours, and by variables that are alike.
  bool divide();
  /// Eliminates `variables` from `factors`; null if no assignment is possible,
  /// or if the elimination isn't exact.
  std::unique_ptr<Elimination> eliminate(const Numbers &factors,
                                         const Numbers &variables);
  /// The tables that an elimination left over the part that begins at `from`.
  Tables getLeft(Elimination &elimination, unsigned from) const;
  /// `factors`, and new factors for `tables` over the part that begins at
  /// `from`.
  Numbers add(const Tables &tables, unsigned from, Numbers factors);
  Numbers getTied(unsigned from) const;
  void choose(Solution &solution) const;

  MinSum &problem;
  size_t maxEntries, numGiven, numScopes;
  /// The bounds of the variables of the part that stands for all, and the first
  /// variable of the part before it.
  unsigned begin, end, before;
  CommunicationCost cost;
  Numbers headFactors, partFactors, restFactors;
  /// The places of the variables that tie a part to the next.
  std::set<unsigned> tied;
  std::unique_ptr<Elimination> head, rest;
  /// The eliminations by part; the last one is also that of all further parts.
  std::vector<std::unique_ptr<Elimination>> steps;
};

bool MinSum::RepeatedElimination::divide() {
  if (begin < end - begin)
    return false;
  for (unsigned factor = 0; factor < numGiven; ++factor) {
    unsigned last = problem.factors[factor].last;
    if (last < begin) {
      headFactors.push_back(factor);
      continue;
    }
    bool isPart = last < end;
    (isPart ? partFactors : restFactors).push_back(factor);
    unsigned from = isPart ? before : begin, to = isPart ? begin : end;
    for (unsigned variable : problem.getScope(factor)) {
      if (variable < from)
        return false;
      if (variable < to)
        tied.insert(variable - from);
    }
  }
  return llvm::all_of(tied, [&](unsigned place) {
    return problem.domains[before + place] == problem.domains[begin + place];
  });
}

std::unique_ptr<MinSum::Elimination>
MinSum::RepeatedElimination::eliminate(const Numbers &factors,
                                       const Numbers &variables) {
  auto elimination =
      std::make_unique<Elimination>(problem, maxEntries, factors);
  elimination->mustBeExact = true;
  elimination->run(variables);
  if (!elimination->isExact || elimination->bound.isInfinite())
    return nullptr;
  return elimination;
}

MinSum::RepeatedElimination::Tables
MinSum::RepeatedElimination::getLeft(Elimination &elimination,
                                     unsigned from) const {
  Tables left;
  for (unsigned factor : elimination.getLeft(getTied(from))) {
    Numbers places;
    for (unsigned variable : problem.getScope(factor))
      places.push_back(variable - from);
    left.push_back({problem.factors[factor].table, std::move(places)});
  }
  llvm::sort(left);
  return left;
}

MinSum::RepeatedElimination::Numbers
MinSum::RepeatedElimination::add(const Tables &tables, unsigned from,
                                 Numbers factors) {
  for (const auto &[table, places] : tables) {
    factors.push_back(problem.factors.size());
    problem.factors.push_back(
        {table, static_cast<unsigned>(places.size()), problem.scopes.size()});
    for (unsigned place : places)
      problem.scopes.push_back(from + place);
  }
  return factors;
}

MinSum::RepeatedElimination::Numbers
MinSum::RepeatedElimination::getTied(unsigned from) const {
  Numbers variables;
  for (unsigned place : tied)
    variables.push_back(from + place);
  return variables;
}

/// `numbers`, followed by the numbers of [begin, end) that aren't in `without`.
static std::vector<unsigned> getNumbers(std::vector<unsigned> numbers,
                                        unsigned begin, unsigned end,
                                        llvm::ArrayRef<unsigned> without) {
  for (unsigned number = begin; number < end; ++number)
    if (!llvm::is_contained(without, number))
      numbers.push_back(number);
  return numbers;
}

std::optional<MinSum::Solution> MinSum::RepeatedElimination::run() {
  if (!divide())
    return std::nullopt;
  const Numbers tiedIn = getTied(before), tiedOut = getTied(begin);
  head = eliminate(headFactors, getNumbers({}, 0, begin, tiedIn));
  if (!head)
    return std::nullopt;
  cost += head->bound;
  Tables left = getLeft(*head, before);
  for (unsigned part = 0; part < problem.numParts; ++part) {
    if (part == kMaxSteps)
      return std::nullopt;
    auto step = eliminate(add(left, before, partFactors),
                          getNumbers(tiedIn, begin, end, tiedOut));
    if (!step)
      return std::nullopt;
    Tables next = getLeft(*step, begin);
    bool isSteady = next == left;
    cost += step->bound * (isSteady ? problem.numParts - part : 1);
    steps.push_back(std::move(step));
    left = std::move(next);
    if (isSteady)
      break;
  }
  rest = eliminate(add(left, begin, restFactors),
                   getNumbers(tiedOut, end, problem.domains.size(), {}));
  if (!rest)
    return std::nullopt;
  cost += rest->bound;
  if (cost.isInfinite())
    return std::nullopt;
  Solution solution;
  solution.cost = solution.lowerBound = cost;
  choose(solution);
  return solution;
}

/// Undoes all eliminations, last to first.
void MinSum::RepeatedElimination::choose(Solution &solution) const {
  std::vector<unsigned> &values = solution.values;
  values.assign(problem.domains.size(), 0);
  auto get = [&](const Numbers &variables) {
    return llvm::map_to_vector<0>(
        variables, [&](unsigned variable) { return values[variable]; });
  };
  auto set = [&](const Numbers &variables, llvm::ArrayRef<unsigned> to) {
    for (auto [variable, value] : llvm::zip_equal(variables, to))
      values[variable] = value;
  };
  const Numbers tiedIn = getTied(before), tiedOut = getTied(begin);
  const Numbers all = getNumbers({}, begin, end, {});
  rest->choose(values);
  // Parts with the same elimination, whose values for the next part are the
  // same, have the same values everywhere.
  std::map<std::pair<Elimination *, llvm::SmallVector<unsigned, 0>>, unsigned>
      known;
  std::vector<llvm::SmallVector<unsigned, 0>> taken;
  solution.parts.resize(problem.numParts);
  for (unsigned part = problem.numParts; part-- > 0;) {
    Elimination *step = steps[std::min<size_t>(part, steps.size() - 1)].get();
    auto [it, isNew] = known.try_emplace({step, get(tiedOut)}, known.size());
    if (isNew) {
      step->choose(values);
      auto partValues = get(all);
      solution.partValues.emplace_back(partValues.begin(), partValues.end());
      taken.push_back(get(tiedIn));
    }
    solution.parts[part] = it->second;
    // The values that this part takes are those that the previous part gives.
    set(tiedOut, taken[it->second]);
  }
  set(tiedIn, taken[solution.parts.front()]);
  head->choose(values);
  set(all, solution.partValues[solution.parts.back()]);
}

std::optional<MinSum::Solution> MinSum::solveRepeated(size_t maxEntries) {
  return RepeatedElimination(*this, maxEntries).run();
}
