//===- LinalgRules.cpp - Sharding rules of linalg ops ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LinalgRule.h"
#include "RuleBuilders.h"
#include "RuleModels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectRegistry.h"
#include "tp/Extensions/Extensions.h"

using namespace mlir;
using namespace mlir::tp;

/// The axes over which initial values must count on one rank.
static SmallVector<AxisRefAttr> getOnceAxes(const ShardingRule &rule,
                                            const OpSplit &split) {
  SmallVector<AxisRefAttr> axes;
  for (auto [factor, own] : llvm::zip_equal(rule.factors, split.factorAxes))
    // A maximum doesn't depend on how often it includes the initial value.
    if (factor.kind == FactorKind::Reduction &&
        (factor.reduction == ReductionKind::Sum ||
         factor.reduction == ReductionKind::Product))
      llvm::append_range(axes, own);
  for (auto [set, axis] : split.linearAxes)
    if (set >= rule.linearSets.size() - rule.numOnce)
      axes.push_back(axis);
  return axes;
}

/// Makes `linalg.index` in the body of a rank's `op` give global indices.
static void makeIndicesGlobal(OpBuilder &builder, linalg::LinalgOp op,
                              const ShardingRule &rule, const OpSplit &split) {
  OpBuilder::InsertionGuard guard(builder);
  op.walk([&](linalg::IndexOp index) {
    unsigned loop = index.getDim();
    builder.setInsertionPoint(op);
    GlobalIndex(builder, index.getLoc(), split, loop, rule.factors[loop].size)
        .replace(builder, index);
  });
}

namespace {

template <typename OpT>
struct StructuredModel
    : ShardingRuleOpInterface::ExternalModel<StructuredModel<OpT>, OpT> {
  ShardingRule getShardingRule(Operation *op) const {
    return getLinalgRule(cast<linalg::LinalgOp>(op));
  }

  FailureOr<SmallVector<Value>> partition(Operation *op, OpBuilder &builder,
                                          ValueRange operands, TypeRange types,
                                          const OpSplit &split) const {
    auto linalgOp = cast<linalg::LinalgOp>(op);
    ShardingRule rule = getShardingRule(op);
    SmallVector<Value> parts(operands);
    if (SmallVector<AxisRefAttr> axes = getOnceAxes(rule, split); !axes.empty())
      for (OpOperand &init : linalgOp.getDpsInitsMutable()) {
        unsigned index = init.getOperandNumber();
        auto reduction =
            matchLinalgReduction(linalgOp, index - linalgOp.getNumDpsInputs());
        if (isNeutral(init.get(), reduction->kind))
          continue;
        Type type = getElementTypeOrSelf(init.get().getType());
        TypedAttr neutral = reduction->kind == ReductionKind::Product
                                ? builder.getOneAttr(type)
                                : builder.getZeroAttr(type);
        parts[index] = buildOnFirst(builder, op->getLoc(), split.mesh, axes,
                                    parts[index], neutral);
      }
    auto results = clonePartitioned(op, builder, parts, types);
    if (succeeded(results) && !results->empty())
      makeIndicesGlobal(
          builder, cast<linalg::LinalgOp>(results->front().getDefiningOp()),
          rule, split);
    return results;
  }
};

/// Each row along the dimension needs all of it.
struct SoftmaxModel
    : ShardingRuleOpInterface::ExternalModel<SoftmaxModel, linalg::SoftmaxOp> {
  ShardingRule getShardingRule(Operation *op) const {
    if (op->getNumResults() != 1)
      return ShardingRule::replicated(op);
    ShardingRule rule = ShardingRule::elementwise(op);
    return rule.wholeResultDim(cast<linalg::SoftmaxOp>(op).getDimension());
  }
};

/// A dimension that is cut into tiles has two factors: the tiles, an outer
/// dimension of the packed tensor, and the elements of a tile, an inner
/// dimension. If the last tile is padded, the dimension stays whole.
template <typename OpT>
struct RelayoutModel
    : ShardingRuleOpInterface::ExternalModel<RelayoutModel<OpT>, OpT> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule = ShardingRule::replicated(op);
    auto relayout = cast<OpT>(op);
    constexpr bool isPack = std::is_same_v<OpT, linalg::PackOp>;
    auto plain =
        dyn_cast<RankedTensorType>(op->getOperand(isPack ? 0 : 1).getType());
    if (!plain)
      return rule;
    ArrayRef<int64_t> order = relayout.getOuterDimsPerm();
    ArrayRef<int64_t> tiled = relayout.getInnerDimsPos();
    ArrayRef<int64_t> tiles = relayout.getStaticInnerTiles();
    auto addFactor = [&](int64_t size, FactorKind kind, int64_t plainDim,
                         int64_t packedDim) {
      for (auto [dims, isPlain] : {std::pair{&rule.operands[0], isPack},
                                   std::pair{&rule.operands[1], !isPack},
                                   std::pair{&rule.results[0], !isPack}})
        (*dims)[isPlain ? plainDim : packedDim].push_back(rule.factors.size());
      rule.factors.push_back({size, kind});
    };
    for (int64_t outer = 0; outer < plain.getRank(); ++outer) {
      int64_t dim = order.empty() ? outer : order[outer];
      int64_t size = plain.getDimSize(dim);
      int64_t tile = llvm::find(tiled, dim) - tiled.begin();
      if (tile == static_cast<int64_t>(tiled.size())) {
        addFactor(size, FactorKind::Parallel, dim, outer);
        continue;
      }
      if (ShapedType::isDynamic(tiles[tile]) || size % tiles[tile])
        continue;
      addFactor(size / tiles[tile], FactorKind::Parallel, dim, outer);
      // The size of a tile is an attribute of the op and can't change.
      addFactor(tiles[tile], FactorKind::Whole, dim, plain.getRank() + tile);
    }
    return rule.linear({{0}});
  }
};

} // namespace

void tp::registerLinalgExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, linalg::LinalgDialect *) {
    attachModels<StructuredModel,
#define GET_OP_LIST
#include "mlir/Dialect/Linalg/IR/LinalgStructuredOps.cpp.inc"
                 >(context);
    using namespace linalg;
    attachModels<RelayoutModel, PackOp, UnPackOp>(context);
    SoftmaxOp::attachInterface<SoftmaxModel>(*context);
    attachModels<ReplicatedModel, WinogradFilterTransformOp,
                 WinogradInputTransformOp, WinogradOutputTransformOp>(context);
  });
}
