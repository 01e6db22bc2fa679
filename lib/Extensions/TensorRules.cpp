//===- TensorRules.cpp - Sharding rules of tensor ops ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RuleBuilders.h"
#include "RuleModels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/Matchers.h"
#include "tp/Extensions/Extensions.h"

using namespace mlir;
using namespace mlir::tp;

static RankedTensorType getTensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// A new factor of `size` elements, along a dimension of each tensor given.
static unsigned addFactor(ShardingRule &rule, int64_t size,
                          ArrayRef<DimFactors *> dims) {
  unsigned factor = rule.factors.size();
  rule.factors.push_back({size});
  for (DimFactors *dim : dims)
    dim->push_back(factor);
  return factor;
}

//===----------------------------------------------------------------------===//
// Values out of nothing
//===----------------------------------------------------------------------===//

namespace {

/// Each element by itself: empty, splat, bitcast.
template <typename OpT>
struct ElementwiseModel
    : ShardingRuleOpInterface::ExternalModel<ElementwiseModel<OpT>, OpT> {
  ShardingRule getShardingRule(Operation *op) const {
    return ShardingRule::elementwise(op);
  }
};

/// The body gets the global index of the element.
struct GenerateModel
    : ShardingRuleOpInterface::ExternalModel<GenerateModel,
                                             tensor::GenerateOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return ShardingRule::elementwise(op);
  }

  FailureOr<SmallVector<Value>> partition(Operation *op, OpBuilder &builder,
                                          ValueRange operands, TypeRange types,
                                          const OpSplit &split) const {
    auto results = clonePartitioned(op, builder, operands, types);
    if (failed(results))
      return results;
    OpBuilder::InsertionGuard guard(builder);
    auto generate = results->front().getDefiningOp<tensor::GenerateOp>();
    ArrayRef<int64_t> shape = cast<tensor::GenerateOp>(op).getType().getShape();
    for (BlockArgument index : generate.getBody().getArguments()) {
      unsigned dim = index.getArgNumber();
      builder.setInsertionPoint(generate);
      GlobalIndex(builder, op->getLoc(), split, dim, shape[dim])
          .replace(builder, index);
    }
    return results;
  }
};

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

struct CastModel
    : ShardingRuleOpInterface::ExternalModel<CastModel, tensor::CastOp> {
  ShardingRule getShardingRule(Operation *op) const {
    if (op->getOperand(0).getType() != op->getResult(0).getType())
      return ShardingRule::replicated(op);
    return ShardingRule::elementwise(op).linear({{0}});
  }
};

struct CollapseShapeModel
    : ShardingRuleOpInterface::ExternalModel<CollapseShapeModel,
                                             tensor::CollapseShapeOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return ShardingRule::reshape(op).linear({{0}});
  }
};

struct ExpandShapeModel
    : ShardingRuleOpInterface::ExternalModel<ExpandShapeModel,
                                             tensor::ExpandShapeOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return ShardingRule::reshape(op).linear({{0}});
  }
  FailureOr<SmallVector<Value>> partition(Operation *op, OpBuilder &builder,
                                          ValueRange operands, TypeRange types,
                                          const OpSplit &) const {
    auto expand = cast<tensor::ExpandShapeOp>(op);
    return SmallVector<Value>{tensor::ExpandShapeOp::create(
        builder, op->getLoc(), types[0], operands[0],
        expand.getReassociationIndices())};
  }
};

/// The size of a dimension is known on every rank, however it is split.
struct DimModel
    : ShardingRuleOpInterface::ExternalModel<DimModel, tensor::DimOp> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule = ShardingRule::replicated(op);
    auto type = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
    if (!type || !cast<tensor::DimOp>(op).getConstantIndex())
      return rule;
    for (auto [dim, factors] : llvm::enumerate(rule.operands[0])) {
      unsigned factor = addFactor(rule, type.getDimSize(dim), {&factors});
      rule.factors[factor].kind = FactorKind::Collective;
    }
    return rule;
  }
  FailureOr<SmallVector<Value>> partition(Operation *op, OpBuilder &builder,
                                          ValueRange operands, TypeRange types,
                                          const OpSplit &) const {
    auto dim = cast<tensor::DimOp>(op);
    std::optional<int64_t> index = dim.getConstantIndex();
    if (!index)
      return clonePartitioned(op, builder, operands, types);
    int64_t size = getTensorType(dim.getSource()).getDimSize(*index);
    return SmallVector<Value>{
        arith::ConstantIndexOp::create(builder, op->getLoc(), size)};
  }
};

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

