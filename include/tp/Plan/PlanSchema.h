//===- PlanSchema.h - The JSON schema of plans ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_PLAN_PLANSCHEMA_H
#define TP_PLAN_PLANSCHEMA_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/JSON.h"

namespace mlir::tp::plan {

/// The JSON schema of plan files with the styles that `context` has.
llvm::json::Value getPlanSchema(MLIRContext *context);

} // namespace mlir::tp::plan

#endif // TP_PLAN_PLANSCHEMA_H
