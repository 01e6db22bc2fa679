//===- FsdpGroups.h - Parameters that FSDP moves together -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PLAN_FSDPGROUPS_H
#define TP_LIB_PLAN_FSDPGROUPS_H

#include "tp/Plan/Plan.h"

namespace mlir::tp::plan {

/// Finds the group of each parameter: the innermost module that contains it
/// among those that the plan names, or else among the model's blocks; otherwise
/// the root. Emits an error at the plan's line and column for each pattern that
/// matches no module.
LogicalResult findFsdpGroups(ModuleOp model, CheckedPlan &plan);

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_FSDPGROUPS_H
