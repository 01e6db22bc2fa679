//===- AtenIndex.cpp - gather, index_select, indexing by tensors ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AtenIndexing.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;

static LogicalResult gather(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self"), index = call.tensor("index");
  if (rankOf(self) == 0 || rankOf(index) == 0)
    return call.unsupported("of a scalar");
  int64_t dim = call.dim("dim", rankOf(self));
  return call.result(nn::GatherOp::create(b, self, index, dim));
}

static Value indexSelect(ImportBuilder &b, Value v, int64_t dim, Value index) {
  return nn::IndexSelectOp::create(b, v, index, dim);
}

static LogicalResult indexSelectOp(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self"), index = call.tensor("index");
  if (rankOf(self) == 0)
    return call.unsupported("of a scalar");
  index = b.reshape(index, {typeOf(index).getNumElements()});
  return call.result(
      indexSelect(b, self, call.dim("dim", rankOf(self)), index));
}

//===----------------------------------------------------------------------===//
// x[index, …]
//===----------------------------------------------------------------------===//

/// The dimension of the common shape along which a constant index varies, if
/// there is at most one such; -1 if it is one number.
static std::optional<int64_t> onlyDim(const ConstantIndex &index,
                                      int64_t commonRank) {
  int64_t found = -1;
  for (auto [dim, size] : llvm::enumerate(index.shape)) {
    if (size == 1)
      continue;
    if (found >= 0)
      return std::nullopt;
    found = commonRank - int64_t(index.shape.size()) + int64_t(dim);
  }
  return found;
}

/// Handles constant indices that each vary along a dimension of their own, in
/// order, as in masks of transformers: x[b[:, None], k[None, :]]. They become a
/// slice or a pick per dimension, so the dimensions stay separate and can be
/// split.
static Value indexSeparately(ImportBuilder &b, const TensorIndexing &indexing) {
  int64_t rank = indexing.shape.size(), previous = -1;
  for (const auto &constant : indexing.constants) {
    if (!constant)
      return Value();
    auto dim = onlyDim(*constant, rank);
    if (!dim || (*dim >= 0 && *dim <= previous))
      return Value();
    previous = std::max(previous, *dim);
  }
  Value v = indexing.source;
  for (auto [i, constant] : llvm::enumerate(indexing.constants)) {
    int64_t dim = indexing.first + i, size = shapeOf(v)[dim];
    auto values = llvm::map_to_vector(constant->values, [&](int64_t value) {
      return value < 0 ? value + size : value;
    });
    if (values.empty())
      return Value();
    v = b.pick(v, dim, values);
  }
  return v;
}

/// Looks `index` up among the numbers below `size`, which reports an index out
/// of range. In an index tuple it would otherwise give the position of another
/// element.
static Value checked(ImportBuilder &b, Value index, int64_t size) {
  SmallVector<int64_t> shape(shapeOf(index));
  Value flat = b.reshape(index, {typeOf(index).getNumElements()});
  Value numbers = iota(b, {size}, 0, elementOf(index));
  return b.reshape(indexSelect(b, numbers, 0, flat), shape);
}

static llvm::SmallVector<int64_t> replaceDims(const TensorIndexing &indexing,
                                              ArrayRef<int64_t> replacement) {
  ArrayRef<int64_t> shape = shapeOf(indexing.source);
  llvm::SmallVector<int64_t> replaced(shape.take_front(indexing.first));
  llvm::append_range(replaced, replacement);
  llvm::append_range(
      replaced, shape.drop_front(indexing.first + indexing.indices.size()));
  return replaced;
}

llvm::SmallVector<int64_t> TensorIndexing::getResultShape() const {
  return replaceDims(*this, shape);
}

llvm::SmallVector<int64_t> TensorIndexing::getMergedShape() const {
  return replaceDims(*this, ShapedType::getNumElements(
                                shapeOf(source).slice(first, indices.size())));
}

Value mlir::tp::buildPositions(ImportBuilder &b,
                               const TensorIndexing &indexing) {
  ArrayRef<int64_t> shape = shapeOf(indexing.source);
  // Positions of several indices, whose types may differ, are 64-bit numbers.
  bool isOne = indexing.indices.size() == 1;
  Type type = isOne ? elementOf(indexing.indices.front()) : b.getI64Type();
  Value position;
  for (size_t i = 0; i < indexing.indices.size(); ++i) {
    int64_t size = shape[indexing.first + i];
    Value index = castTo(b, indexing.indices[i], type);
    const auto &known = indexing.constants[i];
    if (!known || llvm::any_of(known->values, [](int64_t v) { return v < 0; }))
      index = b.wrapIndex(index, size);
    if (!known && !isOne)
      index = checked(b, index, size);
    position = position
                   ? add(b, mul(b, position, integer(b, type, size)), index)
                   : index;
  }
  position = broadcast(b, position, indexing.shape);
  return b.reshape(position, {typeOf(position).getNumElements()});
}

