//===- LocalForms.h - Ops of one rank ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops of one class (OpClasses.h) with the same placements share one local form,
// which is computed once.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_TRANSFORMS_LOCALFORMS_H
#define TP_LIB_TRANSFORMS_LOCALFORMS_H

#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "tp/Sharding/Propagation/OpClasses.h"
#include "tp/Support/ListInterner.h"
#include <deque>

namespace mlir::tp {

struct LocalForm {
  /// The placements and the local types of the results.
  SmallVector<ShardingAttr> results;
  SmallVector<Type> types;
  OpSplit split;
  /// Whether the op stays, with these types: its partition hook made nothing
  /// else. Set when the form is first built.
  bool isSameOp = false;
};

/// The local forms of a function's ops on one rank.
class LocalForms {
public:
  LocalForms(MeshOp mesh, int64_t rank) : mesh(mesh), rank(rank) {}

  /// The form of `op`, whose operands are placed as `operands`; null, with an
  /// error, if it has none. Ops must stay unchanged as long as forms are
  /// looked up.
  LocalForm *get(ShardingRuleOpInterface op, ArrayRef<ShardingAttr> operands);
  /// The discardable attributes of the local op. They have no placements,
  /// except that a parameter keeps its sharding and its global type.
  DictionaryAttr getAttrs(Operation *op, const LocalForm &form);

private:
  FailureOr<LocalForm> compute(ShardingRuleOpInterface op,
                               ArrayRef<ShardingAttr> operands) const;

  MeshOp mesh;
  int64_t rank;
  OpClasses classes;
  /// Numbers the forms, by class and placements.
  ListInterner numbers;
  std::deque<LocalForm> forms;
  /// The last answer of getAttrs for each form: the next op mostly has the same
  /// attributes.
  DenseMap<const LocalForm *, std::pair<DictionaryAttr, DictionaryAttr>> attrs;
};

} // namespace mlir::tp

#endif // TP_LIB_TRANSFORMS_LOCALFORMS_H
