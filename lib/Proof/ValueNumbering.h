//===- ValueNumbering.h - Equal computations get equal numbers --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PROOF_VALUENUMBERING_H
#define TP_LIB_PROOF_VALUENUMBERING_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include <vector>

namespace mlir::tp {

/// What `op` does, without who asked for it: its attributes but for provenance.
/// Of an op that names what it is a block of, `tp.sharding` is part of it.
Attribute getMeaning(Operation *op);

/// Whether `op`, or an op in it, draws random numbers: two that are equal, and
/// have equal operands, are two values.
bool isDraw(Operation *op);

/// Names a value by what it is computed from: two values that the same ops
/// compute from values of the same numbers have one number. Where an op came
/// from (its location, FQN, reason) isn't part of it.
class ValueNumbering {
public:
  using Number = unsigned;

  /// The number of an input that `name` identifies.
  Number getSource(Attribute name, Type type);

  /// The number of the first of `op`'s results, those of the others follow.
  /// `operands` has the numbers of the operands, then those of the values from
  /// above that its regions use, in the order of `getCaptured`. The results are
  /// taken to have the types `types`. An op with regions must live on. Of equal
  /// draws `draw` tells one from another.
  Number get(Operation *op, ArrayRef<Number> operands, TypeRange types,
             unsigned draw = 0);
  Number get(Operation *op, ArrayRef<Number> operands, unsigned draw = 0) {
    return get(op, operands, op->getResultTypes(), draw);
  }

  /// Values from above that the regions of `op` use, each once.
  static SmallVector<Value> getCaptured(Operation *op);

private:
  struct Entry {
    Attribute name; // a source's, or what an op does
    std::optional<OperationName> op;
    SmallVector<Number, 4> operands;
    SmallVector<Type, 1> types;
    Operation *regions = nullptr;
    unsigned draw = 0;
    Number first = 0;
  };
  Number intern(Entry entry, unsigned numResults);

  std::vector<Entry> entries;
  DenseMap<size_t, SmallVector<unsigned, 1>> byHash;
  /// 0 is the number of nothing.
  Number next = 1;
};

} // namespace mlir::tp

#endif // TP_LIB_PROOF_VALUENUMBERING_H
