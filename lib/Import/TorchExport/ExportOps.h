//===- ExportOps.h - the ops of an exported program -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_TORCHEXPORT_EXPORTOPS_H
#define TP_LIB_IMPORT_TORCHEXPORT_EXPORTOPS_H

#include "ExportedProgram.h"
#include "Import/Aten/TorchOps.h"

namespace mlir::tp {

/// The op of a step. If PyTorch doesn't know it, the result has no `execute`.
/// `inputs` are those of `step`, and become those of the op's schema: in its
/// order, with defaults, and of its types. Throws an ExportError if they don't
/// fit the schema.
TorchOp findOp(const ExportStep &step, std::vector<c10::IValue> &inputs);

/// The name, schema and place of the op of a step, without `execute`.
TorchOp nameOp(const ExportStep &step);

/// Whether the step only checks: what torch.export has seen, which the importer
/// checks of the inputs, or the values of tensors, which a compiled program
/// doesn't check.
bool isAssertion(const ExportStep &step);

/// Whether the step is the alias of an argument, which tp_trace.py adds.
bool isAlias(const ExportStep &step);

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_TORCHEXPORT_EXPORTOPS_H
