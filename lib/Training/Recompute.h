//===- Recompute.h - activation checkpointing -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRAINING_RECOMPUTE_H
#define TP_LIB_TRAINING_RECOMPUTE_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::tp {

/// `value` as the pass number `pass` over the model reads it (`tp.pass`): no
/// pass takes for it what another one has computed from it.
Value readAgain(OpBuilder &builder, Value value, int64_t pass);

/// Lets the backward pass, number `pass`, of `block`, which begins with op
/// `begin`, compute the forward pass's values of a group again, from what the
/// group reads, instead of keeping them. The forward pass comes after
/// `previous` (getOpsOfPass). `getGroup` tells an op's group; null: its results
/// are kept.
void recompute(Block &block, Operation *previous, Operation *begin,
               int64_t pass,
               llvm::function_ref<const void *(Operation *)> getGroup);

} // namespace mlir::tp

#endif // TP_LIB_TRAINING_RECOMPUTE_H
