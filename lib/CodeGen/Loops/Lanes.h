//===- Lanes.h - reductions in an order of their own ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_LOOPS_LANES_H
#define TP_LIB_CODEGEN_LOOPS_LANES_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::tp {

/// Splits `loop` into lanes. The loop runs from 0 in steps of 1, and reduces
/// into one element of each of the buffers `results` by ops that may be applied
/// in any order. Short loops, and loops of other forms, stay.
void splitIntoLanes(RewriterBase &rewriter, scf::ForOp loop,
                    ValueRange results);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_LOOPS_LANES_H
