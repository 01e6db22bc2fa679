//===- Passes.h - the passes of tp-mlir -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TRANSFORMS_PASSES_H
#define TP_TRANSFORMS_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "tp/Analysis/Propagation.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/TP.h"

namespace mlir::tp {

/// How tp-print-plan prints.
enum class PlanFormat { Text, Json, Python };

/// How tp-explain prints.
enum class ExplanationFormat { Text, Json };

#define GEN_PASS_DECL
#include "tp/Transforms/Passes.h.inc"

/// tp-report that appends the JSON to `report` instead of writing a file.
std::unique_ptr<Pass> createReport(std::string &report);

#define GEN_PASS_REGISTRATION
#include "tp/Transforms/Passes.h.inc"

} // namespace mlir::tp

#endif // TP_TRANSFORMS_PASSES_H
