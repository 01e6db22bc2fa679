//===- Passes.h - Passes that prove -----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes that verify the output of the others, documented in Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef TP_PROOF_PASSES_H
#define TP_PROOF_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::tp {

#define GEN_PASS_DECL
#include "tp/Proof/Passes.h.inc"

/// Registers `--accept-tested`, which sets that option for every tp-verify-spmd
/// pass. Tools call this before they parse their command line.
void registerProofCLOptions();

#define GEN_PASS_REGISTRATION
#include "tp/Proof/Passes.h.inc"

} // namespace mlir::tp

#endif // TP_PROOF_PASSES_H
