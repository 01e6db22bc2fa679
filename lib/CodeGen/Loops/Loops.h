//===- Loops.h - loops of linalg ops on buffers -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_LOOPS_LOOPS_H
#define TP_LIB_CODEGEN_LOOPS_LOOPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::tp {

/// The loop along which most of what `op` touches is contiguous: it has to be
/// the innermost one. Of equal ones a reduction, then the last. `op` has loops.
unsigned getContiguousLoop(linalg::GenericOp op);

/// The order in which to nest the loops of `op`: parallel ones around
/// reductions, the contiguous one innermost.
SmallVector<unsigned> getLoopOrder(linalg::GenericOp op);

/// What joins two partial values of result `i` of a reduction, if that is one
/// op that may be applied in any order; else null.
Operation *getCombiner(linalg::GenericOp op, unsigned i);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_LOOPS_LOOPS_H
