//===- Loops.h - loops of linalg ops on buffers -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_LOOPS_LOOPS_H
#define TP_LIB_CODEGEN_LOOPS_LOOPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::tp {

/// The loop along which most of the elements that `op` touches are contiguous;
/// it has to be the innermost one. In a tie a reduction wins, then the last
/// loop. `op` must have loops.
unsigned getContiguousLoop(linalg::GenericOp op);

/// The order in which to nest the loops of `op`: parallel ones around
/// reductions, the contiguous one innermost.
SmallVector<unsigned> getLoopOrder(linalg::GenericOp op);

/// The op that joins two partial values of result `i` of a reduction, if it is
/// a single op that may be applied in any order; else null.
Operation *getCombiner(linalg::GenericOp op, unsigned i);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_LOOPS_LOOPS_H
