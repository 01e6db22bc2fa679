//===- MinSum.h - Cheapest assignment of many variables ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The problem has variables with finite domains, and tables that give the cost
// of combinations of values of a few variables. The solver finds the assignment
// with the lowest sum. It is exact, by variable elimination (Dechter, "Bucket
// elimination: a unifying framework for reasoning", 1999), as long as the
// intermediate tables stay small. If a table would be too large, its bucket is
// split into mini-buckets (Dechter and Rish, 2003), with costs shifted between
// them. That bounds the optimum from below. The assignment found is improved
// locally, and the gap is known.
//
// Tables are unique by content and normalized, and each elimination step is
// computed once for equal tables. A graph that repeats a layer therefore costs
// little more than one layer.
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
    /// No assignment costs less; equal to `cost` if the solution is exact.
    CommunicationCost lowerBound;
    /// For variables that represent several layers in a row: the distinct
    /// assignments, and the index of each layer's assignment, first to last.
    /// `values` has the last layer's.
    std::vector<std::vector<unsigned>> layerValues = {};
    std::vector<unsigned> layers = {};
  };

  /// A variable with values 0 to domainSize - 1.
  unsigned addVariable(unsigned domainSize);
  unsigned getNumVariables() const { return domains.size(); }

  /// Adds the table of `costs`, row-major, last dimension fastest.
  TableId addTable(llvm::ArrayRef<unsigned> dims,
                   std::vector<CommunicationCost> costs);

  /// Adds `table` to the sum, over `scope`: one variable per dimension of the
  /// table, all different.
  void addFactor(TableId table, llvm::ArrayRef<unsigned> scope);

  /// The variables added from here to `endRepeated` represent `count` layers in
  /// a row. Their factors count once for each layer. Factors that tie them to
  /// the same number of variables before them tie each layer to the previous
  /// one.
  void beginRepeated(unsigned count);
  void endRepeated();

  /// Finds the cheapest assignment, or a bounded one; no intermediate table has
  /// more than `maxEntries` entries. For problems without repeated variables.
  Solution solve(size_t maxEntries) {
    return *solve(maxEntries, /*mustBeExact=*/false);
  }

  /// Like `solve`, but returns nothing if a table would have more entries.
  std::optional<Solution> solveExactly(size_t maxEntries) {
    return solve(maxEntries, /*mustBeExact=*/true);
  }

  /// Like `solveExactly`, for problems with repeated variables. The time
  /// doesn't grow with the number of layers once the elimination leaves the
  /// same tables from layer to layer. Returns nothing if the layers are tied to
  /// anything but their neighbors, if no assignment is possible, or if the
  /// solution can't be exact.
  std::optional<Solution> solveRepeated(size_t maxEntries);

  /// Finds an assignment by a sweep in the variables' order and local
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
    /// The last variable of its original scope; it may have only one value.
    unsigned last = 0;
  };
  /// The result of an elimination: a table, and the cost that normalizing it
  /// took out.
  struct Message {
    TableId table = 0;
    CommunicationCost constant;
    /// The cheapest value of the eliminated variable, for each entry of the
    /// table.
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
  /// The number of infinite factors, and the cost of the others. It also orders
  /// impossible assignments: those with fewer infinite factors come first.
  using Measure = std::pair<unsigned, CommunicationCost>;
  Measure measure(llvm::ArrayRef<unsigned> factors,
                  llvm::ArrayRef<unsigned> values) const;
  /// The cheapest value of `variable` by `factors`, with all other variables as
  /// in `values`; the first one if several cost the same.
  unsigned choose(unsigned variable, llvm::ArrayRef<unsigned> factors,
                  std::vector<unsigned> &values) const;
  void improve(std::vector<unsigned> &values);
  std::optional<Solution> solve(size_t maxEntries, bool mustBeExact);
  /// The given factors, by variable.
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
  /// The sum of tables whose variables all have one value.
  CommunicationCost constant;
  /// The variables that represent `numLayers` layers.
  unsigned repeatedBegin = ~0u, repeatedEnd = ~0u, numLayers = 1;
  /// Made on first use.
  FactorLists given;
  /// Indexed by tables, and how their variables correspond.
  ListInterner messageNumbers, marginalNumbers;
  std::deque<Message> messages;
  std::deque<std::vector<CommunicationCost>> marginals;
};

} // namespace mlir::tp

#endif // TP_SHARDING_PROPAGATION_MINSUM_H
