//===- ReferenceForms.h - A model written in other ways ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PROOF_REFERENCEFORMS_H
#define TP_LIB_PROOF_REFERENCEFORMS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::tp {

/// `model` with all cross entropies marked as of split classes
/// (`loss_parallel`), which says how a training step computes them and not
/// what. With a training file `train`, the loss that it asks for is one of
/// them. Null where that changes nothing; the training file has errors then, if
/// any.
OwningOpRef<ModuleOp> markSplitLosses(ModuleOp model, StringRef train);

} // namespace mlir::tp

#endif // TP_LIB_PROOF_REFERENCEFORMS_H
