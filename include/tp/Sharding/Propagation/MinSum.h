//===- MinSum.h - Cheapest assignment of many variables ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Variables with finite domains, and tables that say what values of a few of
// them cost together: which assignment costs least in sum? Solved exactly by
// variable elimination (Dechter, "Bucket elimination: a unifying framework for
// reasoning", 1999) wherever the intermediate tables stay small. Where they
// don't, a bucket is split into mini-buckets (Dechter and Rish, 2003), with
// costs shifted between them, which bounds the optimum from below; the
// assignment found is improved locally, and the gap is known.
//
// Tables are unique by content and normalised, and each elimination step is
// computed once for equal tables: a graph that repeats a part, as the layers of
// a model do, costs little more than the part.
//
//===----------------------------------------------------------------------===//

#ifndef TP_SHARDING_PROPAGATION_MINSUM_H
#define TP_SHARDING_PROPAGATION_MINSUM_H

#include "tp/Sharding/CommunicationCost.h"
#include "tp/Support/ListInterner.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace mlir::tp {

/// A table's number.
using TableId = unsigned;

class MinSum {
public:
  struct Solution {
    /// The value of each variable.
    std::vector<unsigned> values;
    CommunicationCost cost;
    /// No assignment costs less; equal to `cost` where the solution is exact.
    CommunicationCost lowerBound;
    /// Of the variables that stand for several parts in a row: the different
    /// assignments, and which of them each part has, first to last. `values`
    /// has the last part's.
    std::vector<std::vector<unsigned>> partValues = {};
    std::vector<unsigned> parts = {};
  };

  /// A variable with values 0 to domainSize - 1.
  unsigned addVariable(unsigned domainSize);
  unsigned getNumVariables() const { return domains.size(); }

  /// The table of `costs`, row-major, last dimension fastest.
  TableId addTable(llvm::ArrayRef<unsigned> dims,
                   std::vector<CommunicationCost> costs);

  /// Counts `table` over `scope`, one variable per dimension of the table, all
  /// different.
  void addFactor(TableId table, llvm::ArrayRef<unsigned> scope);

  /// The variables added from here to `endRepeated` stand for `count` parts in
  /// a row, as the layers of a model. Their factors are each part's; those that
  /// tie them to the equally many variables before them tie each part to the
  /// one before it.
  void beginRepeated(unsigned count);
  void endRepeated();

  /// The cheapest assignment; no intermediate table has more than `maxEntries`
  /// entries. No variables are repeated.
  Solution solve(size_t maxEntries) {
    return *solve(maxEntries, /*mustBeExact=*/false);
  }

  /// The same, or none where a table would have more entries.
  std::optional<Solution> solveExactly(size_t maxEntries) {
    return solve(maxEntries, /*mustBeExact=*/true);
  }

  /// The same where variables are repeated, in time that doesn't grow with the
  /// number of parts once what they leave is the same from part to part. None
  /// where the parts are tied to others than their neighbours, where there is
  /// no possible assignment, or where it can't be exact.
  std::optional<Solution> solveRepeated(size_t maxEntries);

  /// One assignment found by a sweep in the variables' order and local
  /// improvement; its lower bound is zero.
  Solution solveGreedily();

private:
  class Elimination;
  class RepeatedElimination;
  struct Table {
    llvm::SmallVector<unsigned> dims;
    std::vector<CommunicationCost> costs;
  };
  /// A table over variables scopes[begin, begin + size).
  struct Factor {
    TableId table;
    unsigned size;
    size_t begin;
    /// The last variable that it was given over, maybe one of one value.
    unsigned last = 0;
  };
  /// What an elimination leaves: a table, and the cost that its normalisation
  /// took out.
  struct Message {
    TableId table = 0;
    CommunicationCost constant;
    /// The cheapest value of what was eliminated, for each entry of the table.
    std::vector<unsigned> choices;
  };

  TableId intern(Table table);
  /// The sum of two tables over the same variables.
  TableId add(TableId a, TableId b);
  llvm::ArrayRef<unsigned> getScope(unsigned factor) const {
    return llvm::ArrayRef(scopes).slice(factors[factor].begin,
                                        factors[factor].size);
  }
  WordList getKey(unsigned variable, llvm::ArrayRef<unsigned> parts,
                  llvm::ArrayRef<unsigned> scope) const;
  void forEachRow(
      unsigned variable, llvm::ArrayRef<unsigned> parts,
      llvm::ArrayRef<unsigned> scope,
      llvm::function_ref<void(llvm::ArrayRef<CommunicationCost>)> visit) const;
  const Message &eliminate(unsigned variable, llvm::ArrayRef<unsigned> factors,
                           llvm::ArrayRef<unsigned> scope);
  const std::vector<CommunicationCost> &
  getMarginals(unsigned variable, llvm::ArrayRef<unsigned> parts,
               llvm::ArrayRef<unsigned> scope);
  CommunicationCost lookUp(unsigned factor,
                           llvm::ArrayRef<unsigned> values) const;
  CommunicationCost evaluate(llvm::ArrayRef<unsigned> values) const;
  /// How many of the factors are infinite, and what the others cost: of what is
  /// impossible, the nearest to what is possible comes first.
  using Measure = std::pair<unsigned, CommunicationCost>;
  Measure measure(llvm::ArrayRef<unsigned> factors,
                  llvm::ArrayRef<unsigned> values) const;
  /// The cheapest value of `variable` by `factors`, all else as in `values`;
  /// of equal ones the first.
  unsigned choose(unsigned variable, llvm::ArrayRef<unsigned> factors,
                  std::vector<unsigned> &values) const;
  void improve(std::vector<unsigned> &values);
  /// The factors that are given, by variable.
  std::optional<Solution> solve(size_t maxEntries, bool mustBeExact);
  using FactorLists = std::vector<llvm::SmallVector<unsigned, 4>>;
  const FactorLists &getGiven();

  std::vector<unsigned> domains;
  std::vector<std::unique_ptr<Table>> tables;
  std::multimap<size_t, TableId> tablesByHash;
  /// Tables without their dimensions of size 1.
  std::map<TableId, TableId> squeezed;
  llvm::DenseMap<std::pair<TableId, TableId>, TableId> sums;
  std::vector<Factor> factors;
  std::vector<unsigned> scopes;
  /// What tables over variables of one value cost.
  CommunicationCost constant;
  /// The variables that stand for `numParts` parts.
  unsigned repeatedBegin = ~0u, repeatedEnd = ~0u, numParts = 1;
  /// Made when it is asked for first.
  FactorLists given;
  /// By tables, and how their variables correspond.
  ListInterner messageNumbers, marginalNumbers;
  std::deque<Message> messages;
  std::deque<std::vector<CommunicationCost>> marginals;
};

} // namespace mlir::tp

#endif // TP_SHARDING_PROPAGATION_MINSUM_H
