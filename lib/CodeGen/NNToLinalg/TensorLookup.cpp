//===- TensorLookup.cpp - tensor.gather and tensor.scatter ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/CodeGen/NNToLinalg/TensorLookup.h"
#include "LinalgBuilders.h"
#include "LookupLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::tp::nnlinalg;

/// `index`, a scalar or a tensor of any width, as i64, or unchanged if it is
/// i32.
static Value buildWideIndex(ImplicitLocOpBuilder &b, Value index) {
  Type element = getElementTypeOrSelf(index);
  Type i64 = b.getI64Type();
  if (auto tensor = dyn_cast<RankedTensorType>(index.getType()))
    i64 = tensor.clone(i64);
  if (element.isIndex())
    return arith::IndexCastOp::create(b, i64, index);
  if (element.getIntOrFloatBitWidth() < 32)
    return arith::ExtSIOp::create(b, i64, index);
  return index;
}

/// The constant indices, one list of coordinates after the other; none if they
/// are computed.
static std::optional<SmallVector<int64_t>> getConstantIndices(Value indices) {
  DenseIntElementsAttr elements;
  if (!matchPattern(indices, m_Constant(&elements)))
    return std::nullopt;
  SmallVector<int64_t> values;
  for (const APInt &value : elements.getValues<APInt>())
    values.push_back(value.getSExtValue());
  return values;
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

/// Checks coordinate `position` of all indices.
static void checkCoordinate(ImplicitLocOpBuilder &b, tensor::GatherOp op,
                            int64_t position, int64_t bound) {
  RankedTensorType type = op.getIndicesType();
  int64_t batchRank = type.getRank() - 1;
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes;
  for (int64_t size : type.getShape())
    sizes.push_back(b.getIndexAttr(size));
  offsets[batchRank] = b.getIndexAttr(position);
  sizes[batchRank] = b.getIndexAttr(1);
  auto column =
      RankedTensorType::get(type.getShape().drop_back(), type.getElementType());
  Value values = tensor::ExtractSliceOp::create(b, column, op.getIndices(),
                                                offsets, sizes, strides);
  buildIndexCheck(b, op, buildWideIndex(b, values), bound);
}

void mlir::tp::lowerGather(RewriterBase &rewriter, tensor::GatherOp op) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  RankedTensorType source = op.getSourceType(), type = op.getResultType();
  ArrayRef<int64_t> dims = op.getGatherDims();
  int64_t batchRank = op.getIndicesType().getRank() - 1;
  bool keepsDims = type.getRank() == batchRank + source.getRank();

  std::optional<SmallVector<int64_t>> known =
      getConstantIndices(op.getIndices());
  for (auto [position, dim] : llvm::enumerate(dims)) {
    int64_t bound = source.getDimSize(dim);
    bool isInRange = known.has_value();
    for (size_t i = position; known && i < known->size(); i += dims.size())
      isInRange &= 0 <= (*known)[i] && (*known)[i] < bound;
    if (!isInRange)
      checkCoordinate(b, op, position, bound);
  }
  if (source.getNumElements() == 0) {
    // There is nothing to read, and no index that would pass the check.
    Attribute zero = b.getZeroAttr(type.getElementType());
    rewriter.replaceOp(op,
                       buildConstant(b, DenseElementsAttr::get(type, zero)));
    return;
  }
  rewriter.replaceOp(
      op,
      buildElementwise(
          b, type, ArrayRef<Operand>(),
          [&](ImplicitLocOpBuilder &b, ArrayRef<Value>) -> Value {
            SmallVector<Value> at, coordinates;
            for (int64_t i = 0; i < batchRank; ++i)
              at.push_back(linalg::IndexOp::create(b, i));
            at.push_back(Value());
            int64_t next = batchRank;
            for (int64_t dim = 0; dim < source.getRank(); ++dim) {
              auto *position = llvm::find(dims, dim);
              if (position == dims.end()) {
                coordinates.push_back(linalg::IndexOp::create(b, next++));
                continue;
              }
              next += keepsDims;
              at.back() =
                  arith::ConstantIndexOp::create(b, position - dims.begin());
              Value index = tensor::ExtractOp::create(b, op.getIndices(), at);
              coordinates.push_back(buildSafeIndex(b, buildWideIndex(b, index),
                                                   source.getDimSize(dim)));
            }
            return tensor::ExtractOp::create(b, op.getSource(), coordinates);
          }));
}

