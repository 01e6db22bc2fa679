//===- Traced.h - Modules that have lost their signature --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_NN_TRACED_H
#define TP_DIALECT_NN_TRACED_H

#include "tp/Dialect/NN/NN.h"

namespace mlir::nn {

/// A unit attribute of an nn.module with several inputs: its names and
/// positions come from a trace and aren't those of forward's arguments.
constexpr llvm::StringLiteral kTracedAttr = "nn.traced";

} // namespace mlir::nn

#endif // TP_DIALECT_NN_TRACED_H
