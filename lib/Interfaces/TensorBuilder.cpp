//===- TensorBuilder.cpp - Ops in the dialect of a program ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Interfaces/TensorBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dialect.h"

using namespace mlir;
using namespace mlir::tp;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static RankedTensorType resize(RankedTensorType type, int64_t dim,
                               int64_t size) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  return type.clone(shape);
}

const TensorBuilder &TensorBuilder::getUpstream() {
  static const TensorBuilder upstream;
  return upstream;
}

const TensorBuilder &TensorBuilder::get(Operation *op) {
  const TensorBuilder *found = &getUpstream();
  op->getParentOfType<ModuleOp>().walk([&](Operation *each) {
    auto *own = dyn_cast_if_present<TensorBuilderInterface>(each->getDialect());
    if (!own)
      return WalkResult::advance();
    found = own;
    return WalkResult::interrupt();
  });
  return *found;
}

//===----------------------------------------------------------------------===//
// In any dialect
//===----------------------------------------------------------------------===//

Value TensorBuilder::reshape(OpBuilder &b, Location loc, Value value,
                             ArrayRef<int64_t> shape) const {
  RankedTensorType type = typeOf(value);
  return type.getShape() == shape
             ? value
             : createReshape(b, loc, type.clone(shape), value);
}

Value TensorBuilder::transpose(OpBuilder &b, Location loc, Value value,
                               ArrayRef<int64_t> permutation) const {
  if (isIdentityPermutation(permutation))
    return value;
  RankedTensorType type = typeOf(value);
  return createTranspose(
      b, loc, type.clone(applyPermutation(type.getShape(), permutation)), value,
      permutation);
}

Value TensorBuilder::slice(OpBuilder &b, Location loc, Value value, int64_t dim,
                           int64_t start, int64_t size) const {
  RankedTensorType type = typeOf(value);
  return type.getDimSize(dim) == size
             ? value
             : createSlice(b, loc, resize(type, dim, size), value, dim, start);
}

Value TensorBuilder::concat(OpBuilder &b, Location loc, ArrayRef<Value> values,
                            int64_t dim) const {
  if (values.size() == 1)
    return values.front();
  int64_t size = 0;
  for (Value value : values)
    size += typeOf(value).getDimSize(dim);
  return createConcat(b, loc, resize(typeOf(values.front()), dim, size), values,
                      dim);
}

Value TensorBuilder::broadcast(OpBuilder &b, Location loc, Value value,
                               RankedTensorType type) const {
  return value.getType() == type ? value : createBroadcast(b, loc, type, value);
}

//===----------------------------------------------------------------------===//
// Upstream ops
//===----------------------------------------------------------------------===//

static Value buildEmpty(OpBuilder &b, Location loc, RankedTensorType type) {
  return tensor::EmptyOp::create(b, loc, type, ValueRange());
}

Value TensorBuilder::add(OpBuilder &b, Location loc, Value lhs, Value rhs,
                         RankedTensorType type) const {
  lhs = broadcast(b, loc, lhs, type);
  rhs = broadcast(b, loc, rhs, type);
  if (isa<FloatType>(type.getElementType()))
    return arith::AddFOp::create(b, loc, lhs, rhs);
  return arith::AddIOp::create(b, loc, lhs, rhs);
}

Value TensorBuilder::constant(OpBuilder &b, Location loc,
                              ElementsAttr value) const {
  return arith::ConstantOp::create(b, loc, value);
}

/// The finest shape that both sides refine has a dimension wherever the
/// products of the leading sizes agree. `value` is collapsed to it, and
/// expanded from it.
Value TensorBuilder::createReshape(OpBuilder &b, Location loc,
                                   RankedTensorType type, Value value) const {
  ArrayRef<int64_t> from = typeOf(value).getShape(), shape = type.getShape();
  if (type.getNumElements() == 0)
    return buildEmpty(b, loc, type);
  SmallVector<int64_t> common;
  SmallVector<ReassociationIndices> merged, split;
  size_t i = 0, j = 0;
  while (i < from.size() && j < shape.size()) {
    merged.push_back({static_cast<int64_t>(i)});
    split.push_back({static_cast<int64_t>(j)});
    int64_t left = from[i++], right = shape[j++];
    while (left != right) {
      if (left < right) {
        merged.back().push_back(i);
        left *= from[i++];
      } else {
        split.back().push_back(j);
        right *= shape[j++];
      }
    }
    common.push_back(left);
  }
  // Dimensions that are left over, on one side, have size 1.
  for (; i < from.size() && !merged.empty(); ++i)
    merged.back().push_back(i);
  for (; j < shape.size() && !split.empty(); ++j)
    split.back().push_back(j);

  if (from.size() != common.size())
    value = tensor::CollapseShapeOp::create(b, loc, type.clone(common), value,
                                            merged);
  if (shape.size() != common.size())
    value = tensor::ExpandShapeOp::create(b, loc, type, value, split);
  return value;
}

Value TensorBuilder::createTranspose(OpBuilder &b, Location loc,
                                     RankedTensorType type, Value value,
                                     ArrayRef<int64_t> permutation) const {
  return linalg::TransposeOp::create(b, loc, value, buildEmpty(b, loc, type),
                                     permutation)
      ->getResult(0);
}

Value TensorBuilder::createSlice(OpBuilder &b, Location loc,
                                 RankedTensorType type, Value value,
                                 int64_t dim, int64_t start) const {
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)),
      strides(type.getRank(), b.getIndexAttr(1));
  offsets[dim] = b.getIndexAttr(start);
  return tensor::ExtractSliceOp::create(
      b, loc, type, value, offsets,
      getAsIndexOpFoldResult(b.getContext(), type.getShape()), strides);
}

Value TensorBuilder::createConcat(OpBuilder &b, Location loc,
                                  RankedTensorType type, ArrayRef<Value> values,
                                  int64_t dim) const {
  return tensor::ConcatOp::create(b, loc, type, dim, values);
}

Value TensorBuilder::createBroadcast(OpBuilder &b, Location loc,
                                     RankedTensorType type, Value value) const {
  ArrayRef<int64_t> own = typeOf(value).getShape();
  int64_t missing = type.getRank() - own.size();
  SmallVector<int64_t> kept, added;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    int64_t ownDim = static_cast<int64_t>(dim) - missing;
    if (ownDim >= 0 && own[ownDim] == size)
      kept.push_back(size);
    else
      added.push_back(dim);
  }
  return linalg::BroadcastOp::create(b, loc, reshape(b, loc, value, kept),
                                     buildEmpty(b, loc, type), added)
      ->getResult(0);
}
