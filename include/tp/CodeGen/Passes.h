//===- Passes.h - Code generation passes ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes that lower a per-rank program to an artifact, documented in
// Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef TP_CODEGEN_PASSES_H
#define TP_CODEGEN_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::tp {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "tp/CodeGen/Passes.h.inc"

} // namespace mlir::tp

#endif // TP_CODEGEN_PASSES_H
