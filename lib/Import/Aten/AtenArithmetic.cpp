//===- AtenArithmetic.cpp - Remainders, divisors, signs, choices ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AtenCall.h"
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;
using nn::ComparePredicate;

/// x - trunc(x / y) * y, which has the sign of x.
static LogicalResult fmod(AtenCall &call, ImportBuilder &b) {
  return widely(call, b, "other", [&](Value x, Value y) {
    if (!isFloat(x))
      return sub(b, x, mul(b, div(b, x, y), y));
    Value sign = b.copySign(constantLike(b, x, 1), x);
    Value rest =
        binary<nn::RemainderOp>(b, mul(b, x, sign), unary<nn::AbsOp>(b, y));
    return mul(b, rest, sign);
  });
}

/// The greatest common divisor, by Euclid's algorithm. Numbers of `width` bits
/// need the most steps if they are Fibonacci numbers in a row.
static Value greatestDivisor(ImportBuilder &b, Value x, Value y) {
  unsigned width = elementOf(x).getIntOrFloatBitWidth();
  auto steps =
      static_cast<int>(std::ceil(width / std::log2(std::numbers::phi)));
  x = unary<nn::AbsOp>(b, x), y = unary<nn::AbsOp>(b, y);
  Value one = constantLike(b, x, 1);
  for (int step = 0; step < steps; ++step) {
    Value isDone = compare(b, ComparePredicate::EQ, y, 0.0);
    Value rest = binary<nn::RemainderOp>(b, x, select(b, isDone, one, y));
    x = select(b, isDone, x, y), y = rest;
  }
  return x;
}

template <bool isMultiple>
static LogicalResult gcd(AtenCall &call, ImportBuilder &b) {
  Type type = call.resultElement();
  Value x = operand(call, b, "self", type), y = operand(call, b, "other", type);
  Value divisor = greatestDivisor(b, x, y);
  if (!isMultiple)
    return call.result(divisor);
  // Of 0 and 0, the multiple is 0.
  divisor = binary<nn::MaximumOp>(b, divisor, constantLike(b, divisor, 1));
  Value multiple = mul(b, binary<nn::DivOp>(b, x, divisor), y);
  return call.result(unary<nn::AbsOp>(b, multiple));
}

static LogicalResult frac(AtenCall &call, ImportBuilder &b) {
  return widely(call, b, [&](Value x) { return sub(b, x, b.truncate(x)); });
}

/// sqrt(x² + y²), computed of numbers of at most 1.
static LogicalResult hypot(AtenCall &call, ImportBuilder &b) {
  return widely(call, b, "other", [&](Value x, Value y) {
    Value scale = binary<nn::MaximumOp>(b, unary<nn::AbsOp>(b, x),
                                        unary<nn::AbsOp>(b, y));
    Value isSimple = binary<nn::LogicalOrOp>(
        b, compare(b, ComparePredicate::EQ, scale, 0.0),
        compare(b, ComparePredicate::EQ, scale, HUGE_VAL));
    scale =
        b.stopGradient(select(b, isSimple, constantLike(b, scale, 1), scale));
    x = div(b, x, scale), y = div(b, y, scale);
    Value root = unary<nn::SqrtOp>(b, add(b, mul(b, x, x), mul(b, y, y)));
    return mul(b, root, scale);
  });
}

/// 0 below 0, 1 above, and at 0 the given value.
static LogicalResult heaviside(AtenCall &call, ImportBuilder &b) {
  return widely(call, b, "values", [&](Value x, Value values) {
    Value isZero = compare(b, ComparePredicate::EQ, x, constantLike(b, x, 0));
    Value isAbove = compare(b, ComparePredicate::GT, x, constantLike(b, x, 0));
    return select(b, isZero, values, castTo(b, isAbove, elementOf(x)));
  });
}

static LogicalResult copySign(AtenCall &call, ImportBuilder &b) {
  return widely(call, b, "other",
                [&](Value x, Value y) { return b.copySign(x, y); });
}

static LogicalResult signBit(AtenCall &call, ImportBuilder &b) {
  return call.result(b.signBit(call.tensor("self")));
}

/// The larger or the smaller number; a NaN only if both are NaN. Of equal
/// numbers, the first one is chosen and has the gradient.
template <ComparePredicate isChosen>
static LogicalResult extremum(AtenCall &call, ImportBuilder &b) {
  return widely(call, b, "other", [&](Value x, Value y) {
    Value isNaN = compare(b, ComparePredicate::NE, y, y);
    Value takesFirst =
        binary<nn::LogicalOrOp>(b, compare(b, isChosen, x, y), isNaN);
    return select(b, takesFirst, x, y);
  });
}

template <bool isNegative>
static LogicalResult isInfinite(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  if (!isFloat(self))
    return call.result(
        b.splat(shapeOf(self), b.getI1Type(), Scalar::of(int64_t(0))));
  return call.result(compare(b, ComparePredicate::EQ, self,
                             isNegative ? -HUGE_VAL : HUGE_VAL));
}

void mlir::tp::addArithmeticOps(AtenTable &table) {
  table["fmod"] = {fmod, "self other"};
  table["gcd"] = {gcd<false>, "self other"};
  table["lcm"] = {gcd<true>, "self other"};
  table["frac"] = {frac, "self"};
  table["hypot"] = {hypot, "self other"};
  table["heaviside"] = {heaviside, "self values"};
  table["copysign"] = {copySign, "self other"};
  table["signbit"] = {signBit, "self"};
  table["fmax"] = {extremum<ComparePredicate::GE>, "self other"};
  table["fmin"] = {extremum<ComparePredicate::LE>, "self other"};
  table["isposinf"] = {isInfinite<false>, "self"};
  table["isneginf"] = {isInfinite<true>, "self"};
}
