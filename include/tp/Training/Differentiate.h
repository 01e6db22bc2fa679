//===- Differentiate.h - reverse mode on straight-line code -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TRAINING_DIFFERENTIATE_H
#define TP_TRAINING_DIFFERENTIATE_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::tp {

/// The longest loop that is differentiated, after it has been unrolled.
inline constexpr int64_t kMaxIterations = 64;

struct DifferentiateOptions {
  /// Gives the number of the training step, for ops that draw random numbers.
  llvm::function_ref<Value()> getStep;
  int64_t seed = 0;
  /// The first stream of random numbers that is free; counted on.
  int64_t *stream;
  /// The last op before the forward pass; null where that is the whole block.
  Operation *previous = nullptr;
};

/// The ops of a pass over the model, in order: those of `block` between
/// `previous` and `end`, after what they read of the ops before `previous`,
/// which other passes may read too. All ops before `end` where `previous` is
/// null.
SmallVector<Operation *> getOpsOfPass(Block &block, Operation *previous,
                                      Operation *end);

/// What Differentiate has made.
struct Gradients {
  /// By value asked for; null where the loss doesn't depend on it.
  DenseMap<Value, Value> of;
  /// The loss, where the op that gave it has been replaced by others.
  Value loss;
  /// The first op of the backward pass.
  Operation *begin = nullptr;
};

/// Appends the backward pass to `block`, before its terminator: the gradients
/// of `loss`, a float scalar of the block, with respect to `values`. Ops that
/// say so (GradientOpInterface::buildForward) are replaced. What `scf.if` reads
/// from outside has a gradient as well. Emits an error where the loss depends
/// on a value through an op without a gradient.
FailureOr<Gradients> differentiate(Block &block, Value loss,
                                   ArrayRef<Value> values,
                                   const DifferentiateOptions &options);

} // namespace mlir::tp

#endif // TP_TRAINING_DIFFERENTIATE_H
