//===- Regroup.h - Sums of what is partial and what is whole ----*- C++ -*-===//

#ifndef TP_LIB_PROOF_REGROUP_H
#define TP_LIB_PROOF_REGROUP_H

#include "ReferenceGraph.h"
#include "llvm/ADT/SetVector.h"

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

  /// Constants in the forms that are zero.
  ArrayRef<ReferenceGraph::Id> getZeros() const { return zeros.getArrayRef(); }

private:
  /// What a value is the sum of; either may be null, for zero.
  struct Terms {
    Value partial, whole;
  };

  std::optional<Terms> getTerms(Value value) const;
  Operation *getOnlyUser(ReferenceGraph::Id value) const;
  SmallVector<Operation *> findTouched();
  void addForms(Operation *op);
  Value build(Operation *op, ArrayRef<unsigned> set, SmallVector<Value> terms,
              bool isSum);
  Value add(Operation *op, Value same = {});

  ReferenceGraph &graph;
  DenseSet<ReferenceGraph::Id> partial;
  SmallVector<ReferenceGraph::Id> fresh;
  /// Of values that a tree computes.
  DenseMap<ReferenceGraph::Id, Terms> computed;
  llvm::SetVector<ReferenceGraph::Id> zeros;
  SmallVector<Operation *> added;
};

} // namespace mlir::tp

#endif // TP_LIB_PROOF_REGROUP_H
