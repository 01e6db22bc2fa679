//===- Repetition.h - Parts of a block that repeat --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model repeats its layers. If each layer takes only its own values and those
// of the previous layer, the decisions for a layer in the middle hold for all.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_SHARDING_PROPAGATION_REPETITION_H
#define TP_LIB_SHARDING_PROPAGATION_REPETITION_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include <optional>
#include <vector>

namespace mlir::tp::propagation {

/// `count` consecutive parts of a block, each of `period` ops. Ops at the same
/// place of two parts are alike (OpClasses), and the IR places them alike.
/// Their operands are results at the same places of their own and of the
/// previous part, or the same values from before all parts. The first and the
/// last `margin` parts may have other uses than the parts in the middle.
struct Repetition {
  size_t begin, period, count, margin;
  /// The block's ops except its terminator.
  std::vector<Operation *> ops;

  size_t getNumInMiddle() const { return count - 2 * margin; }
  /// The index of the first op of a part.
  size_t getFirst(size_t part) const { return begin + part * period; }
  Operation *getOp(size_t part, size_t place) const {
    return ops[getFirst(part) + place];
  }
};

/// The parts that make up the middle of `block`, if there are at least
/// `minCount`. `isPlain` holds for all of their ops. Except for the first and
/// last `margin` parts, only parts use their results, and their parameters
/// occur nowhere else.
std::optional<Repetition>
findRepetition(Block &block, size_t minCount, size_t margin,
               function_ref<bool(Operation *)> isPlain);

} // namespace mlir::tp::propagation

#endif // TP_LIB_SHARDING_PROPAGATION_REPETITION_H
