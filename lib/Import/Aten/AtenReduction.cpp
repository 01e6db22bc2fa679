//===- AtenReduction.cpp - norms, softmax, reductions ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AtenReduction.h"
#include <cmath>
#include <string>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;
using nn::ComparePredicate;
using nn::ReduceKind;

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static int64_t countOf(ImportBuilder &b, Value v, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim = 0; dim < rankOf(v); ++dim)
    if (dims.empty() || llvm::is_contained(dims, dim))
      count *= shapeOf(v)[dim];
  return count;
}

template <ReduceKind kind>
static LogicalResult reduce(AtenCall &call, ImportBuilder &b) {
  // An extremum is one of the elements, so nothing is rounded.
  bool isExtremum = kind == ReduceKind::Max || kind == ReduceKind::Min;
  Value self = isExtremum ? castTo(b, call.tensor("self"), call.resultElement())
                          : wideSelf(call, b);
  if (isBool(self))
    self = castTo(b, self, b.getI32Type());
  return reduced(
      call, b, b.reduce(kind, self, dimsOf(call, self), call.flag("keepdim")));
}

/// Reverses the order of elements. The smallest integer has no negative.
static Value reverseOrder(ImportBuilder &b, Value v) {
  return isFloat(v)
             ? unary<nn::NegOp>(b, v)
             : sub(b, b.scalar(elementOf(v), Scalar::of(int64_t(-1))), v);
}

/// max and min: over all elements, along a dimension and with the positions, or
/// of two tensors.
template <ReduceKind kind, typename Op>
static LogicalResult extremum(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  if (call.has("other")) {
    Type type = call.resultElement();
    return call.result(binary<Op>(b, operand(call, b, "self", type),
                                  operand(call, b, "other", type)));
  }
  if (isBool(self))
    self = castTo(b, self, b.getI32Type());
  if (!call.has("dim"))
    return reduced(call, b, b.reduce(kind, self, {}, false));
  if (rankOf(self) == 0)
    return call.unsupported("along a dimension of a scalar");
  int64_t dim = call.dim("dim", rankOf(self));
  Value searched = kind == ReduceKind::Max ? self : reverseOrder(b, self);
  Value index = nn::ArgMaxOp::create(b, searched, dim, /*keepdim=*/true);
  call.setResult(1, b.reshape(index, call.resultShape(1)));
  // Of equal elements, the one at the index has the whole gradient.
  Value value = isFloat(self) ? Value(nn::GatherOp::create(b, self, index, dim))
                              : b.reduce(kind, self, {dim}, /*keepdim=*/true);
  return reduced(call, b, value);
}

template <bool smallest>
static LogicalResult argExtremum(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  if (smallest)
    self = reverseOrder(b, self);
  int64_t dim = 0;
  if (call.has("dim") && rankOf(self) > 0)
    dim = call.dim("dim", rankOf(self));
  else
    self = b.reshape(self, {typeOf(self).getNumElements()});
  return reduced(call, b, nn::ArgMaxOp::create(b, self, dim));
}

/// any: an element isn't 0; all: no element is 0. Unlike other reductions,
/// these reduce nothing if the list of dimensions is empty.
template <ReduceKind kind>
static LogicalResult truth(AtenCall &call, ImportBuilder &b) {
  Value self = castTo(b, call.tensor("self"), b.getI1Type());
  if (call.has("dim") && call.integers("dim").empty())
    return reduced(call, b, self);
  if (typeOf(self).getNumElements() == 0)
    return call.result(b.splat(call.resultShape(), call.resultElement(),
                               Scalar::of(int64_t(kind == ReduceKind::Min))));
  self = castTo(b, self, b.getI32Type());
  return reduced(
      call, b, b.reduce(kind, self, dimsOf(call, self), call.flag("keepdim")));
}

static LogicalResult extrema(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  llvm::SmallVector<int64_t> dims;
  if (call.has("dim") && rankOf(self) > 0)
    dims.push_back(call.dim("dim", rankOf(self)));
  bool keepdim = call.flag("keepdim");
  if (failed(reduced(call, b, b.reduce(ReduceKind::Min, self, dims, keepdim))))
    return failure();
  return reduced(call, b, b.reduce(ReduceKind::Max, self, dims, keepdim), 1);
}

