//===- OpClasses.h - Ops that are alike -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_SHARDING_PROPAGATION_OPCLASSES_H
#define TP_SHARDING_PROPAGATION_OPCLASSES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::tp {

/// Numbers ops such that those that differ in nothing but locations,
/// discardable attributes, names of parameters and the values that they use
/// have one number. Ops that have been numbered must live, unchanged, as long
/// as others are.
class OpClasses {
public:
  /// The number of the class of `op`, from 0 on; `isNew` where none was alike.
  unsigned get(Operation *op, bool &isNew) {
    auto [it, inserted] = classes.try_emplace(op, classes.size());
    isNew = inserted;
    return it->second;
  }

  /// Whether both have one number.
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
