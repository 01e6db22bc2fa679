//===- Regroup.h - Sums of Partial terms and others -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PROOF_REGROUP_H
#define TP_LIB_PROOF_REGROUP_H

#include "ReferenceGraph.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::tp {

/// Builds other forms of the reference's sums. For an op that is linear in some
/// operands, each of which is a sum `p + w`:
///
///   op(p + w) = op(w) + op(p)
///
/// If `p` is the Partial term, a program may reduce `op(p)` once. So a tree of
/// such ops is the sum of two trees: one in which all leaves but the Partial
/// ones are zero, which is reduced, and one in which the Partial leaves are
/// zero. Both trees, and their sum, become ops of the reference.
class Regrouping {
public:
  explicit Regrouping(ReferenceGraph &graph) : graph(graph) {}

  /// Adds a leaf that is Partial.
  void addPartial(ReferenceGraph::Id value) {
    if (partial.insert(value).second)
      fresh.push_back(value);
  }

  /// Adds the forms of trees with leaves that are new since the last call.
  /// Returns the ops that the reference didn't have.
  SmallVector<Operation *> run();

  /// Whether `value` is a zero constant that the forms use.
  bool isZero(ReferenceGraph::Id value) const { return zeros.contains(value); }
  /// The zeros that are new since the last call.
  SmallVector<ReferenceGraph::Id> takeZeros() {
    return std::exchange(freshZeros, {});
  }

private:
  /// The two terms whose sum a value is; null means zero.
  struct Terms {
    Value partial, whole;
    /// The sums of its tree, one of each kind.
    SmallVector<Operation *, 1> sums;
  };

  std::optional<Terms> getTerms(Value value) const;
  SmallVector<Operation *> findTouched();
  void addForms(Operation *op);
  Value build(Operation *op, ArrayRef<unsigned> set, SmallVector<Value> terms,
              bool isSum);
  Operation *getLast() const;
  Value addBuilt(Operation *before, Value same = {});

  ReferenceGraph &graph;
  DenseSet<ReferenceGraph::Id> partial;
  SmallVector<ReferenceGraph::Id> fresh;
  /// The terms of values that trees compute.
  DenseMap<ReferenceGraph::Id, Terms> computed;
  DenseSet<ReferenceGraph::Id> zeros;
  SmallVector<ReferenceGraph::Id> freshZeros;
  SmallVector<Operation *> added;
};

} // namespace mlir::tp

#endif // TP_LIB_PROOF_REGROUP_H
