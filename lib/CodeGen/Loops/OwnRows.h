//===- OwnRows.h - nests of loops with independent iterations ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_LOOPS_OWNROWS_H
#define TP_LIB_CODEGEN_LOOPS_OWNROWS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::tp {

/// The perfect nest of loops from 0 by 1 to constants that `outermost` begins,
/// as `tp-fuse-rows` makes them; empty where it isn't one.
SmallVector<scf::ForOp> getNest(scf::ForOp outermost);

/// Whether the iterations of `nest` may run at the same time, in any order, if
/// each thread has what `memref.alloca` gives for itself: of a buffer that the
/// nest writes, an iteration touches only the row that its induction variables
/// index, or else, of the stack, what it has written itself.
bool hasOwnRows(ArrayRef<scf::ForOp> nest);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_LOOPS_OWNROWS_H
