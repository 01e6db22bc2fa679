//===- ExposeAssignments.h - Training steps as functions --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PROOF_EXPOSEASSIGNMENTS_H
#define TP_LIB_PROOF_EXPOSEASSIGNMENTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::tp {

/// What a function assigns to, and its value before the first run; null where
/// none is given.
struct Assignment {
  StringAttr fqn;
  FloatAttr init;
};

/// Makes what `function` assigns to parameters results of it, in the order of
/// their FQNs, placed as the parameters are, and returns the assignments. What
/// is computed again is what was computed before. A function that assigns
/// nothing stays as it is.
SmallVector<Assignment> exposeAssignments(func::FuncOp function);

} // namespace mlir::tp

#endif // TP_LIB_PROOF_EXPOSEASSIGNMENTS_H
