//===- MathEdges.h - math functions at the edges of f32 ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Handles what MLIR's approximations of f32 functions leave out: denormal
// numbers, and the sign of 0.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_CODEGEN_LOOPS_MATHEDGES_H
#define TP_LIB_CODEGEN_LOOPS_MATHEDGES_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::tp {

/// Replaces each `math.exp` of f32 scalars under `root` by arithmetic that is
/// within 2 units in the last place for all numbers, including denormal
/// results. Surrounds each `math.log` and `math.erf`, which are approximated
/// afterwards, with ops that make the logarithm of denormal numbers right, and
/// erf(-0) equal to -0. Functions of f16 and bf16 become functions of f32
/// first.
void expandMathEdges(Operation *root, RewriterBase &rewriter);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_LOOPS_MATHEDGES_H
