//===- AtenScatter.cpp - writes at computed positions ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AtenIndexing.h"
#include <cmath>
#include <string>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;
using nn::ComparePredicate;
using nn::ScatterKind;

namespace {
/// Where the elements of `source` go, in the form of nn.scatter.
struct Targets {
  Value self, index, source;
  int64_t dim;
};
} // namespace

static Value scatter(ImportBuilder &b, ScatterKind kind, Value self,
                     const Targets &to, Value source) {
  if (typeOf(source).getNumElements() == 0)
    return self;
  return nn::ScatterOp::create(b, kind, self, to.index, source, to.dim);
}

static Value fullLike(ImportBuilder &b, Value like, Scalar value) {
  return b.splat(shapeOf(like), elementOf(like), value);
}

/// A vector for a scalar: PyTorch writes along its "dimension 0".
static Value asVector(ImportBuilder &b, Value v) {
  return rankOf(v) == 0 ? b.reshape(v, {1}) : v;
}

static LogicalResult setResult(AtenCall &call, ImportBuilder &b, Value v) {
  return call.result(b.reshape(v, call.resultShape()));
}

/// The vector that `index` repeats along all dimensions but `dim`, if it is
/// such a broadcast; it names whole slices.
static Value findRepeated(ImportBuilder &b, Value index, int64_t dim) {
  auto op = index.getDefiningOp<nn::BroadcastOp>();
  if (!op)
    return Value();
  int64_t size = shapeOf(index)[dim];
  Value vector = op.getInput();
  int64_t missing = rankOf(index) - rankOf(vector);
  if (dim < missing || shapeOf(vector)[dim - missing] != size ||
      typeOf(vector).getNumElements() != size)
    return Value();
  return b.reshape(vector, {size});
}

/// The arguments of scatter and scatter_reduce: the index may be smaller than
/// the source.
static Targets readTargets(AtenCall &call, ImportBuilder &b) {
  Value self = asVector(b, call.tensor("self")),
        index = asVector(b, call.tensor("index"));
  int64_t dim = call.dim("dim", rankOf(self));
  Value source;
  if (call.has("value")) {
    source = b.splat(shapeOf(index), elementOf(self), call.scalar("value"));
  } else {
    source = castTo(b, asVector(b, call.tensor("src")), elementOf(self));
    for (auto [d, size] : llvm::enumerate(shapeOf(index)))
      source = b.slice(source, d, 0, size);
  }
  SmallVector<int64_t> rows(shapeOf(self));
  rows[dim] = shapeOf(index)[dim];
  if (ArrayRef<int64_t>(rows) == shapeOf(index))
    if (Value vector = findRepeated(b, index, dim))
      index = vector;
  return {self, index, source, dim};
}

