//===- LookupLowering.h - Reads at run-time indices -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_NNTOLINALG_LOOKUPLOWERING_H
#define TP_LIB_CODEGEN_NNTOLINALG_LOOKUPLOWERING_H

#include "LinalgBuilders.h"

#include <optional>

namespace mlir::tp::nnlinalg {

/// The name of the function's input that the integers `indices` are computed
/// from; null if it isn't known, or if there are several.
StringAttr getInputName(Value indices);

/// Builds a check that ends the program at an index that is neither in [0,
/// bound) nor `ignored`; its message names `op` and its module.
void buildIndexCheck(ImplicitLocOpBuilder &b, Operation *op, Value indices,
                     int64_t bound,
                     std::optional<int64_t> ignored = std::nullopt);

/// Looks `table` up along `dim`: loops over `type`'s shape read the index
/// through its map; the other coordinates are the loops `loops`, one for each
/// dimension of the table (that of `dim` is not used).
Value buildLookup(ImplicitLocOpBuilder &b, RankedTensorType type, Value table,
                  int64_t dim, Operand index, ArrayRef<int64_t> loops);

/// In a scalar body: `index` as type index, or 0 if it is not in [0, bound).
Value buildSafeIndex(ImplicitLocOpBuilder &b, Value index, int64_t bound);

} // namespace mlir::tp::nnlinalg

#endif // TP_LIB_CODEGEN_NNTOLINALG_LOOKUPLOWERING_H
