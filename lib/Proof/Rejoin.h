//===- Rejoin.h - Contractions in chunks, whole again -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A contraction may be done in chunks of its rows, so that one chunk's
// collective runs beside another one's arithmetic. No value of the reference is
// a chunk; so before the matcher starts, chunks are put together. Nothing is
// assumed about who cut them: the rows of all chunks must be those of the
// whole, in the order in which they are put together, and the op's rule must
// say that its rows don't depend on one another.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PROOF_REJOIN_H
#define TP_LIB_PROOF_REJOIN_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Dialect/TP/TP.h"

namespace mlir::tp {

/// Replaces contractions of gathered chunks, and those whose results are
/// scattered, by whole ones. Returns, for each collective that the program had,
/// in its order, the first one that it was put together with (itself, if none),
/// and which chunk it was.
SmallVector<std::pair<unsigned, unsigned>> rejoin(func::FuncOp program,
                                                  MeshOp mesh);

} // namespace mlir::tp

#endif // TP_LIB_PROOF_REJOIN_H
