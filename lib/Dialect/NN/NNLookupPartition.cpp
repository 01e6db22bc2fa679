//===- NNLookupPartition.cpp - lookups in a table that is split -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each rank holds a range of the rows that indices name. It looks up, or adds
// to, its own rows, and takes zero for the others. For lookups, the sum over
// the ranks is the global result.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/TP.h"

using namespace mlir;
using namespace mlir::nn;
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

static RankedTensorType getType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static Value integer(ImplicitLocOpBuilder &b, Type element, int64_t value) {
  return ConstantOp::create(
      b, DenseElementsAttr::get(
             RankedTensorType::get({}, element),
             ArrayRef<Attribute>{b.getIntegerAttr(element, value)}));
}

static Value zeros(ImplicitLocOpBuilder &b, Type type) {
  return ConstantOp::create(b, cast<ElementsAttr>(b.getZeroAttr(type)));
}

/// This rank has `numRows` of all `size` rows, which `axes` split.
static LocalIndex buildLocalIndex(ImplicitLocOpBuilder &b, Value indices,
                                  int64_t size, int64_t numRows,
                                  ArrayRef<tp::AxisRefAttr> axes,
                                  tp::MeshOp mesh) {
  RankedTensorType type = getType(indices);
  Type element = type.getElementType();
  auto mask = type.clone(b.getI1Type());
  auto compare = [&](ComparePredicate predicate, Value value, int64_t bound) {
    return CompareOp::create(b, mask, predicate, value,
                             integer(b, element, bound));
  };
  auto inRange = [&](Value value, int64_t end) -> Value {
    return LogicalAndOp::create(b, mask,
                                compare(ComparePredicate::GE, value, 0),
                                compare(ComparePredicate::LT, value, end));
  };
  Value first = tp::ShardOffsetOp::create(
      b, RankedTensorType::get({}, b.getI64Type()), b.getI64IntegerAttr(size),
      FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
      tp::AxisListAttr::get(b.getContext(), axes));
  if (!element.isInteger(64))
    first = CastOp::create(b, RankedTensorType::get({}, element), first);
  Value relative = SubOp::create(b, type, indices, first);
  Value mine = inRange(relative, numRows);
  Value other = WhereOp::create(b, type, inRange(indices, size),
                                integer(b, element, 0), indices);
  return {mine, WhereOp::create(b, type, mine, relative, other)};
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
  SmallVector<int64_t> shape(getType(mask).getShape());
  shape.push_back(1);
  return ReshapeOp::create(b, getType(mask).clone(shape), mask);
}

static Value keep(ImplicitLocOpBuilder &b, Value mask, Value value) {
  Value zero =
      zeros(b, RankedTensorType::get({}, getType(value).getElementType()));
  return WhereOp::create(b, value.getType(), mask, value, zero);
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
  int64_t rows = ::getType(weight).getDimSize(0);
  if (rows == 0) // no row, no contribution
    return SmallVector<Value>{zeros(b, types[0])};
  int64_t size = getWeight().getType().getDimSize(0);
  auto [mine, index] =
      buildLocalIndex(b, indices, size, rows, axes, split.mesh);
  Value found = withBound(
      EmbeddingOp::create(b, types[0], index, weight, IntegerAttr()), size);
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
  int64_t rows = ::getType(operands[0]).getDimSize(getDim());
  if (rows == 0)
    return SmallVector<Value>{zeros(b, types[0])};
  int64_t size = getInput().getType().getDimSize(getDim());
  auto [mine, index] =
      buildLocalIndex(b, operands[1], size, rows, axes, split.mesh);
  Value found = withBound(
      GatherOp::create(b, types[0], operands[0], index, getDimAttr()), size);
  return SmallVector<Value>{keep(b, mine, found)};
}

FailureOr<SmallVector<Value>>
ScatterAddRowsOp::partition(OpBuilder &builder, ValueRange operands,
                            TypeRange types, const OpSplit &split) {
  ArrayRef<tp::AxisRefAttr> axes =
      split.factorAxes[getShardingRule().results[0][0][0]];
  if (axes.empty())
    return tp::clonePartitioned(*this, builder, operands, types);
  ImplicitLocOpBuilder b(getLoc(), builder);
  int64_t rows = cast<RankedTensorType>(types[0]).getDimSize(0);
  if (rows == 0)
    return SmallVector<Value>{zeros(b, types[0])};
  int64_t size = getType().getDimSize(0);
  auto [mine, index] =
      buildLocalIndex(b, operands[0], size, rows, axes, split.mesh);
  Value own = keep(b, asColumn(b, mine), operands[1]);
  return SmallVector<Value>{
      withBound(ScatterAddRowsOp::create(b, types[0], index, own), size)};
}
