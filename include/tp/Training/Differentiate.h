//===- Differentiate.h - Reverse mode on straight-line code -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TRAINING_DIFFERENTIATE_H
#define TP_TRAINING_DIFFERENTIATE_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::tp {

/// The most iterations of a loop that is differentiated; it is unrolled first.
inline constexpr int64_t kMaxIterations = 64;

struct DifferentiateOptions {
  /// Returns the number of the training step, for ops that draw random numbers.
  llvm::function_ref<Value()> getStep;
  int64_t seed = 0;
  /// The first free stream of random numbers; incremented for each one that is
  /// used.
  int64_t *stream;
  /// The last op before the forward pass; null if the pass is the whole block.
  Operation *previous = nullptr;
};

/// The ops of a pass over the model, in order. First come the ops up to
/// `previous` that the pass depends on, which other passes may depend on too,
/// then the ops of `block` between `previous` and `end`. If `previous` is null,
/// these are all ops before `end`.
SmallVector<Operation *> getOpsOfPass(Block &block, Operation *previous,
                                      Operation *end);

/// The result of `differentiate`.
struct Gradients {
  /// The gradient of each requested value; null if the loss doesn't depend on
  /// it.
  DenseMap<Value, Value> of;
  /// The loss; a new value if the op that computed it was replaced.
  Value loss;
  /// The first op of the backward pass.
  Operation *begin = nullptr;
};

/// Appends the backward pass to `block`, before its terminator: the gradients
/// of `loss`, a float scalar of the block, with respect to `values`. Replaces
/// the ops whose GradientOpInterface::buildForward asks for it. Values from
/// outside that an `scf.if` reads have gradients as well. Emits an error if the
/// loss depends on a value through an op without a gradient.
FailureOr<Gradients> differentiate(Block &block, Value loss,
                                   ArrayRef<Value> values,
                                   const DifferentiateOptions &options);

} // namespace mlir::tp

#endif // TP_TRAINING_DIFFERENTIATE_H
