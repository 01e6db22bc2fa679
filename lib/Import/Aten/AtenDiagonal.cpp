//===- AtenDiagonal.cpp - diagonals of matrices ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AtenReduction.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;

/// `v` with the dimensions `dim1` and `dim2` at the end.
static llvm::SmallVector<int64_t> orderLast(int64_t rank, int64_t dim1,
                                            int64_t dim2) {
  llvm::SmallVector<int64_t> order;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != dim1 && dim != dim2)
      order.push_back(dim);
  order.append({dim1, dim2});
  return order;
}

/// The elements (i, i + offset) of the last two dimensions.
static Value diagonal(ImportBuilder &b, Value v, int64_t offset) {
  int64_t rank = rankOf(v), rows = shapeOf(v)[rank - 2],
          columns = shapeOf(v)[rank - 1];
  int64_t row = std::max<int64_t>(-offset, 0),
          column = std::max<int64_t>(offset, 0);
  int64_t size = std::max<int64_t>(std::min(rows - row, columns - column), 0);
  llvm::SmallVector<int64_t> positions, shape(shapeOf(v).drop_back(2));
  for (int64_t i = 0; i < size; ++i)
    positions.push_back((row + i) * columns + column + i);
  shape.push_back(rows * columns);
  return b.pick(b.reshape(v, shape), rank - 2, positions);
}

static LogicalResult diagonalOp(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  int64_t rank = rankOf(self);
  Value v = b.transpose(
      self, orderLast(rank, call.dim("dim1", rank), call.dim("dim2", rank)));
  return call.result(diagonal(b, v, call.integer("offset")));
}

static LogicalResult trace(AtenCall &call, ImportBuilder &b) {
  Value v = diagonal(b, call.tensor("self"), 0);
  v = b.widen(castTo(b, v, call.resultElement()));
  return reduced(call, b, b.reduce(nn::ReduceKind::Sum, v, {0}, false));
}

/// A matrix with the last dimension on a diagonal, and 0 elsewhere.
static LogicalResult diagonalMatrix(AtenCall &call, ImportBuilder &b) {
  Value v = call.tensor("self");
  int64_t rank = rankOf(v) + 1, offset = call.integer("offset");
  int64_t size = shapeOf(v).back() + std::abs(offset);
  // Rows of the matrix: those of the diagonal below or above empty ones.
  auto zeros = [&](int64_t rows) {
    llvm::SmallVector<int64_t> shape(shapeOf(v));
    shape.back() = rows;
    return b.splat(shape, elementOf(v), Scalar::of(int64_t(0)));
  };
  Value column = v;
  if (offset > 0)
    column = b.concat({v, zeros(offset)}, rank - 2);
  else if (offset < 0)
    column = b.concat({zeros(-offset), v}, rank - 2);
  Type i64 = b.getI64Type();
  Value isOn = compare(b, nn::ComparePredicate::EQ, iota(b, {size}, 0, i64),
                       iota(b, {size, 1}, 0, i64, /*start=*/double(offset)));
  Value zero = b.scalar(elementOf(v), Scalar::of(int64_t(0)));
  Value matrix = select(b, isOn, unsqueeze(b, column, rank - 1), zero);
  auto order = orderLast(rank, call.dim("dim1", rank), call.dim("dim2", rank));
  return call.result(b.transpose(matrix, invertPermutationVector(order)));
}

/// Matrices along the diagonal, and 0 elsewhere. A vector is one row.
static LogicalResult blockDiagonal(AtenCall &call, ImportBuilder &b) {
  Type type = call.resultElement();
  int64_t columns = call.resultShape()[1], before = 0;
  llvm::SmallVector<Value> rows;
  for (Value block : call.tensors("tensors")) {
    block = castTo(b, block, type);
    if (rankOf(block) < 2)
      block = b.reshape(block, {1, typeOf(block).getNumElements()});
    int64_t height = shapeOf(block)[0], width = shapeOf(block)[1];
    auto zeros = [&](int64_t count) {
      return b.splat({height, count}, type, Scalar::of(int64_t(0)));
    };
    int64_t after = columns - before - width;
    rows.push_back(b.concat({zeros(before), block, zeros(after)}, 1));
    before += width;
  }
  return call.result(b.concat(rows, 0));
}

void mlir::tp::addDiagonalOps(AtenTable &table) {
  table["diagonal_copy"] = {diagonalOp, "self offset dim1 dim2"};
  table["diag_embed"] = {diagonalMatrix, "self offset dim1 dim2"};
  table["block_diag"] = {blockDiagonal, "tensors"};
  table["trace"] = {trace, "self"};
}