static LogicalResult countNonzero(AtenCall &call, ImportBuilder &b) {
  Value self = castTo(b, call.tensor("self"), b.getI1Type());
  self = castTo(b, self, b.getI64Type());
  return reduced(call, b,
                 b.reduce(ReduceKind::Sum, self, dimsOf(call, self), false));
}

/// The sum of the elements that aren't NaN.
static LogicalResult sumOfNumbers(AtenCall &call, ImportBuilder &b) {
  Value self = wideSelf(call, b);
  self = keep(b, compare(b, ComparePredicate::EQ, self, self), self);
  return reduced(call, b,
                 b.reduce(ReduceKind::Sum, self, dimsOf(call, self),
                          call.flag("keepdim")));
}

/// mean((x - mean(x))²), with n - correction instead of n. The gradient with
/// respect to the mean is 0, because differences from the mean add up to 0.
static LogicalResult variance(AtenCall &call, ImportBuilder &b, bool root,
                              bool withMean) {
  Value self = wideSelf(call, b);
  auto dims = dimsOf(call, self);
  bool keepdim = call.flag("keepdim");
  double correction = 1;
  if (call.has("correction"))
    correction = call.real("correction");
  else if (call.has("unbiased"))
    correction = call.flag("unbiased");
  int64_t count = countOf(b, self, dims);

  Value mean = b.reduce(ReduceKind::Mean, self, dims, true);
  Value centered = sub(b, self, b.stopGradient(mean));
  Value squares = mul(b, centered, centered);
  Value result;
  if (correction == 0) {
    result = b.reduce(ReduceKind::Mean, squares, dims, keepdim);
  } else {
    double divisor = std::max(0.0, double(count) - correction);
    result = b.reduce(ReduceKind::Sum, squares, dims, keepdim);
    result = div(b, result, b.scalar(elementOf(self), Scalar::of(divisor)));
  }
  if (root)
    result = b.rootOfSquares(result);
  if (withMean && failed(reduced(call, b, mean, 1)))
    return failure();
  return reduced(call, b, result);
}

template <bool root, bool withMean>
static LogicalResult varianceOp(AtenCall &call, ImportBuilder &b) {
  return variance(call, b, root, withMean);
}

static LogicalResult logSumExp(AtenCall &call, ImportBuilder &b) {
  Value self = wideSelf(call, b);
  auto dims = dimsOf(call, self);
  Value largest = b.reduce(ReduceKind::Max, self, dims, true);
  // Infinities have no differences; for -inf alone the result is -inf.
  Type type = elementOf(self);
  largest =
      select(b,
             compare(b, ComparePredicate::EQ, unary<nn::AbsOp>(b, largest),
                     b.scalar(type, Scalar::of(HUGE_VAL))),
             b.scalar(type, Scalar::of(int64_t(0))), largest);
  Value sum = b.reduce(ReduceKind::Sum,
                       unary<nn::ExpOp>(b, sub(b, self, largest)), dims, true);
  return reduced(call, b, add(b, unary<nn::LogOp>(b, sum), largest));
}

static LogicalResult cumulativeSum(AtenCall &call, ImportBuilder &b) {
  Value self = castTo(b, call.tensor("self"), call.resultElement());
  if (rankOf(self) == 0)
    return call.result(self);
  return call.result(
      nn::CumSumOp::create(b, self, call.dim("dim", rankOf(self))));
}

//===----------------------------------------------------------------------===//
// Softmax and norms
//===----------------------------------------------------------------------===//

template <bool logarithm>
static LogicalResult softmax(AtenCall &call, ImportBuilder &b) {
  Value self = castTo(b, call.tensor("self"), call.resultElement());
  // PyTorch treats a single number as a vector.
  Value v = rankOf(self) == 0 ? b.reshape(self, {1}) : self;
  int64_t dim = call.dim("dim", rankOf(v));
  v = logarithm ? Value(nn::LogSoftmaxOp::create(b, v, dim))
                : Value(nn::SoftmaxOp::create(b, v, dim));
  return call.result(b.reshape(v, call.resultShape()));
}

/// The softmax of a decomposed scaled_dot_product_attention.
static LogicalResult safeSoftmax(AtenCall &call, ImportBuilder &b) {
  Value self = castTo(b, call.tensor("self"), call.resultElement());
  return call.result(safeSoftmax(b, self, call.dim("dim", rankOf(self))));
}

