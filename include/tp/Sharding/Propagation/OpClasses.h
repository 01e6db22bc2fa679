//===- OpClasses.h - Ops that are alike -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_SHARDING_PROPAGATION_OPCLASSES_H
#define TP_SHARDING_PROPAGATION_OPCLASSES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::tp {

/// Gives ops the same number if they differ only in locations, discardable
/// attributes, names of parameters and the values that they use. Numbered ops
/// must stay alive and unchanged as long as other ops are numbered.
class OpClasses {
public:
  /// The number of `op`'s class, from 0 on; sets `isNew` if no earlier op was
  /// alike.
  unsigned get(Operation *op, bool &isNew) {
    auto [it, inserted] = classes.try_emplace(op, classes.size());
    isNew = inserted;
    return it->second;
  }

  /// Whether both have the same number.
  static bool areAlike(Operation *a, Operation *b) {
    return Alike::isEqual(a, b);
  }

private:
  struct Alike : llvm::DenseMapInfo<Operation *> {
    static unsigned getHashValue(Operation *op);
    static bool isEqual(Operation *a, Operation *b);
  };
  llvm::DenseMap<Operation *, unsigned, Alike> classes;
};

} // namespace mlir::tp

#endif // TP_SHARDING_PROPAGATION_OPCLASSES_H
