//===- Recompute.h - activation checkpointing -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRAINING_RECOMPUTE_H
#define TP_LIB_TRAINING_RECOMPUTE_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::tp {

/// `value` as read by pass number `pass` over the model (`tp.pass`). No other
/// pass shares what a pass computes from it.
Value readAgain(OpBuilder &builder, Value value, int64_t pass);

/// Lets the backward pass of `block`, which has number `pass` and starts with
/// op `begin`, compute the forward pass's values of a group again from the
/// group's inputs, instead of keeping them. The forward pass comes after
/// `previous` (getOpsOfPass). `getGroup` returns an op's group, or null if the
/// op's results are kept.
void recompute(Block &block, Operation *previous, Operation *begin,
               int64_t pass,
               llvm::function_ref<const void *(Operation *)> getGroup);

} // namespace mlir::tp

#endif // TP_LIB_TRAINING_RECOMPUTE_H
