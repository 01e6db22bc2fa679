//===- AtenSort.cpp - sorting, searching, counting ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AtenCall.h"
#include <string>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;
using nn::ComparePredicate;
using nn::ReduceKind;

namespace {
/// A vector for a scalar, along whose dimension PyTorch sorts as well.
struct Sorted {
  Value input;
  int64_t dim;
  Value values, indices;
};
} // namespace

/// Sorts `self`; `count` < 0: all of its elements.
static Sorted sort(ImportBuilder &b, Value self, int64_t dim, int64_t count,
                   bool descending) {
  if (rankOf(self) == 0)
    self = b.reshape(self, {1});
  if (isBool(self) || elementOf(self).isUnsignedInteger())
    self = castTo(b, self, b.getI32Type());
  dim = dim < 0 ? dim + rankOf(self) : dim;
  if (count < 0)
    count = shapeOf(self)[dim];
  auto op = nn::SortOp::create(b, self, dim, count, descending);
  return {self, dim, op.getValues(), op.getIndices()};
}

/// Sets result `i`, in its own type and shape.
static void setResult(AtenCall &call, ImportBuilder &b, unsigned i, Value v) {
  v = castTo(b, v, call.resultElement(i));
  call.setResult(i, b.reshape(v, call.resultShape(i)));
}

/// The result of an op that returns values and indices.
static LogicalResult setResults(AtenCall &call, ImportBuilder &b,
                                const Sorted &sorted) {
  setResult(call, b, 0, sorted.values);
  setResult(call, b, 1, sorted.indices);
  return success();
}

static LogicalResult topk(AtenCall &call, ImportBuilder &b) {
  return setResults(call, b,
                    sort(b, call.tensor("self"), call.integer("dim"),
                         call.integer("k"), call.flag("largest")));
}

static LogicalResult sortOp(AtenCall &call, ImportBuilder &b) {
  return setResults(call, b,
                    sort(b, call.tensor("self"), call.integer("dim"), -1,
                         call.flag("descending")));
}

static LogicalResult argsort(AtenCall &call, ImportBuilder &b) {
  Sorted sorted = sort(b, call.tensor("self"), call.integer("dim"), -1,
                       call.flag("descending"));
  setResult(call, b, 0, sorted.indices);
  return success();
}

static LogicalResult msort(AtenCall &call, ImportBuilder &b) {
  setResult(call, b, 0, sort(b, call.tensor("self"), 0, -1, false).values);
  return success();
}

static LogicalResult kthValue(AtenCall &call, ImportBuilder &b) {
  int64_t k = call.integer("k");
  Sorted sorted = sort(b, call.tensor("self"), call.integer("dim"), k, false);
  setResult(call, b, 0, b.slice(sorted.values, sorted.dim, k - 1, 1));
  setResult(call, b, 1, b.slice(sorted.indices, sorted.dim, k - 1, 1));
  return success();
}

/// The lower one of two medians; NaN if any element is NaN.
static LogicalResult median(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  bool isOfAll = !call.has("dim");
  if (isOfAll)
    self = b.reshape(self, {typeOf(self).getNumElements()});
  int64_t dim = isOfAll ? 0 : call.integer("dim");
  dim = dim < 0 ? dim + std::max<int64_t>(rankOf(self), 1) : dim;
  int64_t size = rankOf(self) == 0 ? 1 : shapeOf(self)[dim];
  if (size == 0)
    return call.unsupported("of no elements");
  int64_t count = (size + 1) / 2;
  Sorted sorted = sort(b, self, dim, count, false);
  Value value = b.slice(sorted.values, dim, count - 1, 1),
        index = b.slice(sorted.indices, dim, count - 1, 1);
  if (isFloat(value)) {
    // NaN is the largest number to nn.reduce and nn.argmax.
    Value largest = b.reduce(ReduceKind::Max, sorted.input, {dim}, true);
    Value isNaN = compare(b, ComparePredicate::NE, largest, largest);
    value = select(b, isNaN, largest, value);
    index = select(b, isNaN,
                   nn::ArgMaxOp::create(b, sorted.input, dim, /*keepdim=*/true),
                   index);
  }
  setResult(call, b, 0, value);
  if (!isOfAll)
    setResult(call, b, 1, index);
  return success();
}

//===----------------------------------------------------------------------===//
// Searching
//===----------------------------------------------------------------------===//

/// For each value, the number of elements of the sorted sequence, its last
/// dimension, that are smaller, or not larger if `right`. Every element counts
/// as smaller than NaN.
static Value search(ImportBuilder &b, Value sequence, Value values,
                    bool right) {
  auto rank = rankOf(values);
  if (rankOf(sequence) > 1)
    sequence = unsqueeze(b, sequence, rank - 1);
  Value isAfter =
      compare(b, right ? ComparePredicate::GT : ComparePredicate::GE, sequence,
              unsqueeze(b, values, rank));
  Value isBefore = unary<nn::LogicalNotOp>(b, isAfter);
  return b.reduce(ReduceKind::Sum, castTo(b, isBefore, b.getI64Type()), {rank},
                  /*keepdim=*/false);
}

