//===- BatchInputs.h - Inputs that have the batch ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PLAN_BATCHINPUTS_H
#define TP_LIB_PLAN_BATCHINPUTS_H

#include "tp/Plan/Plan.h"

namespace mlir::tp::plan {

/// Finds the dimension of each input that data parallelism splits. The plan may
/// name it; the default is dimension 0 of the first tensor and of all others
/// whose dimension 0 has the same size. Emits an error at the plan's line and
/// column for each problem.
LogicalResult findBatch(ModuleOp model, CheckedPlan &plan);

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_BATCHINPUTS_H
