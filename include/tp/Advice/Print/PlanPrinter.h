//===- PlanPrinter.h - a checked plan as text, JSON and Python --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_ADVICE_PRINT_PLANPRINTER_H
#define TP_ADVICE_PRINT_PLANPRINTER_H

#include "tp/Plan/Plan.h"

namespace mlir::tp::plan {

/// Prints every module that the model calls, with the style that the plan gives
/// it, what happens at its boundary, and its parameters with their placements
/// and bytes per rank. docs/Plans.md shows it.
void printText(const CheckedPlan &plan, ModuleOp model, raw_ostream &os);

/// The same as one JSON object.
void printJson(const CheckedPlan &plan, ModuleOp model, raw_ostream &os);

/// The plan as a Python program for PyTorch: the mesh and one call of
/// parallelize_module per group. What PyTorch has no word for is a comment.
void printPython(const CheckedPlan &plan, ModuleOp model, raw_ostream &os);

} // namespace mlir::tp::plan

#endif // TP_ADVICE_PRINT_PLANPRINTER_H
