//===- Passes.h - Passes that make plans ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_PLANNING_PASSES_H
#define TP_PLANNING_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::tp {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "tp/Planning/Passes.h.inc"

} // namespace mlir::tp

#endif // TP_PLANNING_PASSES_H
