//===- Batch.h - Where a program's examples are -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Data parallelism splits the batch: an argument that has it says in `tp.batch`
// which of the mesh dimensions in its `tp.sharding` do. From there the
// propagation follows the batch through the program, and splits each op along
// it.
//
//===----------------------------------------------------------------------===//

#ifndef TP_DIALECT_TP_BATCH_H
#define TP_DIALECT_TP_BATCH_H

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::tp {

/// On arguments: names of mesh dimensions, one at least, all of which split one
/// dimension of the argument.
constexpr StringLiteral kBatchAttr = "tp.batch";

/// Verifies `tp.batch` of argument `index`.
LogicalResult verifyBatch(FunctionOpInterface function, unsigned index,
                          Attribute batch,
                          function_ref<InFlightDiagnostic()> emitError);

/// The dimension of argument `index` that is the batch; nothing where it has
/// none.
std::optional<int64_t> getBatchDim(FunctionOpInterface function,
                                   unsigned index);

} // namespace mlir::tp

#endif // TP_DIALECT_TP_BATCH_H
