//===- ControlFlow.h - what is differentiated, without loops ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRAINING_CONTROLFLOW_H
#define TP_LIB_TRAINING_CONTROLFLOW_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::tp {

/// Moves the parameters in the branches and loops of `function` to its start,
/// and unrolls each loop with constant bounds and at most kMaxIterations
/// iterations. If `hasComputeType`, emits an error at ops with regions other
/// than branches, because their types can't be changed.
LogicalResult prepareControlFlow(func::FuncOp function, bool hasComputeType);

} // namespace mlir::tp

#endif // TP_LIB_TRAINING_CONTROLFLOW_H
