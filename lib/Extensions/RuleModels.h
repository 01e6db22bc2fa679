//===- RuleModels.h - Base of external models -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_EXTENSIONS_RULEMODELS_H
#define TP_LIB_EXTENSIONS_RULEMODELS_H

#include "mlir/IR/MLIRContext.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"

namespace mlir::tp {

/// The model of an op that is only known to run alike on every rank.
template <typename OpT>
struct ReplicatedModel
    : ShardingRuleOpInterface::ExternalModel<ReplicatedModel<OpT>, OpT> {
  ShardingRule getShardingRule(Operation *op) const {
    return ShardingRule::replicated(op);
  }
};

/// Attaches the models of `OpTs`.
template <template <typename> typename Model, typename... OpTs>
void attachModels(MLIRContext *context) {
  (OpTs::template attachInterface<Model<OpTs>>(*context), ...);
}

/// Attaches the models of those of `OpTs` that have the trait.
template <template <typename> typename Model,
          template <typename> typename TraitT, typename... OpTs>
void attachModelsByTrait(MLIRContext *context) {
  auto attach = [&]<typename OpT>() {
    if constexpr (OpT::template hasTrait<TraitT>())
      OpT::template attachInterface<Model<OpT>>(*context);
  };
  (attach.template operator()<OpTs>(), ...);
}

/// The rule of a concatenation along dimension `along`: the operands are
/// windows, side by side, on the result's dimension.
ShardingRule getConcatRule(Operation *op, unsigned along);

/// Whether sums make sense for the first result; for booleans they don't.
bool hasSums(Operation *op);

/// The kind of Partial that `combiner` reduces, an op of two operands that
/// folds one element after the other into an accumulator; nullopt if there is
/// no such kind.
std::optional<ReductionKind> getReductionKind(Operation *combiner);

} // namespace mlir::tp

#endif // TP_LIB_EXTENSIONS_RULEMODELS_H