template <bool isBucketize>
static LogicalResult searchSorted(AtenCall &call, ImportBuilder &b) {
  StringRef sequence = isBucketize ? "boundaries" : "sorted_sequence";
  Type type = call.promote({sequence, "self"});
  bool right = call.flag("right");
  if (!isBucketize && call.has("side"))
    right |= call.string("side") == "right";
  Value found = search(b, operand(call, b, sequence, type),
                       operand(call, b, "self", type), right);
  setResult(call, b, 0, found);
  return success();
}

//===----------------------------------------------------------------------===//
// Counting
//===----------------------------------------------------------------------===//

/// The bin of each element is computed as PyTorch does, so that rounding is the
/// same.
static LogicalResult histogram(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  double least = call.real("min"), most = call.real("max");
  int64_t bins = call.integer("bins");
  if (least >= most)
    return call.unsupported("with the range of the data: state min < max");
  self = b.widen(b.reshape(self, {typeOf(self).getNumElements(), 1}));
  if (!isFloat(self))
    return call.unsupported("of integers");
  Type type = elementOf(self);
  auto constant = [&](double value) {
    return b.scalar(type, Scalar::of(value));
  };
  Value scaled = mul(b, sub(b, self, constant(least)),
                     constant(static_cast<double>(bins)));
  Value bin = unary<nn::FloorOp>(b, div(b, scaled, constant(most - least)));
  bin = binary<nn::MinimumOp>(b, bin, constant(static_cast<double>(bins - 1)));
  Value isInside = nn::LogicalAndOp::create(
      b, compare(b, ComparePredicate::GE, self, constant(least)),
      compare(b, ComparePredicate::LE, self, constant(most)));
  Value isHere =
      compare(b, ComparePredicate::EQ, bin, iota(b, {1, bins}, 1, type));
  Value counts = b.reduce(
      ReduceKind::Sum,
      castTo(b, nn::LogicalAndOp::create(b, isInside, isHere), type), {0},
      /*keepdim=*/false);
  setResult(call, b, 0, counts);
  return success();
}

/// Ones are scattered, so that a class out of range is an error.
static LogicalResult oneHot(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  int64_t classes = call.integer("num_classes");
  if (classes < 0)
    return call.unsupported("without num_classes: the number of classes "
                            "depends on the data");
  Value index = unsqueeze(b, self, rankOf(self));
  Value zeros =
      b.splat(call.resultShape(), b.getI64Type(), Scalar::of(int64_t(0)));
  Value ones = b.splat(shapeOf(index), b.getI64Type(), Scalar::of(int64_t(1)));
  return call.result(nn::ScatterOp::create(b, nn::ScatterKind::Copy, zeros,
                                           index, ones, rankOf(self)));
}

static LogicalResult isIn(AtenCall &call, ImportBuilder &b) {
  StringRef listed =
      call.has("test_elements") ? "test_elements" : "test_element";
  Type type = call.promote({"elements", listed});
  Value list = operand(call, b, listed, type);
  list = b.reshape(list, {typeOf(list).getNumElements()});
  Value elements = operand(call, b, "elements", type);
  Value isEqual = compare(b, nn::ComparePredicate::EQ, list,
                          unsqueeze(b, elements, rankOf(elements)));
  isEqual = castTo(b, isEqual, b.getI32Type());
  Value isFound = b.reduce(nn::ReduceKind::Sum, isEqual, {rankOf(isEqual) - 1},
                           /*keepdim=*/false);
  isFound = castTo(b, isFound, b.getI1Type());
  if (call.flag("invert"))
    isFound = unary<nn::LogicalNotOp>(b, isFound);
  return call.result(b.reshape(isFound, call.resultShape()));
}

void mlir::tp::addSortOps(AtenTable &table) {
  table["topk"] = {
      .run = topk, .reads = "self k dim largest", .noEffect = "sorted"};
  table["sort"] = {
      .run = sortOp, .reads = "self dim descending", .noEffect = "stable"};
  table["argsort"] = {
      .run = argsort, .reads = "self dim descending", .noEffect = "stable"};
  table["msort"] = {msort, "self"};
  table["kthvalue"] = {
      .run = kthValue, .reads = "self k dim", .inType = "keepdim"};
  table["median"] = {.run = median, .reads = "self dim", .inType = "keepdim"};
  table["bucketize"] = {.run = searchSorted<true>,
                        .reads = "self boundaries right",
                        .inType = "out_int32"};
  table["searchsorted"] = {.run = searchSorted<false>,
                           .reads = "self sorted_sequence right side",
                           .inType = "out_int32",
                           .refuses = "sorter"};
  table["isin"] = {.run = isIn,
                   .reads = "elements test_elements test_element invert",
                   .noEffect = "assume_unique",
                   .refuses = "element"};
  table["histc"] = {histogram, "self bins min max"};
  table["one_hot"] = {oneHot, "self num_classes"};
}
