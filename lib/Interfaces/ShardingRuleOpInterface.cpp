//===- ShardingRuleOpInterface.cpp - Sharding rules of ops ----------------===//

#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::tp;

#include "tp/Interfaces/ShardingRuleOpInterface.cpp.inc"

bool OpSplit::isReplicated() const {
  return linearAxes.empty() &&
         llvm::all_of(factorAxes, [](const auto &axes) { return axes.empty(); });
}

SmallVector<AxisRefAttr> OpSplit::usedAxes() const {
  SmallVector<AxisRefAttr> axes;
  for (const auto &list : factorAxes)
    llvm::append_range(axes, list);
  for (auto [set, axis] : linearAxes)
    axes.push_back(axis);
  return axes;
}

/// The mesh axes along each dimension: the factors' axes, major factor first. A
/// minor factor can be split only where all of the major ones are split whole.
static std::optional<SmallVector<AxisListAttr>>
getDimAxes(const ShardingRule &rule, const OpSplit &split,
           const TensorFactors &tensor) {
  MeshOp mesh = split.mesh;
  MLIRContext *context = mesh.getContext();
  SmallVector<AxisListAttr> dims;
  for (const DimFactors &factors : tensor) {
    SmallVector<AxisRefAttr> axes;
    bool majorWhole = true;
    for (unsigned factor : factors) {
      ArrayRef<AxisRefAttr> own = split.factorAxes[factor];
      if (!own.empty() && !majorWhole)
        return std::nullopt;
      llvm::append_range(axes, own);
      majorWhole &= mesh.getAxesSize(own) == rule.factors[factor].size;
    }
    dims.push_back(AxisListAttr::get(context, axes));
  }
  return dims;
}

ShardingAttr tp::getOperandSharding(const ShardingRule &rule,
                                    const OpSplit &split, unsigned operand) {
  auto dims = getDimAxes(rule, split, rule.operands[operand]);
  if (!dims)
    return {};
  MeshOp mesh = split.mesh;
  SmallVector<PartialAttr> partial;
  for (auto [set, axis] : split.linearAxes)
    if (llvm::is_contained(rule.linearSets[set], operand))
      partial.push_back(
          PartialAttr::get(mesh.getContext(), axis, ReductionKind::Sum));
  return ShardingAttr::get(mesh.getContext(),
                           FlatSymbolRefAttr::get(mesh.getSymNameAttr()), *dims,
                           partial);
}

ShardingAttr tp::getResultSharding(const ShardingRule &rule,
                                   const OpSplit &split, unsigned result) {
  auto dims = getDimAxes(rule, split, rule.results[result]);
  if (!dims)
    return {};
  MeshOp mesh = split.mesh;
  MLIRContext *context = mesh.getContext();
  SmallVector<PartialAttr> partial;
  for (auto [index, axes] : llvm::enumerate(split.factorAxes))
    if (rule.factors[index].kind == FactorKind::Reduction)
      for (AxisRefAttr axis : axes)
        partial.push_back(
            PartialAttr::get(context, axis, rule.factors[index].reduction));
  for (auto [set, axis] : split.linearAxes)
    partial.push_back(PartialAttr::get(context, axis, ReductionKind::Sum));
  return ShardingAttr::get(context,
                           FlatSymbolRefAttr::get(mesh.getSymNameAttr()), *dims,
                           partial);
}

FailureOr<SmallVector<Value>> tp::clonePartitioned(Operation *op,
                                                   OpBuilder &builder,
                                                   ValueRange operands,
                                                   TypeRange resultTypes) {
  OperationState state(op->getLoc(), op->getName(), operands, resultTypes,
                       op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  Operation *clone = builder.create(state);
  return SmallVector<Value>(clone->getResults());
}
