//===- Stages.h - The stages of a plan's pipeline ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PLAN_STAGES_H
#define TP_LIB_PLAN_STAGES_H

#include "tp/Plan/Pattern.h"
#include "tp/Plan/Plan.h"

namespace mlir::tp::plan {

/// The calls of each module, in the order of the model.
using ModuleCalls =
    llvm::MapVector<StringAttr, SmallVector<ModuleOpInterface, 1>>;

/// Finds the first call of each module that begins a stage of the plan's
/// pipeline: the modules that the file lists, or with `split: auto` those that
/// balance the stages, which are also added to the file's list. Emits an error
/// at each module at which no stage can begin. Without a pipeline, there are no
/// stages.
LogicalResult findStages(ModuleOp model, const ModuleCalls &modules,
                         const ModuleTree &tree, CheckedPlan &plan);

/// Whether every run of the entry point runs `module` once.
bool isOnEveryPath(Operation *module);

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_STAGES_H