//===----------------------------------------------------------------------===//
// Scatter
//===----------------------------------------------------------------------===//

/// For each position along the scattered dimensions, in row-major order, the
/// number of the index vector that names it, or -1.
static FailureOr<SmallVector<int64_t>> invertIndices(tensor::ScatterOp op) {
  std::optional<SmallVector<int64_t>> indices =
      getConstantIndices(op.getIndices());
  if (!indices)
    return op.emitError("'tensor.scatter' can be compiled only with constant "
                        "indices, but these are computed at run time");
  ArrayRef<int64_t> dims = op.getScatterDims();
  int64_t numPlaces = 1;
  for (int64_t dim : dims)
    numPlaces *= op.getDestType().getDimSize(dim);
  SmallVector<int64_t> inverse(numPlaces, -1);
  for (size_t i = 0; i < indices->size(); i += dims.size()) {
    int64_t place = 0;
    for (auto [j, dim] : llvm::enumerate(dims)) {
      int64_t index = (*indices)[i + j],
              bound = op.getDestType().getDimSize(dim);
      if (index < 0 || index >= bound)
        return op.emitError("'tensor.scatter' has index ")
               << index << " along dimension " << dim << ", which has " << bound
               << " elements";
      place = place * bound + index;
    }
    if (inverse[place] >= 0)
      return op.emitError("'tensor.scatter' is marked unique, but its index "
                          "vectors ")
             << inverse[place] << " and " << i / dims.size()
             << " name the same place";
    inverse[place] = i / dims.size();
  }
  return inverse;
}

LogicalResult mlir::tp::lowerScatter(RewriterBase &rewriter,
                                     tensor::ScatterOp op) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  FailureOr<SmallVector<int64_t>> inverse = invertIndices(op);
  if (failed(inverse))
    return failure();
  if (op.getSourceType().getNumElements() == 0) {
    rewriter.replaceOp(op, op.getDest());
    return success();
  }
  RankedTensorType type = op.getResultType();
  ArrayRef<int64_t> dims = op.getScatterDims();
  int64_t batchRank = op.getIndicesType().getRank() - 1;
  bool keepsDims = op.getSourceType().getRank() == batchRank + type.getRank();

  // Reshape the source to one slice after the other.
  SmallVector<int64_t> slices{op.getIndicesType().getNumElements() /
                              static_cast<int64_t>(dims.size())};
  llvm::append_range(slices,
                     op.getSourceType().getShape().drop_front(batchRank));
  Value source = buildReshape(b, op.getSource(), slices);

  SmallVector<int64_t> places;
  SmallVector<AffineExpr> along;
  for (int64_t dim : dims) {
    places.push_back(type.getDimSize(dim));
    along.push_back(b.getAffineDimExpr(dim));
  }
  auto placesType = RankedTensorType::get(places, b.getI64Type());
  Value numbers = arith::ConstantOp::create(
      b, DenseElementsAttr::get(placesType, ArrayRef<int64_t>(*inverse)));
  Operand inputs[] = {
      {op.getDest(), b.getMultiDimIdentityMap(type.getRank())},
      {numbers, AffineMap::get(type.getRank(), 0, along, b.getContext())}};
  rewriter.replaceOp(
      op, buildElementwise(
              b, type, ArrayRef<Operand>(inputs),
              [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args) -> Value {
                Value zero = getScalar(b, b.getI64Type(), 0);
                Value isWritten = arith::CmpIOp::create(
                    b, arith::CmpIPredicate::sge, args[1], zero);
                SmallVector<Value> coordinates = {
                    buildSafeIndex(b, args[1], slices[0])};
                for (int64_t dim = 0; dim < type.getRank(); ++dim) {
                  if (!llvm::is_contained(dims, dim))
                    coordinates.push_back(linalg::IndexOp::create(b, dim));
                  else if (keepsDims)
                    coordinates.push_back(arith::ConstantIndexOp::create(b, 0));
                }
                Value written =
                    tensor::ExtractOp::create(b, source, coordinates);
                return arith::SelectOp::create(b, isWritten, written, args[0]);
              }));
  return success();
}
