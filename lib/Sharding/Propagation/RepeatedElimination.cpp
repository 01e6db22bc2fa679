//===- RepeatedElimination.cpp - Elimination of equal layers --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Elimination.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include <numeric>
#include <set>

using namespace mlir::tp;

/// Eliminates the variables before the layers first, then layer by layer
/// (except the variables that tie a layer to the next), then the rest. If a
/// layer leaves the same tables as it found, all following layers do too, and
/// they are eliminated once.
class MinSum::RepeatedElimination {
public:
  /// The layers may never settle: for example, if two placements stay apart in
  /// all layers, at different costs. After this many steps, it is better to
  /// eliminate all layers together.
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
  /// Tables over the variables that tie two layers, with the variables'
  /// offsets in their layer.
  using Tables = std::vector<std::pair<TableId, Numbers>>;

  /// Sorts the factors into head, layer and rest. Returns whether layers are
  /// tied only to their neighbors, and by variables that are alike.
  bool divide();
  /// Eliminates `variables` from `factors`; null if no assignment is possible,
  /// or if the elimination isn't exact.
  std::unique_ptr<Elimination> eliminate(const Numbers &factors,
                                         const Numbers &variables);
  /// The tables that an elimination left over the layer that begins at `from`.
  Tables getLeft(Elimination &elimination, unsigned from) const;
  /// `factors`, and new factors for `tables` over the layer that begins at
  /// `from`.
  Numbers add(const Tables &tables, unsigned from, Numbers factors);
  Numbers getTied(unsigned from) const;
  void choose(Solution &solution) const;

  MinSum &problem;
  size_t maxEntries, numGiven, numScopes;
  /// The bounds of the variables of the layer that represents all, and the
  /// first variable of the layer before it.
  unsigned begin, end, before;
  CommunicationCost cost;
  Numbers headFactors, layerFactors, restFactors;
  /// The offsets of the variables that tie a layer to the next.
  std::set<unsigned> tied;
  std::unique_ptr<Elimination> head, rest;
  /// The eliminations by layer; the last one is also that of all further ones.
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
    bool isLayer = last < end;
    (isLayer ? layerFactors : restFactors).push_back(factor);
    unsigned from = isLayer ? before : begin, to = isLayer ? begin : end;
    for (unsigned variable : problem.getScope(factor)) {
      if (variable < from)
        return false;
      if (variable < to)
        tied.insert(variable - from);
    }
  }
  return llvm::all_of(tied, [&](unsigned offset) {
    return problem.domains[before + offset] == problem.domains[begin + offset];
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
    Numbers offsets;
    for (unsigned variable : problem.getScope(factor))
      offsets.push_back(variable - from);
    left.push_back({problem.factors[factor].table, std::move(offsets)});
  }
  llvm::sort(left);
  return left;
}

MinSum::RepeatedElimination::Numbers
MinSum::RepeatedElimination::add(const Tables &tables, unsigned from,
                                 Numbers factors) {
  for (const auto &[table, offsets] : tables) {
    factors.push_back(problem.factors.size());
    problem.factors.push_back(
        {table, static_cast<unsigned>(offsets.size()), problem.scopes.size()});
    for (unsigned offset : offsets)
      problem.scopes.push_back(from + offset);
  }
  return factors;
}

MinSum::RepeatedElimination::Numbers
MinSum::RepeatedElimination::getTied(unsigned from) const {
  Numbers variables;
  for (unsigned offset : tied)
    variables.push_back(from + offset);
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
  for (unsigned layer = 0; layer < problem.numLayers; ++layer) {
    if (layer == kMaxSteps)
      return std::nullopt;
    auto step = eliminate(add(left, before, layerFactors),
                          getNumbers(tiedIn, begin, end, tiedOut));
    if (!step)
      return std::nullopt;
    Tables next = getLeft(*step, begin);
    bool isSteady = next == left;
    cost += step->bound * (isSteady ? problem.numLayers - layer : 1);
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
  // Layers with the same elimination, whose values for the next layer are the
  // same, have the same values everywhere.
  std::map<std::pair<Elimination *, llvm::SmallVector<unsigned, 0>>, unsigned>
      known;
  std::vector<llvm::SmallVector<unsigned, 0>> taken;
  solution.layers.resize(problem.numLayers);
  for (unsigned layer = problem.numLayers; layer-- > 0;) {
    Elimination *step = steps[std::min<size_t>(layer, steps.size() - 1)].get();
    auto [it, isNew] = known.try_emplace({step, get(tiedOut)}, known.size());
    if (isNew) {
      step->choose(values);
      auto layerValues = get(all);
      solution.layerValues.emplace_back(layerValues.begin(), layerValues.end());
      taken.push_back(get(tiedIn));
    }
    solution.layers[layer] = it->second;
    // The values that this layer takes are those that the previous layer gives.
    set(tiedOut, taken[it->second]);
  }
  set(tiedIn, taken[solution.layers.front()]);
  head->choose(values);
  set(all, solution.layerValues[solution.layers.back()]);
}

std::optional<MinSum::Solution> MinSum::solveRepeated(size_t maxEntries) {
  return RepeatedElimination(*this, maxEntries).run();
}
