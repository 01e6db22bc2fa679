//===- Traced.h - modules that have lost their signature --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_NN_TRACED_H
#define TP_DIALECT_NN_TRACED_H

#include "tp/Dialect/NN/NN.h"

namespace mlir::nn {

/// A unit attribute of an nn.module with several inputs: names and positions
/// are those of a trace, not those of forward's arguments.
constexpr llvm::StringLiteral kTracedAttr = "nn.traced";

} // namespace mlir::nn

#endif // TP_DIALECT_NN_TRACED_H
