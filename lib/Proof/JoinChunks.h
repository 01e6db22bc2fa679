//===- JoinChunks.h - Joining contractions in chunks ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program may compute a contraction in chunks of rows, so that one chunk's
// collective overlaps another chunk's arithmetic. The reference has no chunks
// as values, so they are joined before the matcher starts. Nothing is assumed
// about how the chunks were made: joined in order, their rows must be all the
// rows of the contraction, and the op's rule must say that its rows are
// independent.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PROOF_JOINCHUNKS_H
#define TP_LIB_PROOF_JOINCHUNKS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Dialect/TP/TP.h"

namespace mlir::tp {

/// Joins contractions of gathered chunks, and contractions of chunks whose
/// results are scattered. Returns, for each original collective in program
/// order, the first collective that it was joined with (itself if there is
/// none) and the index of its chunk.
SmallVector<std::pair<unsigned, unsigned>> joinChunks(func::FuncOp program,
                                                      MeshOp mesh);

} // namespace mlir::tp

#endif // TP_LIB_PROOF_JOINCHUNKS_H
