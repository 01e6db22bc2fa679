//===- PlanPrinter.h - A checked plan as text, JSON and Python --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_ADVICE_PRINT_PLANPRINTER_H
#define TP_ADVICE_PRINT_PLANPRINTER_H

#include "tp/Plan/Plan.h"

namespace mlir::tp::plan {

/// Prints the pipeline as a plan has it, with the modules that `split: auto`
/// stands for, and what each stage then has to do. Prints nothing if the plan
/// has no pipeline.
void printPipeline(const CheckedPlan &plan, raw_ostream &os);

/// Prints the pipeline, and every module that the model calls, with its style, the layouts at its
/// boundary, and its parameters with their placements and bytes per rank.
/// docs/Plans.md shows an example.
void printText(const CheckedPlan &plan, ModuleOp model, raw_ostream &os);

/// The same as one JSON object.
void printJson(const CheckedPlan &plan, ModuleOp model, raw_ostream &os);

/// Prints the plan as a Python program for PyTorch: the mesh and one call of
/// parallelize_module per group. Anything that PyTorch can't express becomes a
/// comment.
void printPython(const CheckedPlan &plan, ModuleOp model, raw_ostream &os);

} // namespace mlir::tp::plan

#endif // TP_ADVICE_PRINT_PLANPRINTER_H
