//===- Lint.h - Likely mistakes in a plan -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_ADVICE_LINT_LINT_H
#define TP_ADVICE_LINT_LINT_H

#include "tp/Plan/Plan.h"

namespace mlir::tp::plan {

/// Adds to `plan.findings` the findings that depend on how values flow through
/// the model. The plan must not have been applied to `model` yet. Fails, with
/// an error at its location in the plan, if the plan asks for something
/// impossible.
LogicalResult lintPlan(CheckedPlan &plan, ModuleOp model);

} // namespace mlir::tp::plan

#endif // TP_ADVICE_LINT_LINT_H
