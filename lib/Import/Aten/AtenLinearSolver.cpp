//===- AtenLinearSolver.cpp - Inverses, determinants, Cholesky factors ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small matrices are eliminated column by column, all matrices of a batch at
// once; each column is some ops. Where PyTorch raises an error for a singular
// matrix, the results are infinite or NaN. The gradients are those of the
// steps.
// Source: Golub and Van Loan, "Matrix Computations", chapters 3 and 4.
//
//===----------------------------------------------------------------------===//

#include "AtenCall.h"
#include <cmath>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;
using nn::ComparePredicate;
using nn::ReduceKind;

namespace {
/// The result of Gauss and Jordan's elimination of (…, n, n) matrices.
struct Elimination {
  /// A⁻¹ · B.
  Value solution;
  /// The pivots, and the rows that they were found in: (…, 1, n).
  Value pivots, rows;
};
} // namespace

/// Whether the size of the last two dimensions is supported.
static LogicalResult checkSize(AtenCall &call, Value matrix) {
  constexpr int64_t kMaxSize = 64;
  int64_t size = shapeOf(matrix).back();
  if (size > 0 && size <= kMaxSize)
    return success();
  return call.unsupported("of a matrix of size " + llvm::Twine(size) +
                          ", expected 1 to " + llvm::Twine(kMaxSize));
}

/// Column k is eliminated by the row that has the largest element in it among
/// the rows that haven't eliminated one yet. Rows aren't swapped: row r of the
/// result belongs to the column that r has eliminated. Without `right`, nothing
/// is solved, and a column of zeros is left as it is.
static Elimination eliminate(ImportBuilder &b, Value left, Value right) {
  int64_t rank = rankOf(left), size = shapeOf(left).back();
  Value matrix = right ? b.concat({left, right}, rank - 1) : left;
  Value numbers = iota(b, {size, 1}, 0, b.getI64Type());
  Value isFree = b.splat({size, 1}, b.getI1Type(), Scalar::of(int64_t(1)));
  llvm::SmallVector<Value> pivots, rows, choices;
  for (int64_t k = 0; k < size; ++k) {
    Value column = b.slice(matrix, rank - 1, k, 1);
    Value sizes = select(b, isFree, unary<nn::AbsOp>(b, column),
                         constantLike(b, column, -1));
    rows.push_back(nn::ArgMaxOp::create(b, sizes, rank - 2, /*keepdim=*/true));
    Value isRow = compare(b, ComparePredicate::EQ, numbers, rows.back());
    Value row = b.reduce(ReduceKind::Sum, keep(b, isRow, matrix), {rank - 2},
                         /*keepdim=*/true);
    pivots.push_back(b.slice(row, rank - 1, k, 1));
    Value divisor = pivots.back();
    if (!right)
      divisor = select(b, compare(b, ComparePredicate::EQ, divisor, 0.0),
                       constantLike(b, divisor, 1), divisor);
    choices.push_back(castTo(b, isRow, elementOf(left)));
    // Also divides the row itself by the pivot.
    Value factors = sub(b, column, choices.back());
    matrix = sub(b, matrix, mul(b, factors, div(b, row, divisor)));
    isFree =
        binary<nn::LogicalAndOp>(b, isFree, unary<nn::LogicalNotOp>(b, isRow));
  }
  Elimination result;
  result.pivots = b.concat(pivots, rank - 1);
  result.rows = b.concat(rows, rank - 1);
  if (right)
    result.solution =
        matmul(b, transposeLast(b, b.concat(choices, rank - 1)),
               b.slice(matrix, rank - 1, size, shapeOf(right).back()));
  return result;
}

/// 1 or -1: whether the rows are an even or an odd permutation.
static Value signOf(ImportBuilder &b, Value rows, Type type) {
  int64_t rank = rankOf(rows), size = shapeOf(rows).back();
  Value isInverted = binary<nn::LogicalAndOp>(
      b, compare(b, ComparePredicate::GT, transposeLast(b, rows), rows),
      b.triangle(size, size, 1, /*upper=*/true));
  Value count = b.reduce(ReduceKind::Sum, castTo(b, isInverted, type),
                         {rank - 2, rank - 1}, /*keepdim=*/false);
  Value isOdd = binary<nn::RemainderOp>(b, count, constantLike(b, count, 2));
  return subFrom(b, 1, mul(b, isOdd, 2));
}

/// `v` with `shape` before its last two dimensions.
static Value withBatch(ImportBuilder &b, Value v, ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t> whole(shape);
  llvm::append_range(whole, shapeOf(v).take_back(2));
  return shapeOf(v) == ArrayRef(whole) ? v : broadcast(b, v, whole);
}

/// X for A · X = B, or for X · A = B unless `isLeft`. If B is a batch of
/// vectors, so is the result.
static LogicalResult solve(AtenCall &call, ImportBuilder &b, Value a, Value rhs,
                           bool isLeft) {
  if (failed(checkSize(call, a)))
    return failure();
  ArrayRef<int64_t> shape = call.resultShape();
  // PyTorch takes B for vectors if it has the shape of A without its columns.
  bool areVectors =
      rankOf(rhs) == 1 ||
      (rankOf(a) - 1 == rankOf(rhs) && shapeOf(a).drop_back() == shapeOf(rhs));
  if (areVectors)
    rhs = unsqueeze(b, rhs, rankOf(rhs));
  ArrayRef<int64_t> batch = shape.drop_back(areVectors ? 1 : 2);
  a = withBatch(b, a, batch), rhs = withBatch(b, rhs, batch);
  if (!isLeft)
    a = transposeLast(b, a), rhs = transposeLast(b, rhs);
  Value solution = eliminate(b, a, rhs).solution;
  if (!isLeft)
    solution = transposeLast(b, solution);
  return call.result(b.reshape(solution, shape));
}

