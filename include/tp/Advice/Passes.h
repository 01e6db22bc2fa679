//===- Passes.h - Passes that explain and report ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_ADVICE_PASSES_H
#define TP_ADVICE_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Sharding/Propagation/Propagation.h"

namespace mlir::tp {

/// How tp-print-plan prints.
enum class PlanFormat { Text, Json, Python };

/// How tp-explain prints.
enum class ExplanationFormat { Text, Json };

#define GEN_PASS_DECL
#include "tp/Advice/Passes.h.inc"

/// Creates a tp-report that appends its JSON to `report` instead of writing a
/// file. With a `machine`, it has the prediction too.
std::unique_ptr<Pass> createReport(std::string &report, StringRef machine = "");

/// Whether `pass` prints an answer for the user, as tp-explain does. If a tool
/// runs only such passes, it prints no IR unless asked to.
bool printsAnswer(const Pass &pass);

#define GEN_PASS_REGISTRATION
#include "tp/Advice/Passes.h.inc"

} // namespace mlir::tp

#endif // TP_ADVICE_PASSES_H
