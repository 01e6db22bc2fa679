//===- AtenActivation.cpp - activations, more functions of one number -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a function has pieces, a piece is computed of numbers of its own side
// alone: an infinite one of the other side would make the gradient NaN.
//
//===----------------------------------------------------------------------===//

#include "AtenCall.h"
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;
using nn::ComparePredicate;

template <typename Op>
static LogicalResult function(AtenCall &call, ImportBuilder &b) {
  Value self = castTo(b, call.tensor("self"), call.resultElement());
  return call.result(unary<Op>(b, self));
}

/// The nearest multiple of 10^-decimals; of two nearest ones, the even one.
static LogicalResult round(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  if (!isFloat(self))
    return call.result(self);
  int64_t decimals = call.integer("decimals");
  return widely(call, b, [&](Value x) {
    Value scale = constantLike(b, x, std::pow(10.0, std::abs(decimals)));
    if (decimals == 0)
      return unary<nn::RoundOp>(b, x);
    if (decimals < 0)
      return mul(b, unary<nn::RoundOp>(b, div(b, x, scale)), scale);
    return div(b, unary<nn::RoundOp>(b, mul(b, x, scale)), scale);
  });
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

/// The power is exact for integers.
static LogicalResult exp2(AtenCall &call, ImportBuilder &b) {
  return widely(call, b, [&](Value x) {
    return binary<nn::PowOp>(b, constantLike(b, x, 2), x);
  });
}

static LogicalResult sign(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  Type type = elementOf(self);
  if (isBool(self))
    return call.result(self);
  auto isPast = [&](ComparePredicate predicate) {
    return castTo(b, compare(b, predicate, self, 0), type);
  };
  return call.result(
      sub(b, isPast(ComparePredicate::GT), isPast(ComparePredicate::LT)));
}

/// scale * x for x > 0, and scale * alpha * (exp(inputScale * x) - 1) below.
static LogicalResult exponentialLinear(AtenCall &call, ImportBuilder &b,
                                       double alpha, double scale,
                                       double inputScale) {
  return widely(call, b, [&](Value x) {
    Value isPositive = compare(b, ComparePredicate::GT, x, 0);
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
    Value isLarge = compare(b, ComparePredicate::GT, x, 20);
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
  line = select(b, compare(b, ComparePredicate::LE, x, -3), zero, line);
  return select(b, compare(b, ComparePredicate::GE, x, 3), one, line);
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
  Value isPositive = compare(b, ComparePredicate::GT, self, 0);
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
        b, compare(b, ComparePredicate::GE, x, -lambda),
        compare(b, ComparePredicate::LE, x, lambda));
    Value outside = x;
    if (isSoft)
      outside = select(b, compare(b, ComparePredicate::GT, x, lambda),
                       add(b, x, -lambda), add(b, x, lambda));
    return keep(b, unary<nn::LogicalNotOp>(b, isInside), outside);
  });
}

/// In eval mode, a slope below 0 that is the mean of its bounds.
static LogicalResult randomizedRelu(AtenCall &call, ImportBuilder &b) {
  if (call.flag("training"))
    return call.unsupported("in training mode: call eval() on the module "
                            "before saving it");
  double slope = (call.real("lower") + call.real("upper")) / 2;
  return widely(call, b, [&](Value x) {
    return select(b, compare(b, ComparePredicate::GT, x, 0.0), x,
                  mul(b, x, slope));
  });
}

void mlir::tp::addActivationOps(AtenTable &table) {
  table["expm1"] = {function<nn::Expm1Op>, "self"};
  table["log1p"] = {function<nn::Log1pOp>, "self"};
  table["atan"] = {function<nn::AtanOp>, "self"};
  table["arctan"] = {function<nn::AtanOp>, "self"};
  table["round"] = {round, "self decimals"};
  table["log2"] = {log2, "self"};
  table["log10"] = {log10, "self"};
  table["exp2"] = {exp2, "self"};
  table["sign"] = {sign, "self"};
  table["sgn"] = {sign, "self"};
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
  table["rrelu"] = {.run = randomizedRelu,
                    .reads = "self lower upper training",
                    .noEffect = "generator"};
  table["softshrink"] = {shrink<true>, "self lambd"};
}
