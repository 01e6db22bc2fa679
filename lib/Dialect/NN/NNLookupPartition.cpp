//===- NNLookupPartition.cpp - Lookups in a table that is split -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each rank holds a range of the rows that indices name. It looks up, or adds
// to, its own rows, and takes zero for the others. For lookups, the sum over
// the ranks is the global result.
//
//===----------------------------------------------------------------------===//

#include "tp/Dialect/NN/Expressions.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Dialect/TP/TP.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::expr;
using tp::OpSplit;

namespace {
/// Indices into this rank's rows.
struct LocalIndex {
  /// Which indices name a row of this rank.
  Value isMine;
  /// Relative to this rank's first row; 0 if another rank has the row; the
  /// index itself if no rank has it, so that the lookup reports it.
  Value index;
};
} // namespace

static Value zeros(ImplicitLocOpBuilder &b, Type type) {
  return filled(b, cast<RankedTensorType>(type), 0);
}

/// Where this rank's part of a dimension of size `size` begins.
static Value getOffset(ImplicitLocOpBuilder &b, Type element, int64_t size,
                       ArrayRef<tp::AxisRefAttr> axes, tp::MeshOp mesh) {
  Value offset = tp::ShardOffsetOp::create(
      b, RankedTensorType::get({}, b.getI64Type()), b.getI64IntegerAttr(size),
      FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
      tp::AxisListAttr::get(b.getContext(), axes));
  return castTo(b, offset, element);
}

/// This rank has `numRows` of all `size` rows, which `axes` split.
static LocalIndex buildLocalIndex(ImplicitLocOpBuilder &b, Value indices,
                                  int64_t size, int64_t numRows,
                                  ArrayRef<tp::AxisRefAttr> axes,
                                  tp::MeshOp mesh) {
  Type element = elementOf(indices);
  Value first = getOffset(b, element, size, axes, mesh);
  auto inRange = [&](Value value, int64_t end) -> Value {
    Value isNatural =
        compare(b, ComparePredicate::GE, value, integer(b, element, 0));
    return LogicalAndOp::create(
        b, isNatural,
        compare(b, ComparePredicate::LT, value, integer(b, element, end)));
  };
  Value relative = sub(b, indices, first);
  Value mine = inRange(relative, numRows);
  Value other =
      select(b, inRange(indices, size), integer(b, element, 0), indices);
  return {mine, select(b, mine, relative, other)};
}

/// Makes a rank's lookup check indices against all `size` rows.
template <typename OpT>
static OpT withBound(OpT lookup, int64_t size) {
  lookup->setAttr(tp::kIndexBoundAttr,
                  OpBuilder(lookup.getContext()).getI64IntegerAttr(size));
  return lookup;
}

/// `mask` with a dimension of size 1 at the end, to select rows.
static Value asColumn(ImplicitLocOpBuilder &b, Value mask) {
  return unsqueeze(b, mask, rankOf(mask));
}

FailureOr<SmallVector<Value>> EmbeddingOp::partition(OpBuilder &builder,
                                                     ValueRange operands,
                                                     TypeRange types,
                                                     const OpSplit &split) {
  ArrayRef<tp::AxisRefAttr> axes =
      split.factorAxes[getShardingRule().operands[1][0][0]];
  if (axes.empty())
    return tp::clonePartitioned(*this, builder, operands, types);
  ImplicitLocOpBuilder b(getLoc(), builder);
  Value indices = operands[0], weight = operands[1];
  int64_t rows = shapeOf(weight)[0];
  if (rows == 0) // no row, no contribution
    return SmallVector<Value>{zeros(b, types[0])};
  int64_t size = getWeight().getType().getDimSize(0);
  auto [mine, index] =
      buildLocalIndex(b, indices, size, rows, axes, split.mesh);
  Value found =
      withBound(EmbeddingOp::create(b, index, weight, IntegerAttr()), size);
  return SmallVector<Value>{keep(b, asColumn(b, mine), found)};
}

