//===- Elimination.h - Variables out of a sum of tables ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_SHARDING_PROPAGATION_ELIMINATION_H
#define TP_LIB_SHARDING_PROPAGATION_ELIMINATION_H

#include "tp/Sharding/Propagation/MinSum.h"
#include "llvm/ADT/STLExtras.h"
#include <utility>

namespace mlir::tp {

/// The lists of variables with so many factors have place to spare.
constexpr unsigned kManyFactors = 64;

/// One elimination of variables from the sum of some factors. These and
/// messages, which are factors as long as the problem is being solved, count
/// until they are eliminated. Those over one variable are added up and kept
/// apart: they change nobody's neighbours.
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
      // Each message takes the place of a factor at least: with twice the
      // place, lists of many factors are seldom looked through.
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

  /// Eliminates `variables`, which are in ascending order, those of one value
  /// aside.
  void run(llvm::ArrayRef<unsigned> variables);
  /// The factors that are left over `variables`, all that weren't eliminated.
  std::vector<unsigned> getLeft(llvm::ArrayRef<unsigned> variables);
  /// Gives the variables that were eliminated the values that are cheapest for
  /// those of all others.
  void choose(std::vector<unsigned> &values) const;

  CommunicationCost bound;
  bool isExact = true;
  /// Whether to stop where it isn't exact.
  bool mustBeExact = false;

private:
  static constexpr unsigned kNone = ~0u;
  using Variables = llvm::SmallVector<unsigned, 8>;
  struct List {
    size_t begin = 0;
    unsigned size = 0, capacity = 0;
  };
  /// An elimination, to be undone: by `message`, over the scope of factor
  /// `left`, or by a look at the factors themselves.
  struct Step {
    unsigned variable, left;
    const Message *message;
    size_t bucketBegin, bucketEnd;
  };

  /// Adds `table` to what the values of `variable` cost by themselves; the
  /// variable stands at `place` of the scopes.
  void addOwn(unsigned variable, TableId table, size_t place) {
    if (own[variable] != kNone)
      table = problem.add(factors[own[variable]].table, table);
    own[variable] = factors.size();
    factors.push_back({table, 1, place});
    isActive.push_back(true);
  }
  /// The factors of `variable` and others that count.
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
  /// The other variables of `bucket`; what each of the last ones decides is in
  /// few factors.
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
  /// How many entries the elimination of `variable` leaves now; some number
  /// over `limit` where it is over that.
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
  /// The variables that `variable` shared a factor with.
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
  /// By variable, the factor of what its values cost by themselves.
  std::vector<unsigned> own;
  /// The factors of each variable are a part of `entries`.
  std::vector<List> lists;
  std::vector<unsigned> entries;
  /// Whether a variable isn't to be eliminated, or not any more.
  std::vector<char> isDone;
  /// In which round of collecting variables each was found.
  std::vector<unsigned> seen;
  unsigned round = 0;
  std::vector<Step> steps;
  std::vector<unsigned> buckets;
};

} // namespace mlir::tp

#endif // TP_LIB_SHARDING_PROPAGATION_ELIMINATION_H