/// How one dimension of a slice lies in the tensor.
enum class SliceDim {
  /// All of the dimension.
  Full,
  /// Consecutive elements from a known offset.
  Window,
  /// Anything else: the dimension stays whole.
  Other,
};

SliceDim classify(OffsetSizeAndStrideOpInterface op, RankedTensorType whole,
                  unsigned dim) {
  if (op.isDynamicOffset(dim) || op.isDynamicSize(dim) ||
      op.isDynamicStride(dim) || op.getStaticStride(dim) != 1)
    return SliceDim::Other;
  return op.getStaticSize(dim) == whole.getDimSize(dim) ? SliceDim::Full
                                                        : SliceDim::Window;
}

/// For each dimension of the slice, the dimension of the smaller tensor; -1 if
/// it is dropped.
SmallVector<int64_t> getSliceDims(unsigned rank,
                                  const llvm::SmallBitVector &dropped) {
  SmallVector<int64_t> dims;
  int64_t next = 0;
  for (unsigned dim = 0; dim < rank; ++dim)
    dims.push_back(dropped.test(dim) ? -1 : next++);
  return dims;
}

/// Adds factors for the dimensions that a slice shares with the whole tensor;
/// `dims` are the dimensions of the slice. `tensors` are the factors of tensors
/// with the whole shape. The slice is the op's first result or first operand.
void addSliceFactors(ShardingRule &rule, OffsetSizeAndStrideOpInterface op,
                     RankedTensorType whole, ArrayRef<int64_t> dims,
                     bool isResult, ArrayRef<TensorFactors *> tensors) {
  TensorFactors &part = isResult ? rule.results[0] : rule.operands[0];
  for (auto [d, to] : llvm::enumerate(dims)) {
    unsigned dim = d;
    SliceDim kind = classify(op, whole, dim);
    if (to < 0 || kind == SliceDim::Other)
      continue;
    SmallVector<DimFactors *> places = {&part[to]};
    for (TensorFactors *tensor : tensors)
      places.push_back(&(*tensor)[dim]);
    addFactor(rule, whole.getDimSize(dim), places);
    if (kind == SliceDim::Window)
      rule.windows.push_back({isResult, 0, static_cast<unsigned>(to),
                              op.getStaticOffset(dim), op.getStaticSize(dim)});
  }
}

/// The offsets of `op` in a rank's block; `factors` are those of the whole
/// tensor.
SmallVector<OpFoldResult>
getLocalOffsets(OpBuilder &builder, OffsetSizeAndStrideOpInterface op,
                RankedTensorType whole, const TensorFactors &factors,
                const OpSplit &split, ValueRange dynamicOffsets) {
  SmallVector<OpFoldResult> offsets;
  for (unsigned dim = 0, next = 0; dim < factors.size(); ++dim) {
    if (op.isDynamicOffset(dim)) {
      offsets.push_back(dynamicOffsets[next++]);
      continue;
    }
    int64_t start = op.getStaticOffset(dim);
    if (!factors[dim].empty())
      start = getLocalStart(split, factors[dim].front(), whole.getDimSize(dim),
                            start);
    offsets.push_back(builder.getIndexAttr(start));
  }
  return offsets;
}

/// The sizes of a rank's slice: those of its block, and 1 for dropped
/// dimensions.
SmallVector<OpFoldResult> getLocalSizes(OpBuilder &builder,
                                        RankedTensorType slice,
                                        ArrayRef<int64_t> sliceDims) {
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim : sliceDims)
    sizes.push_back(builder.getIndexAttr(dim < 0 ? 1 : slice.getDimSize(dim)));
  return sizes;
}

