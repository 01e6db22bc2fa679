//===- BatchInputs.h - Inputs with the batch or the sequence ----*- C++ -*-===//
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

/// Finds the dimension of each input that context parallelism splits, and checks
/// that the sequence and the attentions over it can be split. The plan may name
/// the dimension; the default is dimension 1 of the first tensor that has two or
/// more dimensions, and of all others with the same size there, and with the
/// same size or 1 in dimension 0. Emits an error at the plan's line and column
/// for each problem.
LogicalResult findSequence(ModuleOp model, CheckedPlan &plan);

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_BATCHINPUTS_H
