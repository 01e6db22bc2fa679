//===- AtenActivation.cpp - activations, more functions of one number -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a function has pieces, a piece is computed of numbers of its own side
// alone: an infinite one of the other side would make the gradient NaN.
//
//===----------------------------------------------------------------------===//

#include "AtenCall.h"
#include <numbers>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;
using nn::ComparePredicate;

static Value compareTo(ImportBuilder &b, ComparePredicate predicate, Value x,
                       double y) {
  return compare(b, predicate, x, b.scalar(elementOf(x), Scalar::of(y)));
}

template <typename Op>
static LogicalResult function(AtenCall &call, ImportBuilder &b) {
  Value self = castTo(b, call.tensor("self"), call.resultElement());
  return call.result(unary<Op>(b, self));
}

/// The nearest integer, the even one of two.
static LogicalResult round(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  return call.result(isFloat(self) ? unary<nn::RoundOp>(b, self) : self);
}

/// `f` of self in a type of at least 32 bits.
static LogicalResult widely(AtenCall &call, ImportBuilder &b,
                            llvm::function_ref<Value(Value)> f) {
  Value self = castTo(b, call.tensor("self"), call.resultElement());
  return call.result(castTo(b, f(b.widen(self)), call.resultElement()));
}

static LogicalResult log2(AtenCall &call, ImportBuilder &b) {
  return widely(call, b, [&](Value x) {
    return mul(b, unary<nn::LogOp>(b, x), std::numbers::log2e);
  });
}

static LogicalResult log10(AtenCall &call, ImportBuilder &b) {
  return widely(call, b, [&](Value x) {
    return mul(b, unary<nn::LogOp>(b, x), std::numbers::log10e);
  });
}

static LogicalResult exp2(AtenCall &call, ImportBuilder &b) {
  return widely(call, b,
                [&](Value x) { return exp(b, mul(b, x, std::numbers::ln2)); });
}

static LogicalResult sign(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  Type type = elementOf(self);
  if (isBool(self))
    return call.result(self);
  auto isPast = [&](ComparePredicate predicate) {
    return castTo(b, compareTo(b, predicate, self, 0), type);
  };
  return call.result(
      sub(b, isPast(ComparePredicate::GT), isPast(ComparePredicate::LT)));
}

/// scale * x for x > 0, and scale * alpha * (exp(inputScale * x) - 1) below.
static LogicalResult exponentialLinear(AtenCall &call, ImportBuilder &b,
                                       double alpha, double scale,
                                       double inputScale) {
  return widely(call, b, [&](Value x) {
    Value isPositive = compareTo(b, ComparePredicate::GT, x, 0);
    Value zero = b.scalar(elementOf(x), Scalar::of(0.0));
    Value below = mul(b, select(b, isPositive, zero, x), inputScale);
    below = mul(b, unary<nn::Expm1Op>(b, below), scale * alpha);
    return select(b, isPositive, mul(b, x, scale), below);
  });
}

static LogicalResult elu(AtenCall &call, ImportBuilder &b) {
  return exponentialLinear(call, b, call.real("alpha"), call.real("scale"),
                           call.real("input_scale"));
}

static LogicalResult celu(AtenCall &call, ImportBuilder &b) {
  double alpha = call.real("alpha");
  return exponentialLinear(call, b, alpha, 1, 1 / alpha);
}

static LogicalResult selu(AtenCall &call, ImportBuilder &b) {
  return exponentialLinear(call, b, 1.6732632423543772848,
                           1.0507009873554804934, 1);
}

/// x * tanh(log(1 + exp(x))). With e = exp(x), the tanh is n / (n + 2) for n =
/// e * (e + 2), and 1 for large x.
static LogicalResult mish(AtenCall &call, ImportBuilder &b) {
  return widely(call, b, [&](Value x) {
    Value isLarge = compareTo(b, ComparePredicate::GT, x, 20);
    Value zero = b.scalar(elementOf(x), Scalar::of(0.0));
    Value e = exp(b, select(b, isLarge, zero, x));
    Value n = mul(b, e, add(b, e, 2));
    return select(b, isLarge, x, mul(b, x, div(b, n, add(b, n, 2))));
  });
}