struct ExtractSliceModel
    : ShardingRuleOpInterface::ExternalModel<ExtractSliceModel,
                                             tensor::ExtractSliceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto slice = cast<tensor::ExtractSliceOp>(op);
    ShardingRule rule = ShardingRule::replicated(op);
    RankedTensorType whole = slice.getSourceType();
    SmallVector<int64_t> sliceDims =
        getSliceDims(whole.getRank(), slice.getDroppedDims());
    addSliceFactors(rule, slice, whole, sliceDims, /*isResult=*/true,
                    {&rule.operands[0]});
    return rule.linear({{0}});
  }

  FailureOr<SmallVector<Value>> partition(Operation *op, OpBuilder &builder,
                                          ValueRange operands, TypeRange types,
                                          const OpSplit &split) const {
    auto slice = cast<tensor::ExtractSliceOp>(op);
    RankedTensorType whole = slice.getSourceType();
    SmallVector<int64_t> sliceDims =
        getSliceDims(whole.getRank(), slice.getDroppedDims());
    auto type = cast<RankedTensorType>(types[0]);
    // No offset is inside a block without elements.
    if (type.getNumElements() == 0)
      return SmallVector<Value>{tensor::EmptyOp::create(
          builder, op->getLoc(), type.getShape(), type.getElementType())};
    size_t numOffsets = slice.getOffsets().size();
    SmallVector<OpFoldResult> strides = getMixedValues(
        slice.getStaticStrides(), operands.drop_front(1 + numOffsets), builder);
    return SmallVector<Value>{tensor::ExtractSliceOp::create(
        builder, op->getLoc(), type, operands[0],
        getLocalOffsets(builder, slice, whole, getShardingRule(op).operands[0],
                        split, operands.slice(1, numOffsets)),
        getLocalSizes(builder, type, sliceDims), strides)};
  }
};

/// If the source covers part of a dimension, it lies in a window.
struct InsertSliceModel
    : ShardingRuleOpInterface::ExternalModel<InsertSliceModel,
                                             tensor::InsertSliceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto insert = cast<tensor::InsertSliceOp>(op);
    ShardingRule rule = ShardingRule::replicated(op);
    RankedTensorType whole = insert.getDestType();
    SmallVector<int64_t> sliceDims =
        getSliceDims(whole.getRank(), insert.getDroppedDims());
    addSliceFactors(rule, insert, whole, sliceDims, /*isResult=*/false,
                    {&rule.operands[1], &rule.results[0]});
    return rule.linear({{0, 1}});
  }

  FailureOr<SmallVector<Value>> partition(Operation *op, OpBuilder &builder,
                                          ValueRange operands, TypeRange types,
                                          const OpSplit &split) const {
    auto insert = cast<tensor::InsertSliceOp>(op);
    RankedTensorType whole = insert.getDestType();
    SmallVector<int64_t> sliceDims =
        getSliceDims(whole.getRank(), insert.getDroppedDims());
    if (getTensorType(operands[0]).getNumElements() == 0)
      return SmallVector<Value>{operands[1]};
    size_t numOffsets = insert.getOffsets().size();
    SmallVector<OpFoldResult> strides =
        getMixedValues(insert.getStaticStrides(),
                       operands.drop_front(2 + numOffsets), builder);
    return SmallVector<Value>{tensor::InsertSliceOp::create(
        builder, op->getLoc(), operands[0], operands[1],
        getLocalOffsets(builder, insert, whole, getShardingRule(op).operands[1],
                        split, operands.slice(2, numOffsets)),
        getLocalSizes(builder, getTensorType(operands[0]), sliceDims),
        strides)};
  }
};

struct ConcatModel
    : ShardingRuleOpInterface::ExternalModel<ConcatModel, tensor::ConcatOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return getConcatRule(op, cast<tensor::ConcatOp>(op).getDim());
  }
};

