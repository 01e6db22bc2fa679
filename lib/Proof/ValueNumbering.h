//===- ValueNumbering.h - Equal numbers for equal computations --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PROOF_VALUENUMBERING_H
#define TP_LIB_PROOF_VALUENUMBERING_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include <vector>

namespace mlir::tp {

/// The attributes of `op` that define what it computes, without those that
/// record its origin. They include `tp.sharding` if the op declares, by
/// `tp.global_type`, the tensor that its result is a block of.
Attribute getMeaning(Operation *op);

/// Whether `op`, or an op in it, draws random numbers. Two equal draws with
/// equal operands are different values.
bool isDraw(Operation *op);

/// Numbers values by their computation: two values have the same number if
/// equal ops compute them from values with the same numbers. An op's origin
/// (its location, FQN, reason) doesn't matter.
class ValueNumbering {
public:
  using Number = unsigned;

  /// The number of an input that `name` identifies.
  Number getSource(Attribute name, Type type);

  /// The number of the first result of `op`; the others' numbers follow it.
  /// `operands` has the numbers of the operands, then those of captured values,
  /// in the order of `getCaptured`. `types` replaces the types of the results.
  /// An op with regions must not be erased later. `draw` distinguishes equal
  /// draws.
  Number get(Operation *op, ArrayRef<Number> operands, TypeRange types,
             unsigned draw = 0);
  Number get(Operation *op, ArrayRef<Number> operands, unsigned draw = 0) {
    return get(op, operands, op->getResultTypes(), draw);
  }

  /// The values defined outside that the regions of `op` use, each once.
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
  /// No value has the number 0.
  Number next = 1;
};

} // namespace mlir::tp

#endif // TP_LIB_PROOF_VALUENUMBERING_H
