//===- Regroup.h - Sums of what is partial and what is whole ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PROOF_REGROUP_H
#define TP_LIB_PROOF_REGROUP_H

#include "ReferenceGraph.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::tp {

/// Other forms of the reference's sums. An op that is linear in some operands
/// is, with `p` and `w` two terms that make up each of them,
///
///   op(p + w) = op(w) + op(p)
///
/// Programs reduce `op(p)` once, where `p` is what is Partial: a tree of such
/// ops over leaves is the tree with the other leaves zero, reduced, plus the
/// tree with the partial leaves zero. Both trees, and their sum, become ops of
/// the reference.
class Regrouping {
public:
  explicit Regrouping(ReferenceGraph &graph) : graph(graph) {}

  /// `value` is a leaf that is partial.
  void addPartial(ReferenceGraph::Id value) {
    if (partial.insert(value).second)
      fresh.push_back(value);
  }

  /// Adds the forms of trees with leaves that came since the last time; gives
  /// the ops that the reference didn't have.
  SmallVector<Operation *> run();

  /// Whether `value` is a constant in the forms, which is zero.
  bool isZero(ReferenceGraph::Id value) const { return zeros.contains(value); }
  /// Those that came since the last time.
  SmallVector<ReferenceGraph::Id> takeZeros() {
    return std::exchange(freshZeros, {});
  }

private:
  /// What a value is the sum of; either may be null, for zero.
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
  /// Of values that a tree computes.
  DenseMap<ReferenceGraph::Id, Terms> computed;
  DenseSet<ReferenceGraph::Id> zeros;
  SmallVector<ReferenceGraph::Id> freshZeros;
  SmallVector<Operation *> added;
};

} // namespace mlir::tp

#endif // TP_LIB_PROOF_REGROUP_H
