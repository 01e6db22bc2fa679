//===- Lint.h - what may be wrong with a plan -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_ADVICE_LINT_LINT_H
#define TP_ADVICE_LINT_LINT_H

#include "tp/Plan/Plan.h"

namespace mlir::tp::plan {

/// Adds to `plan.findings` what follows from how values flow through the model,
/// on which nothing of the plan has been written yet. Fails, with an error at
/// its place in the plan, where the plan asks for what can't be.
LogicalResult lintPlan(CheckedPlan &plan, ModuleOp model);

} // namespace mlir::tp::plan

#endif // TP_ADVICE_LINT_LINT_H
