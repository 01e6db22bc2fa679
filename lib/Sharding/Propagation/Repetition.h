//===- Repetition.h - Layers that a block repeats ---------------*- C++ -*-===//
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

/// `count` consecutive layers of a block, each of `period` ops. Ops at the same
/// offset in two layers are alike (OpClasses), and the IR places them alike.
/// Their operands are results at the same offsets in their own and in the
/// previous layer, or the same values from before all layers. Only the first
/// and the last `margin` layers may have other uses.
struct Repetition {
  size_t begin, period, count, margin;
  /// The block's ops except its terminator.
  std::vector<Operation *> ops;

  /// The number of layers between those at either end.
  size_t getNumInMiddle() const { return count - 2 * margin; }
  /// The index of a layer's first op.
  size_t getFirst(size_t layer) const { return begin + layer * period; }
  Operation *getOp(size_t layer, size_t offset) const {
    return ops[getFirst(layer) + offset];
  }
};

/// The layers that make up the middle of `block`, if there are at least
/// `minCount`. `isPlain` holds for all of their ops. Except for the first and
/// last `margin` layers, only layers use their results, and their parameters
/// occur nowhere else.
std::optional<Repetition>
findRepetition(Block &block, size_t minCount, size_t margin,
               function_ref<bool(Operation *)> isPlain);

} // namespace mlir::tp::propagation

#endif // TP_LIB_SHARDING_PROPAGATION_REPETITION_H
