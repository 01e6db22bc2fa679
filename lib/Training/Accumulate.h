//===- Accumulate.h - gradient accumulation ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRAINING_ACCUMULATE_H
#define TP_LIB_TRAINING_ACCUMULATE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::tp {

/// Makes the only block of `function`, which computes `loss` for one batch,
/// compute it for `numBatches`. The example dimension of each argument that has
/// one grows by this factor, and each batch takes its part of it. Each rank
/// takes its own next examples, so none of them moves. `visit` is called for
/// each batch when the ops that compute its loss end the block. It gets the
/// loss and the last op before these ops (null for the first batch). Emits an
/// error at `loc` if the ranks have different numbers of examples.
LogicalResult forEachBatch(
    func::FuncOp function, Value loss, int64_t numBatches, Location loc,
    llvm::function_ref<LogicalResult(Value loss, Operation *previous)> visit);

} // namespace mlir::tp

#endif // TP_LIB_TRAINING_ACCUMULATE_H
