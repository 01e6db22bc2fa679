//===- AtenNorm.cpp - norms and distances of vectors ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AtenReduction.h"
#include <cmath>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;
using nn::ComparePredicate;
using nn::ReduceKind;

/// (Σ |x|^p)^(1/p) over `dims`; for p = 0, the number of elements that aren't 0;
/// for ±∞, the largest or the smallest size.
static Value vectorNorm(ImportBuilder &b, Value x, double order,
                        ArrayRef<int64_t> dims, bool keepdim) {
  auto sum = [&](Value terms) {
    return b.reduce(ReduceKind::Sum, terms, dims, keepdim);
  };
  if (order == 2)
    return b.rootOfSquares(sum(mul(b, x, x)));
  Value size = unary<nn::AbsOp>(b, x);
  if (order == 1)
    return sum(size);
  if (std::isinf(order))
    return b.reduce(order > 0 ? ReduceKind::Max : ReduceKind::Min, size, dims,
                    keepdim);
  Value isZero = compare(b, ComparePredicate::EQ, size, 0.0);
  if (order == 0)
    return sum(castTo(b, unary<nn::LogicalNotOp>(b, isZero), elementOf(x)));
  // The power of 0 has no derivative, so it is left out.
  Value one = constantLike(b, size, 1);
  Value powers = binary<nn::PowOp>(b, select(b, isZero, one, size),
                                   constantLike(b, size, order));
  Value ofZero = constantLike(b, size, order > 0 ? 0 : HUGE_VAL);
  Value total = sum(select(b, isZero, ofZero, powers));
  Value isEmpty = compare(b, ComparePredicate::EQ, total, 0.0);
  Value root = binary<nn::PowOp>(b, select(b, isEmpty, one, total),
                                 constantLike(b, total, 1 / order));
  Value rootOfZero = constantLike(b, total, order > 0 ? 0 : HUGE_VAL);
  return select(b, isEmpty, rootOfZero, root);
}

template <char orderName>
static LogicalResult vectorNorm(AtenCall &call, ImportBuilder &b) {
  StringRef name = orderName == 'p' ? "p" : "ord";
  double order = call.has(name) ? call.real(name) : 2;
  Value self = wideSelf(call, b);
  Value norm =
      vectorNorm(b, self, order, dimsOf(call, self), call.flag("keepdim"));
  return reduced(call, b, norm);
}

/// All dimensions but one.
static llvm::SmallVector<int64_t> otherDims(int64_t rank, int64_t dim) {
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  dims.erase(dims.begin() + dim);
  return dims;
}

/// The slices along `dim`, each scaled down to a norm of `maxnorm`.
static LogicalResult renormalize(AtenCall &call, ImportBuilder &b) {
  return widely(call, b, [&](Value x) {
    auto dims = otherDims(rankOf(x), call.dim("dim", rankOf(x)));
    Value norm = vectorNorm(b, x, call.real("p"), dims, /*keepdim=*/true);
    double largest = call.real("maxnorm");
    Value isLong = compare(b, ComparePredicate::GT, norm, largest);
    // PyTorch's epsilon.
    Value scale = div(b, constantLike(b, x, largest), add(b, norm, 1e-7));
    return mul(b, x, select(b, isLong, scale, constantLike(b, x, 1)));
  });
}

/// The distances of all rows of one matrix from all rows of another one.
static LogicalResult distances(AtenCall &call, ImportBuilder &b) {
  Value x1 = b.widen(call.tensor("x1")), x2 = b.widen(call.tensor("x2"));
  Value difference = sub(b, unsqueeze(b, x1, rankOf(x1) - 1),
                         unsqueeze(b, x2, rankOf(x2) - 2));
  // Without columns, all distances are 0.
  double order = call.has("p") ? call.real("p") : 2;
  if (shapeOf(difference).back() == 0)
    return call.result(b.splat(call.resultShape(), call.resultElement(),
                               Scalar::of(int64_t(0))));
  Value norm = vectorNorm(b, difference, order, {rankOf(difference) - 1},
                          /*keepdim=*/false);
  return call.result(castTo(b, norm, call.resultElement()));
}

/// v * g / ‖v‖, with a norm for each slice along `dim`.
static LogicalResult weightNorm(AtenCall &call, ImportBuilder &b) {
  Value v = b.widen(call.tensor("v")), g = b.widen(call.tensor("g"));
  int64_t dim = call.dim("dim", rankOf(v));
  Value norm = vectorNorm(b, v, 2, otherDims(rankOf(v), dim), /*keepdim=*/true);
  call.setResult(0,
                 castTo(b, mul(b, v, div(b, g, norm)), call.resultElement()));
  if (call.numResults() > 1)
    call.setResult(1, castTo(b, b.reshape(norm, call.resultShape(1)),
                             call.resultElement(1)));
  return success();
}

void mlir::tp::addNormOps(AtenTable &table) {
  table["linalg_vector_norm"] = {.run = vectorNorm<'o'>,
                                 .reads = "self ord dim keepdim",
                                 .inType = "dtype"};
  table["norm"] = {
      .run = vectorNorm<'p'>, .reads = "self p dim keepdim", .inType = "dtype"};
  table["renorm"] = {renormalize, "self p dim maxnorm"};
  table["_cdist_forward"] = {
      .run = distances, .reads = "x1 x2 p", .noEffect = "compute_mode"};
  table["_euclidean_dist"] = {distances, "x1 x2"};
  table["_weight_norm_interface"] = {weightNorm, "v g dim"};
}
