//===- ReferenceForms.h - A model written in other ways ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PROOF_REFERENCEFORMS_H
#define TP_LIB_PROOF_REFERENCEFORMS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::tp {

/// A copy of `model` with all cross entropies marked as of split classes
/// (`loss_parallel`). The mark changes how a training step computes them, but
/// not their value. With a training file `train`, this includes the loss that
/// the file asks for. Null if nothing changes or the training file has errors.
OwningOpRef<ModuleOp> markSplitLosses(ModuleOp model, StringRef train);

} // namespace mlir::tp

#endif // TP_LIB_PROOF_REFERENCEFORMS_H