/// Permutes the indexed dimensions `dims` to the front: there PyTorch puts the
/// indices' common shape if they aren't next to each other.
static void moveToFront(ImportBuilder &b, TensorIndexing &indexing,
                        ArrayRef<int64_t> dims) {
  indexing.permutation.assign(dims.begin(), dims.end());
  for (int64_t dim = 0; dim < rankOf(indexing.source); ++dim)
    if (!llvm::is_contained(dims, dim))
      indexing.permutation.push_back(dim);
  indexing.source = b.transpose(indexing.source, indexing.permutation);
  indexing.first = 0;
}

FailureOr<TensorIndexing> mlir::tp::readIndexing(AtenCall &call,
                                                 ImportBuilder &b) {
  TensorIndexing indexing;
  indexing.source = call.tensor("self");
  llvm::SmallVector<int64_t> dims;
  for (auto [dim, entry] : llvm::enumerate(call.tensors("indices"))) {
    if (!entry)
      continue;
    if (elementOf(entry).isUnsignedInteger())
      return call.unsupported("by a uint8 tensor, which PyTorch takes for a "
                              "mask; x[i.long()] takes it for indices");
    if (isBool(entry))
      return call.unsupported("by a boolean mask: the number of results "
                              "depends on the data");
    dims.push_back(dim);
    indexing.indices.push_back(entry);
    auto &known =
        indexing.constants.emplace_back(call.constantIndex("indices", dim));
    int64_t size = shapeOf(indexing.source)[dim];
    if (known)
      for (int64_t value : known->values)
        if (value < -size || value >= size)
          return call.unsupported(
              "with the index " + llvm::Twine(value) +
              " of a dimension of size " + llvm::Twine(size) +
              (size == 0 ? ""
                         : ", expected " + std::to_string(-size) + " to " +
                               std::to_string(size - 1)));
    llvm::SmallVector<int64_t> both;
    OpTrait::util::getBroadcastedShape(indexing.shape, shapeOf(entry), both);
    indexing.shape = both;
  }
  if (dims.empty())
    return indexing;
  indexing.first = dims.front();
  if (dims.back() - dims.front() >= int64_t(dims.size()))
    moveToFront(b, indexing, dims);
  return indexing;
}

static LogicalResult index(AtenCall &call, ImportBuilder &b) {
  FailureOr<TensorIndexing> indexing = readIndexing(call, b);
  if (failed(indexing))
    return failure();
  if (indexing->indices.empty())
    return call.result(indexing->source);
  Value v = indexSeparately(b, *indexing);
  if (!v)
    v = indexSelect(b, b.reshape(indexing->source, indexing->getMergedShape()),
                    indexing->first, buildPositions(b, *indexing));
  return call.result(b.reshape(v, call.resultShape()));
}

/// As many indices as elements: gather along a dimension, to which the others
/// broadcast.
static LogicalResult takeAlongDim(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self"), indices = call.tensor("indices");
  if (!call.has("dim")) {
    self = b.reshape(self, {typeOf(self).getNumElements()});
    indices = b.reshape(indices, {typeOf(indices).getNumElements()});
    return call.result(
        b.reshape(indexSelect(b, self, 0, indices), call.resultShape()));
  }
  int64_t dim = call.dim("dim", rankOf(self));
  llvm::SmallVector<int64_t> shape(call.resultShape());
  indices = broadcast(b, indices, shape);
  shape[dim] = shapeOf(self)[dim];
  self = broadcast(b, self, shape);
  return call.result(nn::GatherOp::create(b, self, indices, dim));
}

void mlir::tp::addIndexOps(AtenTable &table) {
  table["gather"] = {
      .run = gather, .reads = "self dim index", .noEffect = "sparse_grad"};
  table["index_select"] = {indexSelectOp, "self dim index"};
  table["index"] = {index, "self indices"};
  table["_unsafe_index"] = {index, "self indices"};
  table["take_along_dim"] = {takeAlongDim, "self indices dim"};
}
