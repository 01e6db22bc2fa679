//===- ArithRules.cpp - Sharding rules of arith ops -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RuleBuilders.h"
#include "RuleModels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/TypeUtilities.h"
#include "tp/Extensions/Extensions.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::tp;

/// A sum of booleans doesn't count them. If overflow is undefined, a part of a
/// sum may overflow although the sum doesn't.
bool tp::hasSums(Operation *op) {
  auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op);
  bool wraps = !flags || flags.getOverflowAttr().getValue() ==
                             arith::IntegerOverflowFlags::none;
  return wraps && !getElementTypeOrSelf(op->getResult(0)).isInteger(1);
}

/// max and min agree with the runtime's if they propagate NaN, or if there is
/// none.
template <typename OpT>
static std::optional<ReductionKind> ifNoNaNs(OpT op, ReductionKind kind) {
  if (!bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::nnan))
    return std::nullopt;
  return kind;
}

std::optional<ReductionKind> tp::getReductionKind(Operation *combiner) {
  if (!hasSums(combiner))
    return std::nullopt;
  using Kind = std::optional<ReductionKind>;
  return llvm::TypeSwitch<Operation *, Kind>(combiner)
      .Case<arith::AddFOp, arith::AddIOp>(
          [](auto) { return ReductionKind::Sum; })
      .Case<arith::MulFOp, arith::MulIOp>(
          [](auto) { return ReductionKind::Product; })
      .Case<arith::MaximumFOp, arith::MaxSIOp>(
          [](auto) { return ReductionKind::Max; })
      .Case<arith::MinimumFOp, arith::MinSIOp>(
          [](auto) { return ReductionKind::Min; })
      .Case(
          [](arith::MaxNumFOp op) { return ifNoNaNs(op, ReductionKind::Max); })
      .Case(
          [](arith::MinNumFOp op) { return ifNoNaNs(op, ReductionKind::Min); })
      .Default([](auto) { return std::nullopt; });
}

namespace {

template <typename OpT>
constexpr bool kIsSum = llvm::is_one_of<OpT, arith::AddFOp, arith::AddIOp,
                                        arith::SubFOp, arith::SubIOp>::value;

/// The sets of operands that an op is jointly linear in. Integers wrap: sums,
/// products and truncations are computed modulo a power of 2. A conversion to
/// another kind of number isn't linear: a part of a sum may wrap although the
/// sum doesn't.
template <typename OpT>
SmallVector<LinearSet> getLinearSets() {
  if constexpr (kIsSum<OpT>)
    return {{0, 1}};
  else if constexpr (llvm::is_one_of<OpT, arith::MulFOp, arith::MulIOp>::value)
    return {{0}, {1}};
  else if constexpr (llvm::is_one_of<OpT, arith::DivFOp, arith::NegFOp,
                                     arith::ExtFOp, arith::ShLIOp,
                                     arith::TruncIOp>::value)
    return {{0}};
  else if constexpr (std::is_same_v<OpT, arith::SelectOp>)
    return {{1, 2}};
  else
    return {};
}

template <typename OpT>
struct ElementwiseModel
    : ShardingRuleOpInterface::ExternalModel<ElementwiseModel<OpT>, OpT> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule = ShardingRule::elementwise(op);
    if (!hasSums(op))
      return rule;
    rule.linear(getLinearSets<OpT>());
    if (kIsSum<OpT>)
      rule.linearOnce({{0}, {1}});
    return rule;
  }

  /// A replicated term of a Partial sum counts on one rank only.
  FailureOr<SmallVector<Value>> partition(Operation *op, OpBuilder &builder,
                                          ValueRange operands, TypeRange types,
                                          const OpSplit &split) const {
    SmallVector<Value> parts(operands);
    if (kIsSum<OpT> && !split.linearAxes.empty()) {
      ShardingRule rule = getShardingRule(op);
      auto zero = builder.getZeroAttr(getElementTypeOrSelf(types[0]));
      for (unsigned i = 0; i < parts.size(); ++i) {
        SmallVector<AxisRefAttr> axes;
        for (auto [set, axis] : split.linearAxes)
          if (!llvm::is_contained(rule.linearSets[set], i))
            axes.push_back(axis);
        if (!axes.empty())
          parts[i] = buildOnFirst(builder, op->getLoc(), split.mesh, axes,
                                  parts[i], zero);
      }
    }
    return clonePartitioned(op, builder, parts, types);
  }
};

/// Each rank keeps its block of a constant; the block of a splat is a splat.
struct ConstantModel
    : ShardingRuleOpInterface::ExternalModel<ConstantModel, arith::ConstantOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return ShardingRule::elementwise(op);
  }

  FailureOr<SmallVector<Value>> partition(Operation *op, OpBuilder &builder,
                                          ValueRange, TypeRange types,
                                          const OpSplit &split) const {
    auto constant = cast<arith::ConstantOp>(op);
    auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
    auto type = dyn_cast<RankedTensorType>(types[0]);
    if (dense && dense.isSplat() && type)
      return SmallVector<Value>{arith::ConstantOp::create(
          builder, op->getLoc(), dense.resizeSplat(type))};
    return sliceConstant(op, builder, types[0], split,
                         getShardingRule(op).results[0]);
  }
};

} // namespace

void tp::registerArithExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    attachModelsByTrait<ElementwiseModel, OpTrait::Elementwise,
#define GET_OP_LIST
#include "mlir/Dialect/Arith/IR/ArithOps.cpp.inc"
                        >(context);
    arith::ConstantOp::attachInterface<ConstantModel>(*context);
  });
}
