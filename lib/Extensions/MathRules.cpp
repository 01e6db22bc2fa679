//===- MathRules.cpp - Sharding rules of math ops -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RuleModels.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/DialectRegistry.h"
#include "tp/Extensions/Extensions.h"

using namespace mlir;
using namespace mlir::tp;

namespace {

template <typename OpT>
struct ElementwiseModel
    : ShardingRuleOpInterface::ExternalModel<ElementwiseModel<OpT>, OpT> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule = ShardingRule::elementwise(op);
    if (std::is_same_v<OpT, math::FmaOp>) // a * b + c
      rule.linear({{0, 2}, {1, 2}});
    return rule;
  }
};

} // namespace

void tp::registerMathExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, math::MathDialect *) {
    attachModelsByTrait<ElementwiseModel, OpTrait::Elementwise,
#define GET_OP_LIST
#include "mlir/Dialect/Math/IR/MathOps.cpp.inc"
                        >(context);
  });
}