/// x + 3 between 0 and 6, by 6.
static Value hardSigmoid(ImportBuilder &b, Value x) {
  Value zero = b.scalar(elementOf(x), Scalar::of(0.0)),
        one = b.scalar(elementOf(x), Scalar::of(1.0));
  Value line = mul(b, add(b, x, 3), 1.0 / 6);
  line = select(b, compareTo(b, ComparePredicate::LE, x, -3), zero, line);
  return select(b, compareTo(b, ComparePredicate::GE, x, 3), one, line);
}

static LogicalResult hardSigmoid(AtenCall &call, ImportBuilder &b) {
  return widely(call, b, [&](Value x) { return hardSigmoid(b, x); });
}

static LogicalResult hardSwish(AtenCall &call, ImportBuilder &b) {
  return widely(call, b, [&](Value x) { return mul(b, x, hardSigmoid(b, x)); });
}

/// A learned slope below 0, one for each channel or one for all.
static LogicalResult prelu(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self"), weight = call.tensor("weight");
  if (int64_t rank = rankOf(self); rank > 1 && rankOf(weight) == 1) {
    llvm::SmallVector<int64_t> shape(rank, 1);
    shape[1] = shapeOf(weight)[0];
    weight = b.reshape(weight, shape);
  }
  Value isPositive = compareTo(b, ComparePredicate::GT, self, 0);
  return call.result(b.reshape(
      select(b, isPositive, self, mul(b, self, weight)), call.resultShape()));
}

static LogicalResult threshold(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  Type type = elementOf(self);
  Value isBelow = compare(b, ComparePredicate::LE, self,
                          b.scalar(type, call.scalar("threshold")));
  return call.result(
      select(b, isBelow, b.scalar(type, call.scalar("value")), self));
}

/// 0 from -lambda to lambda; outside x, or, if it is soft, x moved towards 0.
template <bool isSoft>
static LogicalResult shrink(AtenCall &call, ImportBuilder &b) {
  double lambda = call.real("lambd");
  return widely(call, b, [&](Value x) {
    // For NaN, neither comparison holds.
    Value isInside = binary<nn::LogicalAndOp>(
        b, compareTo(b, ComparePredicate::GE, x, -lambda),
        compareTo(b, ComparePredicate::LE, x, lambda));
    Value outside = x;
    if (isSoft)
      outside = select(b, compareTo(b, ComparePredicate::GT, x, lambda),
                       add(b, x, -lambda), add(b, x, lambda));
    return keep(b, unary<nn::LogicalNotOp>(b, isInside), outside);
  });
}

void mlir::tp::addActivationOps(AtenTable &table) {
  table["expm1"] = {function<nn::Expm1Op>, "self"};
  table["log1p"] = {function<nn::Log1pOp>, "self"};
  table["atan"] = {function<nn::AtanOp>, "self"};
  table["arctan"] = {function<nn::AtanOp>, "self"};
  table["round"] = {.run = round, .reads = "self", .refuses = "decimals"};
  table["log2"] = {log2, "self"};
  table["log10"] = {log10, "self"};
  table["exp2"] = {exp2, "self"};
  table["sign"] = {sign, "self"};
  table["elu"] = {elu, "self alpha scale input_scale"};
  table["celu"] = {celu, "self alpha"};
  table["selu"] = {selu, "self"};
  table["mish"] = {mish, "self"};
  table["hardsigmoid"] = {hardSigmoid, "self"};
  table["hardswish"] = {hardSwish, "self"};
  table["prelu"] = {prelu, "self weight"};
  table["_prelu_kernel"] = {prelu, "self weight"};
  table["threshold"] = {threshold, "self threshold value"};
  table["hardshrink"] = {shrink<false>, "self lambd"};
  table["softshrink"] = {shrink<true>, "self lambd"};
}