FailureOr<SmallVector<Value>> GatherOp::partition(OpBuilder &builder,
                                                  ValueRange operands,
                                                  TypeRange types,
                                                  const OpSplit &split) {
  ArrayRef<tp::AxisRefAttr> axes =
      split.factorAxes[getShardingRule().operands[0][getDim()][0]];
  if (axes.empty())
    return tp::clonePartitioned(*this, builder, operands, types);
  ImplicitLocOpBuilder b(getLoc(), builder);
  int64_t rows = shapeOf(operands[0])[getDim()];
  if (rows == 0)
    return SmallVector<Value>{zeros(b, types[0])};
  int64_t size = getInput().getType().getDimSize(getDim());
  auto [mine, index] =
      buildLocalIndex(b, operands[1], size, rows, axes, split.mesh);
  Value found =
      withBound(GatherOp::create(b, operands[0], index, getDimAttr()), size);
  return SmallVector<Value>{keep(b, mine, found)};
}

/// As `buildLocalIndex`, for a rank that has a block of each of `segments`, one
/// after the other: looks up where its rows are in a table of all rows.
static LocalIndex buildLocalIndex(ImplicitLocOpBuilder &b, Value indices,
                                  ArrayRef<int64_t> segments,
                                  ArrayRef<tp::AxisRefAttr> axes,
                                  const OpSplit &split) {
  Type element = elementOf(indices);
  auto axisList = tp::AxisListAttr::get(b.getContext(), axes);
  SmallVector<Value> places;
  int64_t size = 0, begin = 0;
  for (int64_t segment : segments) {
    int64_t count = 0;
    for (tp::Interval piece :
         tp::getDimBlock(segment, axisList, split.mesh, split.rank))
      count += piece.size;
    Value relative = sub(b, iota(b, {segment}, 0, element),
                         getOffset(b, element, segment, axes, split.mesh));
    Value mine = LogicalAndOp::create(
        b, compare(b, ComparePredicate::GE, relative, integer(b, element, 0)),
        compare(b, ComparePredicate::LT, relative, integer(b, element, count)));
    places.push_back(select(b, mine,
                            add(b, relative, integer(b, element, begin)),
                            integer(b, element, -1)));
    size += segment;
    begin += count;
  }
  Value table = ConcatOp::create(b, RankedTensorType::get({size}, element),
                                 places, b.getI64IntegerAttr(0));
  Value flat = reshape(b, indices, {typeOf(indices).getNumElements()});
  Value local =
      reshape(b, IndexSelectOp::create(b, table, flat, 0), shapeOf(indices));
  Value mine = compare(b, ComparePredicate::GE, local, integer(b, element, 0));
  return {mine, select(b, mine, local, integer(b, element, 0))};
}

FailureOr<SmallVector<Value>>
ScatterAddRowsOp::partition(OpBuilder &builder, ValueRange operands,
                            TypeRange types, const OpSplit &split) {
  unsigned factor = getShardingRule().results[0][0][0];
  ArrayRef<tp::AxisRefAttr> axes = split.factorAxes[factor];
  if (axes.empty())
    return tp::clonePartitioned(*this, builder, operands, types);
  ImplicitLocOpBuilder b(getLoc(), builder);
  int64_t rows = cast<RankedTensorType>(types[0]).getDimSize(0);
  if (rows == 0)
    return SmallVector<Value>{zeros(b, types[0])};
  int64_t size = getType().getDimSize(0);
  ArrayRef<int64_t> segments = split.factorSegments[factor];
  auto [mine, index] =
      segments.empty()
          ? buildLocalIndex(b, operands[0], size, rows, axes, split.mesh)
          : buildLocalIndex(b, operands[0], segments, axes, split);
  Value own = keep(b, asColumn(b, mine), operands[1]);
  return SmallVector<Value>{
      withBound(ScatterAddRowsOp::create(b, types[0], index, own), size)};
}

//===----------------------------------------------------------------------===//
// Groups of rows
//===----------------------------------------------------------------------===//

/// The bounds of this rank's `localSize` groups of the `size` ones from `begin`
/// on.
static Value buildLocalBounds(ImplicitLocOpBuilder &b, Value bounds,
                              int64_t begin, int64_t size, int64_t localSize,
                              ArrayRef<tp::AxisRefAttr> axes, tp::MeshOp mesh) {
  if (axes.empty())
    return bounds;
  Type element = elementOf(bounds);
  Value first = getOffset(b, element, size, axes, mesh);
  if (begin)
    first = add(b, first, integer(b, element, begin));
  Value places = add(b, iota(b, {localSize + 1}, 0, element), first);
  return IndexSelectOp::create(b, bounds, places, 0);
}

