//===- BalanceStages.h - Stages of equal predicted time ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pipeline is as fast as its slowest stage. With `split: auto`, the model is
// cut between its blocks, the modules of its outermost lists, such that the
// slowest stage takes the least time that any cut gives. The time of a block is
// that of its forward pass, as predicted for the global shapes: gradients and
// tensor parallelism multiply the times of equal blocks alike.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PLAN_BALANCESTAGES_H
#define TP_LIB_PLAN_BALANCESTAGES_H

#include "Stages.h"
#include <optional>

namespace mlir::tp::plan {

/// The index of the first of `loads` in each of `numGroups` groups after the
/// first, none of them empty, such that no group has more than `maxBytes` and
/// the largest time of a group is the least possible. Among these, groups are as
/// equal as possible: the sum of the squares of their times is the least.
/// Nullopt if no groups are so small. Times between 1 and 4, 2 groups:
///
///   1 2 3 | 4   and not   1 2 | 3 4
std::optional<SmallVector<size_t>> balance(ArrayRef<StageLoad> loads,
                                           size_t numGroups, int64_t maxBytes);

/// Adds the modules that begin the stages to the file's list and to
/// `plan.stages`. Emits an error at `split` if the model has no blocks, or fewer
/// than stages, and if the parameters of a stage can't fit into the memory of
/// the machine that the plan names.
LogicalResult balanceStages(ModuleOp model, const ModuleCalls &modules,
                            CheckedPlan &plan);

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_BALANCESTAGES_H
