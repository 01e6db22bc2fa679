//===- RepeatedElimination.cpp - Variables that stand for many parts ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Elimination.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include <numeric>
#include <set>

using namespace mlir::tp;

/// What is before the parts is eliminated first, then part by part, each up to
/// what ties it to the next, then the rest. A part that finds the same tables
/// as the one before it leaves the same, and so do all that follow: they are
/// eliminated once.
class MinSum::RepeatedElimination {
public:
  /// Parts that leave something else each, as where two placements stay apart
  /// all along at different costs, are better looked at with all others.
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
  /// Tables over what ties two parts, by place.
  using Tables = std::vector<std::pair<TableId, Numbers>>;

  /// Sorts out whose each factor is. Whether parts are tied to their neighbours
  /// alone, and by variables that are alike.
  bool divide();
  /// Eliminates `variables` from `factors`; null where there is no possible
  /// assignment, or it isn't exact.
  std::unique_ptr<Elimination> eliminate(const Numbers &factors,
                                         const Numbers &variables);
  /// What an elimination left over the part that begins at `from`.
  Tables getLeft(Elimination &elimination, unsigned from) const;
  /// `factors` and `tables`, over the part that begins at `from`.
  Numbers add(const Tables &tables, unsigned from, Numbers factors);
  Numbers getTied(unsigned from) const;
  void choose(Solution &solution) const;

  MinSum &problem;
  size_t maxEntries, numGiven, numScopes;
  /// The variables of the part that stands for all, and of the one before it.
  unsigned begin, end, before;
  CommunicationCost cost;
  Numbers headFactors, partFactors, restFactors;
  /// Places of what a part gives to the next.
  std::set<unsigned> tied;
  std::unique_ptr<Elimination> head, rest;
  /// By part; the last is that of all further ones too.
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

/// `numbers`, ascending, and of [begin, end) those that aren't in `without`.
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
  // Parts that are eliminated alike, and give alike values, take alike ones.
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
    // What this part takes, the one before it gives.
    set(tiedOut, taken[it->second]);
  }
  set(tiedIn, taken[solution.parts.front()]);
  head->choose(values);
  set(all, solution.partValues[solution.parts.back()]);
}

std::optional<MinSum::Solution> MinSum::solveRepeated(size_t maxEntries) {
  return RepeatedElimination(*this, maxEntries).run();
}
