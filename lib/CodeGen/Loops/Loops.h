//===- Loops.h - Loops of linalg ops on buffers -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_LOOPS_LOOPS_H
#define TP_LIB_CODEGEN_LOOPS_LOOPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

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

/// The perfect nest of loops that starts with `outermost`, as `tp-fuse-rows`
/// builds it: loops from 0 to constants in steps of 1. Empty if it isn't such a
/// nest.
SmallVector<scf::ForOp> getNest(scf::ForOp outermost);

/// Whether the iterations of `nest` may run at the same time, in any order, if
/// each thread has its own `memref.alloca` buffers. In a buffer that the nest
/// writes, an iteration must touch only the row that its induction variables
/// index. A buffer on the stack may also be one that each iteration writes
/// before it reads it.
bool hasIndependentIterations(ArrayRef<scf::ForOp> nest);

/// Splits `loop` into lanes. The loop runs from 0 in steps of 1, and reduces
/// into one element of each of the buffers `results` by ops that may be applied
/// in any order. Short loops, and loops of other forms, stay.
void splitIntoLanes(RewriterBase &rewriter, scf::ForOp loop,
                    ValueRange results);

/// Whether the loops of `op` visit each element of `operand` once. Loops that
/// run once and dimensions of size 1 don't matter.
bool visitsEachOnce(linalg::LinalgOp op, OpOperand &operand);

/// Whether `op` computes C[…] += A[…] * B[…], with one element type and indexed
/// by whole dimensions. At least one input must lack a dimension of the output,
/// so that its elements are used more than once.
bool isContraction(linalg::GenericOp op);

/// Makes `op`, a contraction of buffers of f16 or bf16 that stays a loop, add
/// up in a buffer of f32 and round once, as tprt.gemm does. Other contractions
/// stay as they are.
void widenContraction(linalg::GenericOp op);

/// Whether `op` yields its one input: a copy, transpose or broadcast.
bool isDataMovement(linalg::GenericOp op);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_LOOPS_LOOPS_H
