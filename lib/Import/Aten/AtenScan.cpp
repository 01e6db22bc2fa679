//===- AtenScan.cpp - Running products, extrema and logarithms ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scans with ops other than a sum, in ⌈log2 n⌉ steps for n elements: step s
// combines each element with the one 2^s places before it. For a product of
// four elements:
//
//   a, b, c, d → a, ab, bc, cd → a, ab, abc, abcd
//
// Source: Hillis and Steele, "Data parallel algorithms", 1986. The gradients
// are those of the steps.
//
//===----------------------------------------------------------------------===//

#include "AtenCall.h"
#include "AtenFunctions.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;
using nn::ComparePredicate;
using Tensors = llvm::SmallVector<Value, 2>;

/// The scan of some tensors of one shape along `dim`. `combine` is associative
/// and gets the elements before and those after.
static Tensors
scan(ImportBuilder &b, Tensors values, int64_t dim,
     llvm::function_ref<Tensors(const Tensors &before, const Tensors &after)>
         combine) {
  int64_t size = shapeOf(values.front())[dim];
  for (int64_t distance = 1; distance < size; distance *= 2) {
    Tensors before, after;
    for (Value value : values) {
      before.push_back(b.slice(value, dim, 0, size - distance));
      after.push_back(b.slice(value, dim, distance, size - distance));
    }
    Tensors combined = combine(before, after);
    for (auto [value, rest] : llvm::zip_equal(values, combined))
      value = b.concat({b.slice(value, dim, 0, distance), rest}, dim);
  }
  return values;
}

/// A scan of `self` alone, computed in a type of at least 32 bits.
template <Value (*combine)(ImportBuilder &b, Value before, Value after)>
static LogicalResult scanOp(AtenCall &call, ImportBuilder &b) {
  Type type = call.resultElement();
  Value self = b.widen(castTo(b, call.tensor("self"), type));
  if (rankOf(self) > 0)
    self = scan(b, {self}, call.dim("dim", rankOf(self)),
                [&](const Tensors &before, const Tensors &after) -> Tensors {
                  return {combine(b, before.front(), after.front())};
                })
               .front();
  return call.result(castTo(b, self, type));
}

static Value multiply(ImportBuilder &b, Value before, Value after) {
  return mul(b, before, after);
}

/// The largest or smallest element so far and its index: the last one of equal
/// elements, and of NaN, which counts as more than any number.
template <ComparePredicate isMore>
static LogicalResult runningExtremum(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  if (rankOf(self) == 0)
    self = b.reshape(self, {1});
  if (isBool(self))
    self = castTo(b, self, b.getI32Type());
  int64_t dim = call.dim("dim", rankOf(self));
  Value indices = iota(b, shapeOf(self), dim, b.getI64Type());
  Tensors results = scan(
      b, {self, indices}, dim,
      [&](const Tensors &before, const Tensors &after) -> Tensors {
        Value isLater = compare(b, isMore, after[0], before[0]);
        if (isFloat(self))
          isLater = binary<nn::LogicalOrOp>(
              b, isLater, compare(b, ComparePredicate::NE, after[0], after[0]));
        return {select(b, isLater, after[0], before[0]),
                select(b, isLater, after[1], before[1])};
      });
  Value values = castTo(b, results[0], call.resultElement(0));
  call.setResult(0, b.reshape(values, call.resultShape(0)));
  call.setResult(1, b.reshape(results[1], call.resultShape(1)));
  return success();
}

void mlir::tp::addScanOps(AtenTable &table) {
  table["cumprod"] = {
      .run = scanOp<multiply>, .reads = "self dim", .inType = "dtype"};
  table["logcumsumexp"] = {scanOp<logAddExp>, "self dim"};
  table["_logcumsumexp"] = {scanOp<logAddExp>, "self dim"};
  table["cummax"] = {runningExtremum<ComparePredicate::GE>, "self dim"};
  table["cummin"] = {runningExtremum<ComparePredicate::LE>, "self dim"};
}