/// A dimension that is padded stays whole, as does one whose index the padding
/// depends on.
struct PadModel
    : ShardingRuleOpInterface::ExternalModel<PadModel, tensor::PadOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto pad = cast<tensor::PadOp>(op);
    ShardingRule rule = ShardingRule::replicated(op);
    for (auto [dim, low, high] :
         llvm::enumerate(pad.getStaticLow(), pad.getStaticHigh()))
      if (low == 0 && high == 0 && pad.getRegion().getArgument(dim).use_empty())
        addFactor(rule, pad.getResultType().getDimSize(dim),
                  {&rule.operands[0][dim], &rule.results[0][dim]});
    Value padding = pad.getConstantPaddingValue();
    if (padding && (matchPattern(padding, m_AnyZeroFloat()) ||
                    matchPattern(padding, m_Zero())))
      rule.linear({{0}});
    return rule;
  }
};

/// Adds factors for the dimensions of `whole` that aren't in `lookedUp`. They
/// correspond to those of `slices` behind the first `batchRank`, where the
/// dimensions in `lookedUp` may be kept with size 1.
void addLookupFactors(ShardingRule &rule, ArrayRef<int64_t> lookedUp,
                      RankedTensorType whole, int64_t batchRank,
                      TensorFactors &slices, ArrayRef<TensorFactors *> wholes) {
  bool keepsDims =
      static_cast<int64_t>(slices.size()) == batchRank + whole.getRank();
  int64_t next = batchRank;
  for (int64_t dim = 0; dim < whole.getRank(); ++dim) {
    if (llvm::is_contained(lookedUp, dim)) {
      next += keepsDims;
      continue;
    }
    SmallVector<DimFactors *> places = {&slices[next++]};
    for (TensorFactors *tensor : wholes)
      places.push_back(&(*tensor)[dim]);
    addFactor(rule, whole.getDimSize(dim), places);
  }
}

/// Every rank needs all that its indices may read.
struct GatherModel
    : ShardingRuleOpInterface::ExternalModel<GatherModel, tensor::GatherOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto gather = cast<tensor::GatherOp>(op);
    ShardingRule rule = ShardingRule::replicated(op);
    int64_t batchRank = gather.getIndicesType().getRank() - 1;
    for (int64_t dim = 0; dim < batchRank; ++dim)
      addFactor(rule, gather.getIndicesType().getDimSize(dim),
                {&rule.operands[1][dim], &rule.results[0][dim]});
    addLookupFactors(rule, gather.getGatherDims(), gather.getSourceType(),
                     batchRank, rule.results[0], {&rule.operands[0]});
    return rule.linear({{0}});
  }
};

/// Every index may write to any position.
struct ScatterModel
    : ShardingRuleOpInterface::ExternalModel<ScatterModel, tensor::ScatterOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto scatter = cast<tensor::ScatterOp>(op);
    ShardingRule rule = ShardingRule::replicated(op);
    addLookupFactors(rule, scatter.getScatterDims(), scatter.getDestType(),
                     scatter.getIndicesType().getRank() - 1, rule.operands[0],
                     {&rule.operands[1], &rule.results[0]});
    return rule.linear({{0, 1}});
  }
};

} // namespace

void tp::registerTensorExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, tensor::TensorDialect *) {
    using namespace tensor;
    attachModels<ElementwiseModel, EmptyOp, SplatOp, BitcastOp>(context);
    GenerateOp::attachInterface<GenerateModel>(*context);
    CastOp::attachInterface<CastModel>(*context);
    CollapseShapeOp::attachInterface<CollapseShapeModel>(*context);
    ExpandShapeOp::attachInterface<ExpandShapeModel>(*context);
    DimOp::attachInterface<DimModel>(*context);
    ExtractSliceOp::attachInterface<ExtractSliceModel>(*context);
    InsertSliceOp::attachInterface<InsertSliceModel>(*context);
    ConcatOp::attachInterface<ConcatModel>(*context);
    PadOp::attachInterface<PadModel>(*context);
    GatherOp::attachInterface<GatherModel>(*context);
    ScatterOp::attachInterface<ScatterModel>(*context);
    attachModels<ReplicatedModel, ExtractOp, FromElementsOp, InsertOp, RankOp,
                 ReshapeOp>(context);
  });
}
