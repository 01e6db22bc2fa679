//===- IndependentIterations.h - independent iterations ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_LOOPS_INDEPENDENTITERATIONS_H
#define TP_LIB_CODEGEN_LOOPS_INDEPENDENTITERATIONS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::tp {

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

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_LOOPS_INDEPENDENTITERATIONS_H
