//===- AtenStrided.cpp - parts of tensors, and their replacement ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AtenCall.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;

/// An op of which PyTorch has computed where its result lies in memory.
static LogicalResult view(AtenCall &call, ImportBuilder &) {
  Value result = call.view();
  return result ? call.result(result) : failure();
}

static LogicalResult sliceScatter(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  int64_t dim = call.dim("dim", rankOf(self));
  int64_t size = shapeOf(self)[dim];
  auto clamp = [&](StringRef name, int64_t otherwise) {
    int64_t value = call.has(name) ? call.integer(name) : otherwise;
    return std::clamp(value < 0 ? value + size : value, int64_t(0), size);
  };
  int64_t start = clamp("start", 0), end = std::max(start, clamp("end", size));
  int64_t step = call.integer("step");
  SmallVector<int64_t> shape(shapeOf(self));
  shape[dim] = (end - start + step - 1) / step;
  Value part = castTo(b, call.tensor("src"), elementOf(self));
  return call.result(
      b.sliceScatter(self, broadcast(b, part, shape), dim, start, step));
}

static LogicalResult selectScatter(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  int64_t dim = call.dim("dim", rankOf(self));
  SmallVector<int64_t> shape(shapeOf(self));
  int64_t index = call.dim("index", shape[dim]);
  shape[dim] = 1;
  Value part = castTo(b, call.tensor("src"), elementOf(self));
  return call.result(b.sliceScatter(self, b.reshape(part, shape), dim, index));
}

/// Replaces the view `part` of `self`, which has the layout `base`.
static LogicalResult replace(AtenCall &call, ImportBuilder &b,
                             const StridedLayout &base,
                             const StridedLayout &part) {
  std::string why;
  auto view = StridedView::find(base, part, why);
  if (view && !view->isWritable())
    why = "it repeats elements";
  if (!why.empty())
    return call.unsupported("with a part that can't be written: " + why);
  Value self = call.tensor("self");
  return call.result(
      view->write(b, self, castTo(b, call.tensor("src"), elementOf(self))));
}

static LogicalResult diagonalScatter(AtenCall &call, ImportBuilder &b) {
  StridedLayout base = StridedLayout::contiguous(call.resultShape());
  int64_t rank = base.sizes.size(), offset = call.integer("offset");
  int64_t rows = call.dim("dim1", rank), columns = call.dim("dim2", rank);
  int64_t firstRow = std::max<int64_t>(-offset, 0);
  int64_t firstColumn = std::max<int64_t>(offset, 0);
  StridedLayout part;
  part.offset =
      firstRow * base.strides[rows] + firstColumn * base.strides[columns];
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != rows && dim != columns) {
      part.sizes.push_back(base.sizes[dim]);
      part.strides.push_back(base.strides[dim]);
    }
  part.sizes.push_back(std::max<int64_t>(
      std::min(base.sizes[rows] - firstRow, base.sizes[columns] - firstColumn),
      0));
  part.strides.push_back(base.strides[rows] + base.strides[columns]);
  return replace(call, b, base, part);
}

static LogicalResult asStridedScatter(AtenCall &call, ImportBuilder &b) {
  StridedLayout base = call.layout("self");
  StridedLayout part{call.integers("size"), call.integers("stride"),
                     call.has("storage_offset") ? call.integer("storage_offset")
                                                : base.offset};
  return replace(call, b, base, part);
}

/// The diagonal of all dimensions. If a matrix has more rows than columns,
/// `wrap` begins again below the diagonal, after a row without an element.
static LogicalResult fillDiagonal(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  ArrayRef<int64_t> shape = shapeOf(self);
  int64_t step = 0, size = typeOf(self).getNumElements();
  for (int64_t stride : StridedLayout::contiguous(shape).strides)
    step += stride;
  int64_t length = *llvm::min_element(shape);
  if (call.flag("wrap") && shape.size() == 2 && shape[0] > shape[1])
    length = (size + step - 1) / step;
  Value part = b.splat({length}, elementOf(self), call.scalar("fill_value"));
  Value flat = b.reshape(self, {size});
  return call.result(b.reshape(b.sliceScatter(flat, part, 0, 0, step), shape));
}

void mlir::tp::addStridedOps(AtenTable &table) {
  table["diagonal"] = {
      .run = view, .reads = "self", .inType = "offset dim1 dim2"};
  table["as_strided"] = {
      .run = view, .reads = "self", .inType = "size stride storage_offset"};
  table["slice_scatter"] = {sliceScatter, "self src dim start end step"};
  table["select_scatter"] = {selectScatter, "self src dim index"};
  table["diagonal_scatter"] = {diagonalScatter, "self src offset dim1 dim2"};
  table["as_strided_scatter"] = {asStridedScatter,
                                 "self src size stride storage_offset"};
  table["fill_diagonal"] = {fillDiagonal, "self fill_value wrap"};
}
