//===- LinalgRule.h - sharding rules of structured ops ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_EXTENSIONS_LINALGRULE_H
#define TP_LIB_EXTENSIONS_LINALGRULE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "tp/Interfaces/ShardingRule.h"

namespace mlir::tp {

/// The rule of a structured op, by its maps, iterators and body alone: factor i
/// is loop i.
ShardingRule getLinalgRule(linalg::LinalgOp op);

/// How an op with reduction loops folds them into one of its initial values.
struct Reduction {
  Operation *combiner;
  /// What is folded, a value in the body.
  Value folded;
  ReductionKind kind;
};
/// nullopt where no Partial can be put together.
std::optional<Reduction> matchLinalgReduction(linalg::LinalgOp op,
                                              unsigned init);

/// Whether all elements of `value` are the neutral element of `kind`.
bool isNeutral(Value value, ReductionKind kind);

} // namespace mlir::tp

#endif // TP_LIB_EXTENSIONS_LINALGRULE_H
