//===- PlanWriter.h - A checked plan, written into the IR -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRANSFORMS_PLANWRITER_H
#define TP_LIB_TRANSFORMS_PLANWRITER_H

#include "mlir/IR/BuiltinOps.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Plan/Plan.h"

namespace mlir::tp {

struct WrittenPlan {
  /// Parameters that were placed, and redistributions that were inserted.
  unsigned parameters = 0, redistributions = 0;
};

/// Annotates `model`, which `plan` was checked against, as tp-apply-plan does.
/// Fails with an error if experts have a form that can't be divided.
FailureOr<WrittenPlan> writePlan(const plan::CheckedPlan &plan, ModuleOp model);

} // namespace mlir::tp

#endif // TP_LIB_TRANSFORMS_PLANWRITER_H
