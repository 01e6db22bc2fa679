//===- Repetition.h - Parts of a block that repeat --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model repeats its layers. Where each layer takes values of its own and of
// the layer before alone, what holds for one in the middle holds for all.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_SHARDING_PROPAGATION_REPETITION_H
#define TP_LIB_SHARDING_PROPAGATION_REPETITION_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include <optional>
#include <vector>

namespace mlir::tp::propagation {

/// Equally many ops of a block, `count` times one after the other. Ops at the
/// same place of two parts are alike (OpClasses) and placed alike by the IR;
/// their operands are results at the same places of their part and of the one
/// before it, or the same values from before all parts.
struct Repetition {
  size_t begin, period, count;
  /// The block's ops, but for its terminator.
  std::vector<Operation *> ops;

  Operation *getOp(size_t part, size_t place) const {
    return ops[begin + part * period + place];
  }
};

/// The parts that the middle of `block` is made of, if there are `minCount` of
/// them at least. But for the first and the last `margin` ones, their results
/// are used in parts only, and their parameters nowhere else; `isPlain` holds
/// for all their ops.
std::optional<Repetition>
findRepetition(Block &block, size_t minCount, size_t margin,
               function_ref<bool(Operation *)> isPlain);

} // namespace mlir::tp::propagation

#endif // TP_LIB_SHARDING_PROPAGATION_REPETITION_H
