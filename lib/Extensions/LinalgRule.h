//===- LinalgRule.h - Sharding rules of structured ops ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_EXTENSIONS_LINALGRULE_H
#define TP_LIB_EXTENSIONS_LINALGRULE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "tp/Interfaces/ShardingRule.h"

namespace mlir::tp {

/// The rule of a structured op, derived from its maps, iterators and body
/// alone. Factor i is loop i.
ShardingRule getLinalgRule(linalg::LinalgOp op);

/// How an op with reduction loops folds them into one of its initial values.
struct Reduction {
  Operation *combiner;
  /// The value in the body that is folded.
  Value folded;
  ReductionKind kind;
};
/// nullopt if it can't be reduced from Partial values.
std::optional<Reduction> matchLinalgReduction(linalg::LinalgOp op,
                                              unsigned init);

/// Whether all elements of `value` are the neutral element of `kind`.
bool isNeutral(Value value, ReductionKind kind);

} // namespace mlir::tp

#endif // TP_LIB_EXTENSIONS_LINALGRULE_H
