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

RankedTensorType tp::resize(RankedTensorType type, int64_t dim, int64_t size) {
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

namespace {

/// The finest shape that two shapes of equally many elements refine: it has a
/// dimension wherever the products of the leading sizes agree.
struct CommonShape {
  SmallVector<int64_t> sizes;
  /// The dimensions of either shape, by dimension of the common one.
  SmallVector<ReassociationIndices> from, to;

  CommonShape(ArrayRef<int64_t> fromSizes, ArrayRef<int64_t> toSizes) {
    if (find(fromSizes, toSizes))
      return;
    // Different empty shapes may have nothing else in common.
    sizes = {0};
    from = {llvm::to_vector<2>(llvm::seq<int64_t>(fromSizes.size()))};
    to = {llvm::to_vector<2>(llvm::seq<int64_t>(toSizes.size()))};
  }

private:
  bool find(ArrayRef<int64_t> fromSizes, ArrayRef<int64_t> toSizes);
};

} // namespace

bool CommonShape::find(ArrayRef<int64_t> fromSizes, ArrayRef<int64_t> toSizes) {
  // Empty dimensions correspond as others do, as if they had a size that is a
  // prime.
  auto getFactor = [](int64_t size) -> uint64_t {
    return size == 0 ? 2147483647 : size;
  };
  size_t i = 0, j = 0;
  while (i < fromSizes.size() && j < toSizes.size()) {
    from.push_back({static_cast<int64_t>(i)});
    to.push_back({static_cast<int64_t>(j)});
    int64_t size = fromSizes[i], otherSize = toSizes[j];
    uint64_t left = getFactor(fromSizes[i++]), right = getFactor(toSizes[j++]);
    while (left != right) {
      if (left < right ? i == fromSizes.size() : j == toSizes.size())
        return false;
      if (left < right) {
        from.back().push_back(i);
        size *= fromSizes[i];
        left *= getFactor(fromSizes[i++]);
      } else {
        to.back().push_back(j);
        otherSize *= toSizes[j];
        right *= getFactor(toSizes[j++]);
      }
    }
    if (size != otherSize)
      return false;
    sizes.push_back(size);
  }
  // Dimensions of size 1 may be left over, on one side.
  for (; i < fromSizes.size() && !from.empty(); ++i) {
    if (fromSizes[i] != 1)
      return false;
    from.back().push_back(i);
  }
  for (; j < toSizes.size() && !to.empty(); ++j) {
    if (toSizes[j] != 1)
      return false;
    to.back().push_back(j);
  }
  return true;
}

/// `value` is collapsed to the common shape, and expanded from it.
Value TensorBuilder::createReshape(OpBuilder &b, Location loc,
                                   RankedTensorType type, Value value) const {
  RankedTensorType own = typeOf(value);
  CommonShape common(own.getShape(), type.getShape());
  if (own.getShape() != ArrayRef(common.sizes))
    value = tensor::CollapseShapeOp::create(b, loc, type.clone(common.sizes),
                                            value, common.from);
  if (type.getShape() != ArrayRef(common.sizes))
    value = tensor::ExpandShapeOp::create(b, loc, type, value, common.to);
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
