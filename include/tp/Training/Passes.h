//===- Passes.h - Passes for training ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes that turn a model into a training program, documented in
// Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef TP_TRAINING_PASSES_H
#define TP_TRAINING_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::tp {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "tp/Training/Passes.h.inc"

/// The gradients of tp ops.
void registerGradientModels(DialectRegistry &registry);

} // namespace mlir::tp

#endif // TP_TRAINING_PASSES_H