static LogicalResult layerNorm(AtenCall &call, ImportBuilder &b) {
  Value input = call.tensor("input");
  int64_t normalized = call.integers("normalized_shape").size();
  call.setResult(0, nn::LayerNormOp::create(
                        b, input, call.tensor("weight"), call.tensor("bias"),
                        b.getI64IntegerAttr(normalized),
                        b.getF64FloatAttr(call.real("eps"))));
  return success();
}

static LogicalResult rmsNorm(AtenCall &call, ImportBuilder &b) {
  Value input = call.tensor("input");
  int64_t normalized = call.integers("normalized_shape").size();
  double eps;
  if (call.has("eps")) {
    eps = call.real("eps");
  } else {
    // PyTorch's default: the machine epsilon of the element type.
    auto type = cast<FloatType>(elementOf(input));
    llvm::APFloat one(type.getFloatSemantics(), 1), next(one);
    next.next(/*nextDown=*/false);
    eps = next.convertToDouble() - one.convertToDouble();
  }
  return call.result(nn::RMSNormOp::create(b, input, call.tensor("weight"),
                                           b.getI64IntegerAttr(normalized),
                                           b.getF64FloatAttr(eps)));
}

void mlir::tp::addReductionOps(AtenTable &table) {
  table["sum"] = {.run = reduce<ReduceKind::Sum>,
                  .reads = "self dim keepdim",
                  .inType = "dtype"};
  table["mean"] = {.run = reduce<ReduceKind::Mean>,
                   .reads = "self dim keepdim",
                   .inType = "dtype"};
  table["prod"] = {.run = reduce<ReduceKind::Product>,
                   .reads = "self dim keepdim",
                   .inType = "dtype"};
  table["amax"] = {reduce<ReduceKind::Max>, "self dim keepdim"};
  table["amin"] = {reduce<ReduceKind::Min>, "self dim keepdim"};
  table["max"] = {.run = extremum<ReduceKind::Max, nn::MaximumOp>,
                  .reads = "self other dim",
                  .inType = "keepdim"};
  table["min"] = {.run = extremum<ReduceKind::Min, nn::MinimumOp>,
                  .reads = "self other dim",
                  .inType = "keepdim"};
  table["argmax"] = {
      .run = argExtremum<false>, .reads = "self dim", .inType = "keepdim"};
  table["argmin"] = {
      .run = argExtremum<true>, .reads = "self dim", .inType = "keepdim"};
  table["any"] = {truth<ReduceKind::Max>, "self dim keepdim"};
  table["all"] = {truth<ReduceKind::Min>, "self dim keepdim"};
  table["aminmax"] = {extrema, "self dim keepdim"};
  table["count_nonzero"] = {countNonzero, "self dim"};
  table["nansum"] = {
      .run = sumOfNumbers, .reads = "self dim keepdim", .inType = "dtype"};
  table["var"] = {varianceOp<false, false>,
                  "self dim unbiased correction keepdim"};
  table["std"] = {varianceOp<true, false>,
                  "self dim unbiased correction keepdim"};
  table["var_mean"] = {varianceOp<false, true>,
                       "self dim unbiased correction keepdim"};
  table["std_mean"] = {varianceOp<true, true>,
                       "self dim unbiased correction keepdim"};
  table["logsumexp"] = {logSumExp, "self dim keepdim"};
  table["cumsum"] = {
      .run = cumulativeSum, .reads = "self dim", .inType = "dtype"};
  table["softmax"] = {
      .run = softmax<false>, .reads = "self dim", .inType = "dtype"};
  table["_softmax"] = {
      .run = softmax<false>, .reads = "self dim", .inType = "half_to_float"};
  table["_safe_softmax"] = {
      .run = safeSoftmax, .reads = "self dim", .inType = "dtype"};
  table["log_softmax"] = {
      .run = softmax<true>, .reads = "self dim", .inType = "dtype"};
  table["_log_softmax"] = {
      .run = softmax<true>, .reads = "self dim", .inType = "half_to_float"};
  table["layer_norm"] = {.run = layerNorm,
                         .reads = "input normalized_shape weight bias eps",
                         .noEffect = "cudnn_enable"};
  table["native_layer_norm"] = {layerNorm,
                                "input normalized_shape weight bias eps"};
  table["rms_norm"] = {rmsNorm, "input normalized_shape weight eps"};
  table["_fused_rms_norm"] = {rmsNorm, "input normalized_shape weight eps"};
}
