//===- TrainingLoss.h - the loss of a training step -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRAINING_TRAININGLOSS_H
#define TP_LIB_TRAINING_TRAININGLOSS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Training/TrainingFile.h"

namespace mlir::tp {

/// The index of the result that is marked as the loss; nothing without one.
std::optional<unsigned> findLoss(func::FuncOp function);

/// The argument that a loss was given; null without one.
BlockArgument findTarget(func::FuncOp function);

/// Makes `config` a result of `function`, of which the model's own results are
/// left, and marks it; cross entropy and mse add the argument 'target'. Emits
/// an error where the loss doesn't fit the model's results.
LogicalResult addLoss(func::FuncOp function, const LossConfig &config);

} // namespace mlir::tp

#endif // TP_LIB_TRAINING_TRAININGLOSS_H
