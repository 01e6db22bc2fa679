//===- Elimination.h - Elimination of variables -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_SHARDING_PROPAGATION_ELIMINATION_H
#define TP_LIB_SHARDING_PROPAGATION_ELIMINATION_H

#include "tp/Sharding/Propagation/MinSum.h"
#include "llvm/ADT/STLExtras.h"
#include <utility>

namespace mlir::tp {

/// Lists with at least this many factors get spare room.
constexpr unsigned kManyFactors = 64;

/// Eliminates variables from the sum of some factors. The given factors, and
/// the messages (which are factors while the problem is being solved), are
/// active until they are eliminated. Factors over one variable are added up and
/// kept apart, because they don't make variables neighbors.
class MinSum::Elimination {
public:
  Elimination(MinSum &problem, size_t maxEntries,
              llvm::ArrayRef<unsigned> given)
      : problem(problem), domains(problem.domains), factors(problem.factors),
        maxEntries(maxEntries), own(domains.size(), kNone),
        lists(domains.size()), seen(domains.size()) {
    isActive.reserve(factors.size() + domains.size());
    isActive.assign(factors.size(), false);
    factors.reserve(factors.size() + domains.size());
    for (unsigned factor : given) {
      isActive[factor] = true;
      llvm::ArrayRef<unsigned> scope = problem.getScope(factor);
      if (scope.size() == 1)
        addOwn(scope.front(), factors[factor].table, factors[factor].begin);
      else
        for (unsigned variable : scope)
          ++lists[variable].capacity;
    }
    size_t begin = 0;
    for (List &list : lists) {
      list.begin = begin;
      // Each message replaces at least one factor. With twice the room, long
      // lists are rarely pruned.
      if (list.capacity >= kManyFactors)
        list.capacity *= 2;
      begin += list.capacity;
    }
    entries.resize(begin);
    for (unsigned factor : given)
      if (factors[factor].size > 1)
        for (unsigned variable : problem.getScope(factor))
          entries[lists[variable].begin + lists[variable].size++] = factor;
  }

  /// Eliminates `variables`, in ascending order, except those with one value.
  void run(llvm::ArrayRef<unsigned> variables);
  /// The factors that are left over `variables`, which are all variables that
  /// weren't eliminated.
  std::vector<unsigned> getLeft(llvm::ArrayRef<unsigned> variables);
  /// Sets the eliminated variables to the cheapest values, given the values of
  /// all others.
  void choose(std::vector<unsigned> &values) const;

  CommunicationCost bound;
  bool isExact = true;
  /// Whether to stop once the elimination isn't exact.
  bool mustBeExact = false;

private:
  static constexpr unsigned kNone = ~0u;
  using Variables = llvm::SmallVector<unsigned, 8>;
  struct List {
    size_t begin = 0;
    unsigned size = 0, capacity = 0;
  };
  /// An elimination step. `choose` finds the variable's value from `message`,
  /// over the scope of factor `left`, or, if there is no message, from the
  /// factors themselves.
  struct Step {
    unsigned variable, left;
    const Message *message;
    size_t bucketBegin, bucketEnd;
  };

  /// Adds `table` to the own costs of `variable`'s values; `place` is the
  /// variable's index in the scopes.
  void addOwn(unsigned variable, TableId table, size_t place) {
    if (own[variable] != kNone)
      table = problem.add(factors[own[variable]].table, table);
    own[variable] = factors.size();
    factors.push_back({table, 1, place});
    isActive.push_back(true);
  }
  /// The active factors over `variable` and other variables.
  llvm::MutableArrayRef<unsigned> prune(unsigned variable) {
    List &list = lists[variable];
    auto all = llvm::MutableArrayRef(entries).slice(list.begin, list.size);
    auto end = std::remove_if(all.begin(), all.end(), [&](unsigned factor) {
      return !isActive[factor];
    });
    list.size = end - all.begin();
    return all.take_front(list.size);
  }
  void append(unsigned variable, unsigned factor) {
    List &list = lists[variable];
    if (list.size == list.capacity)
      (void)prune(variable);
    entries[list.begin + list.size++] = factor;
  }
  /// The other variables of `bucket`; the one in the fewest factors comes last.
  Variables getScope(unsigned variable, llvm::ArrayRef<unsigned> bucket) {
    Variables scope;
    ++round;
    seen[variable] = round;
    for (unsigned factor : bucket)
      for (unsigned other : problem.getScope(factor))
        if (std::exchange(seen[other], round) != round)
          scope.push_back(other);
    if (scope.size() < 2)
      return scope;
    auto getCount = [&](unsigned other) {
      return llvm::count_if(bucket, [&](unsigned factor) {
        return llvm::is_contained(problem.getScope(factor), other);
      });
    };
    auto last = llvm::min_element(scope, [&](unsigned a, unsigned b) {
      return std::pair(getCount(a), -int64_t(domains[a])) <
             std::pair(getCount(b), -int64_t(domains[b]));
    });
    std::swap(*last, scope.back());
    return scope;
  }
  double getNumEntries(llvm::ArrayRef<unsigned> scope) const {
    double entries = 1;
    for (unsigned other : scope)
      entries *= domains[other];
    return entries;
  }
  /// The number of entries that eliminating `variable` now would leave; if that
  /// is over `limit`, some number over `limit`.
  double getSize(unsigned variable, double limit) {
    double size = 1;
    ++round;
    seen[variable] = round;
    for (unsigned factor : prune(variable))
      for (unsigned other : problem.getScope(factor))
        if (std::exchange(seen[other], round) != round &&
            (size *= domains[other]) > limit)
          return size;
    return size;
  }
  /// Returns the variables that `variable` shared a factor with.
  Variables eliminate(unsigned variable);
  void shiftCosts(unsigned variable,
                  llvm::MutableArrayRef<llvm::SmallVector<unsigned, 4>> parts);
  void eliminatePart(unsigned variable, llvm::ArrayRef<unsigned> part,
                     llvm::ArrayRef<unsigned> scope);

  MinSum &problem;
  const std::vector<unsigned> &domains;
  std::vector<Factor> &factors;
  size_t maxEntries;
  std::vector<char> isActive;
  /// The factor with the own costs of each variable's values.
  std::vector<unsigned> own;
  /// The factors of each variable are a part of `entries`.
  std::vector<List> lists;
  std::vector<unsigned> entries;
  /// Whether a variable isn't to be eliminated, or has been.
  std::vector<char> isDone;
  /// The round of collecting variables in which each variable was last found.
  std::vector<unsigned> seen;
  unsigned round = 0;
  std::vector<Step> steps;
  std::vector<unsigned> buckets;
};

} // namespace mlir::tp

#endif // TP_LIB_SHARDING_PROPAGATION_ELIMINATION_H
