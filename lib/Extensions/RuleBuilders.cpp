//===- RuleBuilders.cpp - Ops of partition hooks of upstream ops ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RuleBuilders.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "tp/Dialect/TP/Blocks.h"

using namespace mlir;
using namespace mlir::tp;

static FlatSymbolRefAttr getReference(MeshOp mesh) {
  return FlatSymbolRefAttr::get(mesh.getSymNameAttr());
}

/// The first element, as an index, of the rank's block of `size` elements that
/// `axes` split.
static Value buildOffset(OpBuilder &builder, Location loc, MeshOp mesh,
                         ArrayRef<AxisRefAttr> axes, int64_t size) {
  Value offset = ShardOffsetOp::create(
      builder, loc, RankedTensorType::get({}, builder.getI64Type()),
      builder.getI64IntegerAttr(size), getReference(mesh),
      AxisListAttr::get(builder.getContext(), axes));
  Value scalar = tensor::ExtractOp::create(builder, loc, offset, ValueRange());
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                    scalar);
}

Value tp::buildOnFirst(OpBuilder &builder, Location loc, MeshOp mesh,
                       ArrayRef<AxisRefAttr> axes, Value value,
                       TypedAttr neutral) {
  // With as many elements as ranks, each rank has the element of its index.
  Value index = buildOffset(builder, loc, mesh, axes, mesh.getAxesSize(axes));
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        index, zero);
  TypedAttr other = neutral;
  if (auto type = dyn_cast<RankedTensorType>(value.getType()))
    other = SplatElementsAttr::get(type, Attribute(neutral));
  Value neutrals = arith::ConstantOp::create(builder, loc, other);
  return arith::SelectOp::create(builder, loc, isFirst, value, neutrals);
}

GlobalIndex::GlobalIndex(OpBuilder &builder, Location loc, const OpSplit &split,
                         unsigned factor, int64_t size) {
  MeshOp mesh = split.mesh;
  ArrayRef<AxisRefAttr> axes = split.factorAxes[factor];
  if (axes.empty()) {
    runs.push_back({0, Value()});
    return;
  }
  SmallVector<int64_t> segments(split.factorSegments[factor]);
  if (segments.empty())
    segments.push_back(size);
  auto list = AxisListAttr::get(builder.getContext(), axes, segments);
  int64_t local = 0, global = 0;
  for (auto [segment, mine] :
       llvm::zip_equal(segments, getDimBlock(size, list, mesh, split.rank))) {
    Value shift = buildOffset(builder, loc, mesh, axes, segment);
    if (global != local)
      shift = arith::AddIOp::create(
          builder, loc, shift,
          arith::ConstantIndexOp::create(builder, loc, global - local));
    runs.push_back({local, shift});
    local += mine.size;
    global += segment;
  }
}

Value GlobalIndex::build(OpBuilder &builder, Value index) const {
  Location loc = index.getLoc();
  Value shift = runs.front().shift;
  if (!shift)
    return index;
  for (const Run &run : ArrayRef(runs).drop_front()) {
    Value begin = arith::ConstantIndexOp::create(builder, loc, run.begin);
    Value isPast = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::sge, index, begin);
    shift = arith::SelectOp::create(builder, loc, isPast, run.shift, shift);
  }
  return arith::AddIOp::create(builder, loc, index, shift);
}

void GlobalIndex::replace(OpBuilder &builder, Value index) const {
  auto uses =
      llvm::map_to_vector(index.getUses(), [](OpOperand &use) { return &use; });
  builder.setInsertionPointAfterValue(index);
  Value whole = build(builder, index);
  for (OpOperand *use : uses)
    use->set(whole);
}

/// The rank's block of `value` along `dim`, a piece of each segment.
static Value cut(OpBuilder &builder, Location loc, Value value, int64_t dim,
                 const OpSplit &split, unsigned factor) {
  MeshOp mesh = split.mesh;
  MLIRContext *context = builder.getContext();
  auto type = cast<RankedTensorType>(value.getType());
  auto axes = AxisListAttr::get(context, split.factorAxes[factor]);
  SmallVector<int64_t> segments(split.factorSegments[factor]);
  if (segments.empty())
    segments.push_back(type.getDimSize(dim));
  auto withSize = [&](int64_t size) {
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = size;
    return type.clone(shape);
  };
  SmallVector<Value> pieces;
  int64_t begin = 0;
  for (int64_t segment : segments) {
    Value part = value;
    if (segments.size() > 1) {
      SmallVector<OpFoldResult> offsets(type.getRank(),
                                        builder.getIndexAttr(0));
      SmallVector<OpFoldResult> strides(type.getRank(),
                                        builder.getIndexAttr(1));
      RankedTensorType partType = withSize(segment);
      offsets[dim] = builder.getIndexAttr(begin);
      part = tensor::ExtractSliceOp::create(
          builder, loc, partType, value, offsets,
          getAsIndexOpFoldResult(context, partType.getShape()), strides);
    }
    int64_t mine = getDimBlock(segment, axes, mesh, split.rank).front().size;
    pieces.push_back(LocalSliceOp::create(builder, loc, withSize(mine), part,
                                          builder.getI64IntegerAttr(dim),
                                          getReference(mesh), axes));
    begin += segment;
  }
  if (pieces.size() == 1)
    return pieces.front();
  return tensor::ConcatOp::create(builder, loc, dim, pieces);
}

FailureOr<SmallVector<Value>> tp::sliceConstant(Operation *constant,
                                                OpBuilder &builder, Type type,
                                                const OpSplit &split,
                                                const TensorFactors &factors) {
  auto results =
      clonePartitioned(constant, builder, {}, constant->getResultTypes());
  if (failed(results) || type == constant->getResult(0).getType())
    return results;
  Value &value = results->front();
  for (auto [dim, along] : llvm::enumerate(factors))
    if (!along.empty() && !split.factorAxes[along.front()].empty())
      value =
          cut(builder, constant->getLoc(), value, dim, split, along.front());
  return results;
}
