//===- SparseRows.h - Collectives of mostly zero rows -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_SPARSEROWS_H
#define TP_DIALECT_TP_SPARSEROWS_H

#include "mlir/Support/LLVM.h"

namespace mlir::tp {

/// On tp.all_to_all, a unit attribute: many rows of the operand, its elements
/// along the last dimension, are expected to be 0, and needn't move. It doesn't
/// change the result. `bytes` then is a bound.
constexpr StringLiteral kSparseRowsAttr = "tp.sparse_rows";

} // namespace mlir::tp

#endif // TP_DIALECT_TP_SPARSEROWS_H