/// The arguments of the ops whose index is a vector.
static Targets readSlices(AtenCall &call, ImportBuilder &b) {
  Value self = asVector(b, call.tensor("self"));
  int64_t dim = call.dim("dim", rankOf(self));
  Value index = call.tensor("index");
  index = b.reshape(index, {typeOf(index).getNumElements()});
  SmallVector<int64_t> shape(shapeOf(self));
  shape[dim] = shapeOf(index)[0];
  Value source;
  if (call.has("source"))
    source =
        b.reshape(castTo(b, call.tensor("source"), elementOf(self)), shape);
  else
    source = broadcast(b, operand(call, b, "value", elementOf(self)), shape);
  return {self, index, source, dim};
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// The mean of what goes to each position.
static Value scatterMean(ImportBuilder &b, const Targets &to,
                         bool includesSelf) {
  Value sums = scatter(b, ScatterKind::Add, to.self, to, to.source);
  Scalar one = Scalar::of(int64_t(1)), zero = Scalar::of(int64_t(0));
  Value counts = scatter(b, ScatterKind::Add,
                         fullLike(b, to.self, includesSelf ? one : zero), to,
                         fullLike(b, to.source, one));
  if (!includesSelf) // where nothing goes, the element stays
    counts = binary<nn::MaximumOp>(b, counts, fullLike(b, counts, one));
  return isFloat(sums) ? div(b, sums, counts)
                       : binary<nn::FloorDivOp>(b, sums, counts);
}

/// The smallest number of a type, or the largest.
static Scalar extreme(Type type, bool isLargest) {
  if (isa<FloatType>(type))
    return Scalar::of(isLargest ? HUGE_VAL : -HUGE_VAL);
  unsigned width = type.getIntOrFloatBitWidth();
  return Scalar::of(isLargest ? APInt::getSignedMaxValue(width).getSExtValue()
                              : APInt::getSignedMinValue(width).getSExtValue());
}

static LogicalResult reduce(AtenCall &call, ImportBuilder &b, Targets to) {
  std::string name = call.string("reduce");
  bool includesSelf = call.flag("include_self");
  if (name != "sum" && name != "mean" && name != "amax" && name != "amin")
    return call.unsupported("with reduce = '" + name +
                            "', expected 'sum', 'mean', 'amax' or 'amin'");
  if (isBool(to.self))
    return call.unsupported("of booleans");
  bool isMean = name == "mean", isSum = isMean || name == "sum";
  // Without self, the reduction begins with its neutral element. PyTorch's
  // gradient of an extremum still counts an element of self that is equal to
  // it, and divides by one more.
  if (!includesSelf) {
    Scalar neutral = isSum ? Scalar::of(int64_t(0))
                           : extreme(elementOf(to.self), name == "amin");
    to.self = scatter(b, ScatterKind::Copy, to.self, to,
                      fullLike(b, to.source, neutral));
  }
  if (isMean)
    return setResult(call, b, scatterMean(b, to, includesSelf));
  ScatterKind kind = isSum            ? ScatterKind::Add
                     : name == "amax" ? ScatterKind::Max
                                      : ScatterKind::Min;
  return setResult(call, b, scatter(b, kind, to.self, to, to.source));
}

static LogicalResult scatterReduce(AtenCall &call, ImportBuilder &b) {
  return reduce(call, b, readTargets(call, b));
}

static LogicalResult indexReduce(AtenCall &call, ImportBuilder &b) {
  return reduce(call, b, readSlices(call, b));
}

//===----------------------------------------------------------------------===//
// Copies and sums
//===----------------------------------------------------------------------===//

static LogicalResult scatterOp(AtenCall &call, ImportBuilder &b) {
  ScatterKind kind = ScatterKind::Copy;
  if (call.has("reduce")) {
    if (call.string("reduce") != "add")
      return call.unsupported("with reduce = '" + call.string("reduce") +
                              "', expected 'add'");
    kind = ScatterKind::Add;
  }
  Targets to = readTargets(call, b);
  return setResult(call, b, scatter(b, kind, to.self, to, to.source));
}

static LogicalResult scatterAdd(AtenCall &call, ImportBuilder &b) {
  Targets to = readTargets(call, b);
  return setResult(call, b,
                   scatter(b, ScatterKind::Add, to.self, to, to.source));
}

static LogicalResult indexAdd(AtenCall &call, ImportBuilder &b) {
  Targets to = readSlices(call, b);
  Scalar alpha = call.scalar("alpha");
  if (!(alpha == 1))
    to.source = mul(b, to.source, b.scalar(elementOf(to.source), alpha));
  return setResult(call, b,
                   scatter(b, ScatterKind::Add, to.self, to, to.source));
}

static LogicalResult indexCopy(AtenCall &call, ImportBuilder &b) {
  Targets to = readSlices(call, b);
  return setResult(call, b,
                   scatter(b, ScatterKind::Copy, to.self, to, to.source));
}

/// Unlike index_copy, it counts negative indices from the end.
static LogicalResult indexFill(AtenCall &call, ImportBuilder &b) {
  Targets to = readSlices(call, b);
  to.index = b.wrapIndex(to.index, shapeOf(to.self)[to.dim]);
  return setResult(call, b,
                   scatter(b, ScatterKind::Copy, to.self, to, to.source));
}

/// x[mask] = values, x[:, mask] = values. What is written must not depend on
/// how many elements of the mask are true: values are the same for all of them.
static LogicalResult putMasked(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self"), values = call.tensor("values"), mask;
  int64_t first = 0;
  for (auto [dim, entry] : llvm::enumerate(call.tensors("indices"))) {
    if (!entry)
      continue;
    if (mask || !isBool(entry))
      return call.unsupported("by a mask and other indices, expected one mask");
    mask = entry;
    first = dim;
  }
  // The dimensions after those of the mask.
  int64_t rest = rankOf(self) - first - rankOf(mask);
  int64_t rank = rankOf(values);
  if (rank > rest) {
    SmallVector<int64_t> shape(shapeOf(values));
    auto each = shape.begin() + (rank - rest - 1);
    if (*each != 1)
      return call.unsupported(
          "with a value for each true element of the mask: their number "
          "depends on the data; write one value, or use torch.where");
    each = shape.erase(each);
    shape.insert(each, rankOf(mask), 1);
    values = b.reshape(values, shape);
  }
  SmallVector<int64_t> shape(shapeOf(mask));
  shape.append(rest, 1);
  values = castTo(b, values, elementOf(self));
  if (call.flag("accumulate"))
    values = add(b, self, values);
  return call.result(select(b, b.reshape(mask, shape), values, self));
}

/// x[i0, i1, …] = values, or += values.
static LogicalResult indexPut(AtenCall &call, ImportBuilder &b) {
  if (llvm::any_of(call.tensors("indices"),
                   [](Value index) { return index && isBool(index); }))
    return putMasked(call, b);
  FailureOr<TensorIndexing> indexing = readIndexing(call, b);
  if (failed(indexing))
    return failure();
  Value self = indexing->source;
  Value values = castTo(b, call.tensor("values"), elementOf(self));
  auto kind = call.flag("accumulate") ? ScatterKind::Add : ScatterKind::Copy;
  if (indexing->indices.empty()) {
    values = broadcast(b, values, shapeOf(self));
    return call.result(kind == ScatterKind::Add ? add(b, self, values)
                                                : values);
  }
  values = broadcast(b, values, indexing->getResultShape());
  SmallVector<int64_t> shape(shapeOf(self)),
      merged = indexing->getMergedShape();
  Value positions = buildPositions(b, *indexing);
  SmallVector<int64_t> sourceShape = merged;
  sourceShape[indexing->first] = shapeOf(positions)[0];
  Targets to{b.reshape(self, merged), positions, b.reshape(values, sourceShape),
             indexing->first};
  Value result = b.reshape(scatter(b, kind, to.self, to, to.source), shape);
  if (indexing->permutation.empty())
    return call.result(result);
  SmallVector<int64_t> inverse(shape.size());
  for (auto [to, from] : llvm::enumerate(indexing->permutation))
    inverse[from] = to;
  return call.result(b.transpose(result, inverse));
}

/// The i-th element of the source goes to the i-th place where the mask is
/// true.
static LogicalResult maskedScatter(AtenCall &call, ImportBuilder &b) {
  Value self = broadcast(b, call.tensor("self"), call.resultShape());
  Value mask = broadcast(b, call.tensor("mask"), call.resultShape());
  Value source = call.tensor("source");
  source = b.reshape(source, {typeOf(source).getNumElements()});
  Value flat = castTo(b, b.reshape(mask, {typeOf(mask).getNumElements()}),
                      b.getI64Type());
  // Elements that aren't written read the first one.
  Value place = mul(
      b,
      sub(b, nn::CumSumOp::create(b, flat, 0), integer(b, b.getI64Type(), 1)),
      flat);
  Value found =
      b.reshape(nn::IndexSelectOp::create(b, source, place, 0), shapeOf(self));
  return call.result(select(b, mask, found, self));
}

void mlir::tp::addScatterOps(AtenTable &table) {
  table["scatter"] = {scatterOp, "self dim index src value reduce"};
  table["scatter_add"] = {scatterAdd, "self dim index src"};
  table["scatter_reduce"] = {scatterReduce,
                             "self dim index src reduce include_self"};
  table["index_reduce"] = {indexReduce,
                           "self dim index source reduce include_self"};
  table["index_add"] = {indexAdd, "self dim index source alpha"};
  table["index_copy"] = {indexCopy, "self dim index source"};
  table["index_fill"] = {indexFill, "self dim index value"};
  table["index_put"] = {indexPut, "self indices values accumulate"};
  table["_unsafe_index_put"] = table["index_put"];
  table["_index_put_impl"] = {.run = indexPut,
                              .reads = "self indices values accumulate",
                              .noEffect = "unsafe"};
  table["masked_scatter"] = {maskedScatter, "self mask source"};
}
