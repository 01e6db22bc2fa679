//===- SumOrders.h - Sums in the order of the programs ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PROOF_SUMORDERS_H
#define TP_LIB_PROOF_SUMORDERS_H

#include "ReferenceGraph.h"
#include "llvm/ADT/DenseSet.h"
#include <map>

namespace mlir::tp {

/// Builds other forms of the reference's sums: a program may add and subtract
/// the terms of a sum in any order. Its intermediate sums become ops of the
/// reference. Two values are equal if they have the same terms, each of them
/// the same number of times.
class SumOrders {
public:
  explicit SumOrders(ReferenceGraph &graph) : graph(graph) {}

  /// Whether `op` adds its two operands, or subtracts the second one.
  static bool isSum(Operation *op);

  /// Adds the sum of `a` and `b` by an op like `like` to the reference, if it
  /// is, up to its sign, part of a sum of the reference. Returns the op; null
  /// if nothing is added or the reference has an equal op.
  Operation *addForm(Operation *like, ReferenceGraph::Id a,
                     ReferenceGraph::Id b);

private:
  /// How many times each value is added; negative if it is subtracted.
  using Terms = std::map<ReferenceGraph::Id, int64_t>;

  const Terms &getTerms(ReferenceGraph::Id id);
  /// The terms of `a` plus `sign` times `b`. nullopt if a term occurs with both
  /// signs, because inf - inf isn't 0.
  static std::optional<Terms> combine(Terms a, const Terms &b, int64_t sign);
  static bool isPart(const Terms &part, const Terms &whole, int64_t sign);
  Operation *findWhole(const Terms &terms, RankedTensorType type, Value &same);

  ReferenceGraph &graph;
  DenseMap<ReferenceGraph::Id, std::unique_ptr<Terms>> computed;
  /// The ops and values that forms were built from.
  DenseSet<std::tuple<Operation *, ReferenceGraph::Id, ReferenceGraph::Id>>
      built;
};

} // namespace mlir::tp

#endif // TP_LIB_PROOF_SUMORDERS_H
