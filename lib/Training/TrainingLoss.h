//===- TrainingLoss.h - the loss of a training step -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRAINING_TRAININGLOSS_H
#define TP_LIB_TRAINING_TRAININGLOSS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Training/TrainingFile.h"

namespace mlir::tp {

/// The index of the result that is marked as the loss; none if there is no such
/// result.
std::optional<unsigned> findLoss(func::FuncOp function);

/// The argument that was added for the loss; null if there is none.
BlockArgument findTarget(func::FuncOp function);

/// Makes the loss of `config` a result of `function`, besides the model's own
/// results, and marks it. Cross entropy and mse add the argument 'target'.
/// Emits an error if the loss doesn't fit the model's results.
LogicalResult addLoss(func::FuncOp function, const LossConfig &config);

} // namespace mlir::tp

#endif // TP_LIB_TRAINING_TRAININGLOSS_H
