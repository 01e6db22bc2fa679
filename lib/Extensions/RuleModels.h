//===- RuleModels.h - what external models have in common -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_EXTENSIONS_RULEMODELS_H
#define TP_LIB_EXTENSIONS_RULEMODELS_H

#include "tp/Interfaces/ShardingRuleOpInterface.h"

namespace mlir::tp {

/// An op for which nothing is known but that it may run on every rank alike.
template <typename OpT>
struct ReplicatedModel
    : ShardingRuleOpInterface::ExternalModel<ReplicatedModel<OpT>, OpT> {
  ShardingRule getShardingRule(Operation *op) const {
    return ShardingRule::replicated(op);
  }
};

/// The rule of a concatenation along dimension `along`: the operands are
/// windows, side by side, on the result's dimension.
ShardingRule getConcatRule(Operation *op, unsigned along);

/// Whether sums make sense for the first result: booleans have none.
bool hasSums(Operation *op);

/// The Partial that is put together by `combiner`, an op of two operands that
/// folds one element after the other into an accumulator; nullopt where no
/// Partial is.
std::optional<ReductionKind> getReductionKind(Operation *combiner);

} // namespace mlir::tp

#endif // TP_LIB_EXTENSIONS_RULEMODELS_H