/// The result that says which matrices are singular; no error is reported.
static void setInfo(AtenCall &call, ImportBuilder &b, unsigned i) {
  call.setResult(i, b.splat(call.resultShape(i), call.resultElement(i),
                            Scalar::of(int64_t(0))));
}

static LogicalResult solveOp(AtenCall &call, ImportBuilder &b) {
  setInfo(call, b, 3);
  return solve(call, b, call.tensor("A"), call.tensor("B"), call.flag("left"));
}

static LogicalResult solveTriangular(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  int64_t size = shapeOf(self).back();
  auto keepTriangle = [&](int64_t diagonal, bool upper) {
    return keep(b, b.triangle(size, size, diagonal, upper), self);
  };
  bool isUnit = call.flag("unitriangular"), upper = call.flag("upper");
  Value triangle = keepTriangle(isUnit ? upper ? 1 : -1 : 0, upper);
  if (isUnit) {
    Value isDiagonal =
        compare(b, ComparePredicate::EQ, iota(b, {size, 1}, 0, b.getI64Type()),
                iota(b, {1, size}, 1, b.getI64Type()));
    triangle = add(b, triangle, castTo(b, isDiagonal, elementOf(self)));
  }
  return solve(call, b, triangle, call.tensor("B"), call.flag("left"));
}

static LogicalResult inverse(AtenCall &call, ImportBuilder &b) {
  Value a = call.tensor("A");
  if (failed(checkSize(call, a)))
    return failure();
  int64_t size = shapeOf(a).back();
  Value identity =
      castTo(b,
             compare(b, ComparePredicate::EQ,
                     iota(b, shapeOf(a), rankOf(a) - 2, b.getI64Type()),
                     iota(b, {1, size}, 1, b.getI64Type())),
             elementOf(a));
  setInfo(call, b, 1);
  return call.result(eliminate(b, a, identity).solution);
}

static LogicalResult determinant(AtenCall &call, ImportBuilder &b) {
  Value a = call.tensor("A");
  if (failed(checkSize(call, a)))
    return failure();
  Elimination result = eliminate(b, a, Value());
  int64_t rank = rankOf(a);
  Value product = b.reduce(ReduceKind::Product, result.pivots,
                           {rank - 2, rank - 1}, /*keepdim=*/false);
  return call.result(mul(b, product, signOf(b, result.rows, elementOf(a))));
}

/// The determinant's sign and the logarithm of its absolute value.
static LogicalResult logDeterminant(AtenCall &call, ImportBuilder &b) {
  Value a = call.tensor("A");
  if (failed(checkSize(call, a)))
    return failure();
  Elimination result = eliminate(b, a, Value());
  int64_t rank = rankOf(a);
  auto overPivots = [&](ReduceKind kind, Value values) {
    return b.reduce(kind, values, {rank - 2, rank - 1}, /*keepdim=*/false);
  };
  Value isNegative = compare(b, ComparePredicate::LT, result.pivots, 0.0);
  Value isPositive = compare(b, ComparePredicate::GT, result.pivots, 0.0);
  Value signs = sub(b, castTo(b, isPositive, elementOf(a)),
                    castTo(b, isNegative, elementOf(a)));
  call.setResult(0, mul(b, overPivots(ReduceKind::Product, signs),
                        signOf(b, result.rows, elementOf(a))));
  Value logarithms = unary<nn::LogOp>(b, unary<nn::AbsOp>(b, result.pivots));
  call.setResult(1, overPivots(ReduceKind::Sum, logarithms));
  return success();
}

/// A = L · Lᵀ, column by column. A is symmetric, and so is its gradient in
/// PyTorch.
static LogicalResult cholesky(AtenCall &call, ImportBuilder &b) {
  Value a = call.tensor("self");
  if (failed(checkSize(call, a)))
    return failure();
  int64_t rank = rankOf(a), size = shapeOf(a).back();
  Value rest = mul(b, add(b, a, transposeLast(b, a)), 0.5);
  Value numbers = iota(b, {size, 1}, 0, b.getI64Type());
  llvm::SmallVector<Value> columns;
  for (int64_t k = 0; k < size; ++k) {
    Value column = b.slice(rest, rank - 1, k, 1);
    Value pivot = b.slice(column, rank - 2, k, 1);
    Value isBelow = compare(b, ComparePredicate::GE, numbers,
                            integer(b, b.getI64Type(), k));
    column = keep(b, isBelow, mul(b, column, unary<nn::RsqrtOp>(b, pivot)));
    columns.push_back(column);
    if (k + 1 < size)
      rest = sub(b, rest, mul(b, column, transposeLast(b, column)));
  }
  Value factor = b.concat(columns, rank - 1);
  setInfo(call, b, 1);
  return call.result(call.flag("upper") ? transposeLast(b, factor) : factor);
}

void mlir::tp::addLinearSolverOps(AtenTable &table) {
  table["_linalg_solve_ex"] = {
      .run = solveOp, .reads = "A B left", .noEffect = "check_errors"};
  table["linalg_solve_triangular"] = {solveTriangular,
                                      "self B upper left unitriangular"};
  table["linalg_inv_ex"] = {
      .run = inverse, .reads = "A", .noEffect = "check_errors"};
  table["_linalg_det"] = {determinant, "A"};
  table["_linalg_slogdet"] = {logDeterminant, "A"};
  table["linalg_cholesky_ex"] = {
      .run = cholesky, .reads = "self upper", .noEffect = "check_errors"};
}
