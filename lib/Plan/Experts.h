//===- Experts.h - Experts that a plan splits -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PLAN_EXPERTS_H
#define TP_LIB_PLAN_EXPERTS_H

#include "tp/Plan/Plan.h"

namespace mlir::tp::plan {

/// Finds the parameters of experts (CheckedPlan::expertParameters), and checks
/// that the mesh dimension of `expert_parallel` divides the experts, and that it
/// and all others that split the tokens divide these.
/// Emits an error at the plan's line and column for each problem.
LogicalResult checkExperts(ModuleOp model, CheckedPlan &plan);

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_EXPERTS_H