/// `x`'s part `number` of `numParts` along dimension 0.
static Value getPart(ImplicitLocOpBuilder &b, Value x, int64_t number,
                     int64_t numParts) {
  if (numParts == 1)
    return x;
  SmallVector<int64_t> shape(shapeOf(x));
  shape[0] /= numParts;
  return SliceOp::create(b, typeOf(x).clone(shape), x, /*dim=*/0,
                         number * shape[0], /*step=*/1);
}

/// Calls build(part, bounds of its groups on this rank) for each of the rank's
/// parts, and joins the results. The rank has `localSize` of all `size` groups;
/// `split` splits those of a part, which are `factor`. If it splits segments of
/// them, each of which has its own bounds, it calls build for each.
static Value
buildParts(ImplicitLocOpBuilder &b, Value bounds, Value wholeBounds,
           int64_t size, int64_t localSize, const OpSplit &split,
           unsigned factor,
           function_ref<Value(function_ref<Value(Value)>, Value)> build) {
  bool hasParts = rankOf(bounds) == 2;
  int64_t numParts = hasParts ? shapeOf(bounds)[0] : 1;
  if (hasParts)
    size /= shapeOf(wholeBounds)[0];
  tp::MeshOp mesh = split.mesh;
  ArrayRef<tp::AxisRefAttr> axes = split.factorAxes[factor];
  SmallVector<int64_t> segments(split.factorSegments[factor]);
  if (segments.empty())
    segments = {size};
  SmallVector<Value> results;
  for (int64_t number = 0; number < numParts; ++number) {
    auto take = [&](Value x) { return getPart(b, x, number, numParts); };
    Value own = bounds;
    if (hasParts)
      own = reshape(b, take(bounds), {shapeOf(bounds)[1]});
    int64_t begin = 0;
    for (int64_t segment : segments) {
      int64_t count = segments.size() == 1 ? localSize / numParts
                                           : segment / mesh.getAxesSize(axes);
      Value ownBounds =
          buildLocalBounds(b, own, begin, segment, count, axes, mesh);
      results.push_back(build(take, ownBounds));
      begin += segment;
    }
  }
  if (results.size() == 1)
    return results.front();
  SmallVector<int64_t> shape(shapeOf(results.front()));
  shape[0] = 0;
  for (Value result : results)
    shape[0] += shapeOf(result)[0];
  return ConcatOp::create(b, typeOf(results.front()).clone(shape), results,
                          b.getI64IntegerAttr(0));
}

/// The factor of the groups of a part.
static unsigned getGroupFactor(const tp::TensorFactors &matrices) {
  return matrices[0].back();
}

FailureOr<SmallVector<Value>> GroupedMatmulOp::partition(OpBuilder &builder,
                                                         ValueRange operands,
                                                         TypeRange types,
                                                         const OpSplit &split) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  int64_t numGroups = shapeOf(operands[1])[0];
  if (numGroups == 0)
    return SmallVector<Value>{zeros(b, types[0])};
  unsigned factor = getGroupFactor(getShardingRule().operands[1]);
  return SmallVector<Value>{
      buildParts(b, operands[2], getBounds(),
                 getWeight().getType().getDimSize(0), numGroups, split, factor,
                 [&](function_ref<Value(Value)> take, Value bounds) -> Value {
                   return GroupedMatmulOp::create(b, take(operands[0]),
                                                  take(operands[1]), bounds);
                 })};
}

FailureOr<SmallVector<Value>>
GroupedOuterSumOp::partition(OpBuilder &builder, ValueRange operands,
                             TypeRange types, const OpSplit &split) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  int64_t numGroups = cast<RankedTensorType>(types[0]).getDimSize(0);
  if (numGroups == 0)
    return SmallVector<Value>{zeros(b, types[0])};
  unsigned factor = getGroupFactor(getShardingRule().results[0]);
  return SmallVector<Value>{buildParts(
      b, operands[2], getBounds(), getType().getDimSize(0), numGroups, split,
      factor, [&](function_ref<Value(Value)> take, Value bounds) -> Value {
        return GroupedOuterSumOp::create(b, take(operands[0]),
                                         take(operands[1]), bounds);
      })};
}
