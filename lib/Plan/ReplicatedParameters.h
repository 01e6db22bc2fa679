//===- ReplicatedParameters.h - Large replicated weights --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PLAN_REPLICATEDPARAMETERS_H
#define TP_LIB_PLAN_REPLICATEDPARAMETERS_H

#include "tp/Plan/Plan.h"

namespace mlir::tp::plan {

/// "replicated-parameter": large weights that no entry places.
void checkReplicatedParameters(CheckedPlan &plan, ModuleOp model);

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_REPLICATEDPARAMETERS_H
