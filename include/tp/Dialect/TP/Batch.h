//===- Batch.h - Batch and sequence dimensions ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Data parallelism splits the batch. An argument with a batch dimension names,
// in `tp.batch`, the mesh dimensions of its `tp.sharding` that split the batch.
// From there, the propagation follows the batch through the program and splits
// each op along it. Context parallelism splits a sequence in the same way
// (`tp.sequence`).
//
//===----------------------------------------------------------------------===//

#ifndef TP_DIALECT_TP_BATCH_H
#define TP_DIALECT_TP_BATCH_H

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::tp {

/// On arguments: the names of one or more mesh dimensions, all of which split
/// the same dimension of the argument.
constexpr StringLiteral kBatchAttr = "tp.batch";
/// The same for the sequence of context parallelism.
constexpr StringLiteral kSequenceAttr = "tp.sequence";

/// Verifies `tp.batch` or `tp.sequence` of argument `index`.
LogicalResult verifyBatch(FunctionOpInterface function, unsigned index,
                          Attribute batch,
                          function_ref<InFlightDiagnostic()> emitError);

/// The dimension of argument `index` that is the batch; nullopt if it has none.
std::optional<int64_t> getBatchDim(FunctionOpInterface function,
                                   unsigned index);
/// The dimension that is the sequence.
std::optional<int64_t> getSequenceDim(FunctionOpInterface function,
                                      unsigned index);

} // namespace mlir::tp

#endif // TP_DIALECT_TP_BATCH_H
