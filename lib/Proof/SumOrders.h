//===- SumOrders.h - Sums in the order of the programs ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PROOF_SUMORDERS_H
#define TP_LIB_PROOF_SUMORDERS_H

#include "ReferenceGraph.h"
#include "llvm/ADT/DenseSet.h"
#include <map>

namespace mlir::tp {

/// Other forms of the reference's sums: a program may add and take away the
/// terms of a sum in any order. What it computes of them on the way becomes an
/// op of the reference. Two values are the same if they are the same terms,
/// each as many times.
class SumOrders {
public:
  explicit SumOrders(ReferenceGraph &graph) : graph(graph) {}

  /// Whether `op` adds its operands, or takes the second one away.
  static bool isSum(Operation *op);

  /// Adds the sum `like` of `a` and `b` to the reference, if it is, up to its
  /// sign, part of a sum of the reference; gives the op unless the reference
  /// has it.
  Operation *addForm(Operation *like, ReferenceGraph::Id a,
                     ReferenceGraph::Id b);

private:
  /// How many times each value is added; negative where it is taken away.
  using Terms = std::map<ReferenceGraph::Id, int64_t>;

  const Terms &getTerms(ReferenceGraph::Id id);
  /// The terms of `a` and, `sign` times, `b`; nothing where these have a term
  /// with opposite signs: inf - inf isn't 0.
  static std::optional<Terms> combine(Terms a, const Terms &b, int64_t sign);
  static bool isPart(const Terms &part, const Terms &whole, int64_t sign);
  Operation *findWhole(const Terms &terms, RankedTensorType type, Value &same);

  ReferenceGraph &graph;
  DenseMap<ReferenceGraph::Id, std::unique_ptr<Terms>> computed;
  /// What forms were built of.
  DenseSet<std::tuple<Operation *, ReferenceGraph::Id, ReferenceGraph::Id>>
      built;
};

} // namespace mlir::tp

#endif // TP_LIB_PROOF_SUMORDERS_H
