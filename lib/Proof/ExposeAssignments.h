//===- ExposeAssignments.h - Training steps as functions --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PROOF_EXPOSEASSIGNMENTS_H
#define TP_LIB_PROOF_EXPOSEASSIGNMENTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::tp {

/// A parameter that a function assigns, and its value before the first run;
/// null if none is given.
struct Assignment {
  StringAttr fqn;
  FloatAttr init;
};

/// Turns the values that `function` assigns to parameters into results, in the
/// order of their FQNs and placed as the parameters are, and returns the
/// assignments. Also replaces each `nn.recompute` by its operand. A function
/// that assigns nothing gets no results.
SmallVector<Assignment> exposeAssignments(func::FuncOp function);

} // namespace mlir::tp

#endif // TP_LIB_PROOF_EXPOSEASSIGNMENTS_H
