//===- Accumulate.h - gradient accumulation ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRAINING_ACCUMULATE_H
#define TP_LIB_TRAINING_ACCUMULATE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::tp {

/// Makes the one block of `function`, which computes `loss` of one batch,
/// compute that of `numBatches`: dimension 0 of each argument becomes as many
/// times as large, of which each batch takes its part; each rank gives its next
/// examples, so that none of them moves. `visit` is called for each batch, with
/// its loss, when the block ends with what computes it, and the last op before
/// that (null for the first batch). Emits an error at `loc` where the ranks'
/// examples aren't as many.
LogicalResult forEachBatch(
    func::FuncOp function, Value loss, int64_t numBatches, Location loc,
    llvm::function_ref<LogicalResult(Value loss, Operation *previous)> visit);

} // namespace mlir::tp

#endif // TP_LIB_TRAINING_ACCUMULATE_H
