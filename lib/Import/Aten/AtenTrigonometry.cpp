//===- AtenTrigonometry.cpp - angles and hyperbolic functions -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each function is a formula of nn ops that keeps its relative accuracy near 0
// and doesn't overflow early, and whose derivative is that of the function.
//
//===----------------------------------------------------------------------===//

#include "AtenCall.h"
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;
using nn::ComparePredicate;

static Value sqrt(ImportBuilder &b, Value x) { return unary<nn::SqrtOp>(b, x); }

static Value tan(ImportBuilder &b, Value x) {
  return div(b, unary<nn::SinOp>(b, x), unary<nn::CosOp>(b, x));
}

/// Twice the arctangent of x / (1 + cos(asin(x))). At 1 and -1, the product of
/// two roots has an infinite derivative, and a root of the product has none.
static Value asin(ImportBuilder &b, Value x) {
  Value cosine = mul(b, sqrt(b, subFrom(b, 1, x)), sqrt(b, add(b, x, 1)));
  return mul(b, unary<nn::AtanOp>(b, div(b, x, add(b, cosine, 1))), 2);
}

static Value signOf(ImportBuilder &b, Value x) {
  return select(b, compare(b, ComparePredicate::LT, x, 0.0),
                constantLike(b, x, -1), constantLike(b, x, 1));
}

/// Twice the arctangent of √(1 - m) / √(1 + m) for m = |x|; π less this for
/// negative x.
static Value acos(ImportBuilder &b, Value x) {
  Value m = mul(b, x, signOf(b, x));
  Value tangent = div(b, sqrt(b, subFrom(b, 1, m)), sqrt(b, add(b, m, 1)));
  Value angle = mul(b, unary<nn::AtanOp>(b, tangent), 2);
  return select(b, compare(b, ComparePredicate::LT, x, 0.0),
                subFrom(b, std::numbers::pi, angle), angle);
}

/// exp(m) / 2 for m ≥ 0. It is finite wherever the functions below are, and
/// m - 1 isn't rounded where this matters.
static Value halfExp(ImportBuilder &b, Value m) {
  return mul(b, exp(b, add(b, m, -1)), std::numbers::e / 2);
}

/// (exp(x) - exp(-x)) / 2, where the second term counts.
static Value sinh(ImportBuilder &b, Value x) {
  Value sign = signOf(b, x), m = mul(b, x, sign);
  Value isLarge = compare(b, ComparePredicate::GT, m, 20);
  Value large = mul(b, halfExp(b, m), sign);
  Value small = select(b, isLarge, constantLike(b, x, 0), x);
  small = mul(b,
              sub(b, unary<nn::Expm1Op>(b, small),
                  unary<nn::Expm1Op>(b, neg(b, small))),
              0.5);
  return select(b, isLarge, large, small);
}

/// (exp(x) + exp(-x)) / 2.
static Value cosh(ImportBuilder &b, Value x) {
  Value m = unary<nn::AbsOp>(b, x);
  return add(b, halfExp(b, m), mul(b, exp(b, neg(b, m)), 0.5));
}

/// The inverse of a hyperbolic function: `f` of x, or log(2x) where x is so
/// large that the squares in `f` could overflow.
static Value inverse(ImportBuilder &b, Value x,
                     llvm::function_ref<Value(Value)> f) {
  Value isLarge = compare(b, ComparePredicate::GT, x, 1e9);
  Value one = constantLike(b, x, 1);
  Value logarithm = add(b, unary<nn::LogOp>(b, select(b, isLarge, x, one)),
                        std::numbers::ln2);
  return select(b, isLarge, logarithm, f(select(b, isLarge, one, x)));
}

/// sign(x) * log(m + sqrt(m² + 1)) for m = |x|.
static Value asinh(ImportBuilder &b, Value x) {
  Value sign = signOf(b, x);
  Value result = inverse(b, mul(b, x, sign), [&](Value m) {
    Value square = mul(b, m, m);
    Value root = sqrt(b, add(b, square, 1));
    return unary<nn::Log1pOp>(b, add(b, m, div(b, square, add(b, root, 1))));
  });
  return mul(b, result, sign);
}

/// log(x + sqrt(x² - 1)), NaN for x < 1.
static Value acosh(ImportBuilder &b, Value x) {
  return inverse(b, x, [&](Value x) {
    Value t = add(b, x, -1);
    Value root = mul(b, sqrt(b, t), sqrt(b, add(b, x, 1)));
    return unary<nn::Log1pOp>(b, add(b, t, root));
  });
}

static Value atanh(ImportBuilder &b, Value x) {
  return mul(b,
             sub(b, unary<nn::Log1pOp>(b, x), unary<nn::Log1pOp>(b, neg(b, x))),
             0.5);
}

/// The angle of the point (x, y), from the arctangent of the smaller coordinate
/// by the larger one.
static Value atan2(ImportBuilder &b, Value y, Value x) {
  auto choose = [&](Value condition, Value yes, Value no) {
    return select(b, condition, yes, no);
  };
  auto isInfinite = [&](Value v) {
    return compare(b, ComparePredicate::EQ, unary<nn::AbsOp>(b, v), HUGE_VAL);
  };
  Value areInfinite = binary<nn::LogicalAndOp>(b, isInfinite(x), isInfinite(y));
  Value one = constantLike(b, x, 1);
  x = choose(areInfinite, b.copySign(one, x), x);
  y = choose(areInfinite, b.copySign(one, y), y);
  Value isSteep = compare(b, ComparePredicate::GT, unary<nn::AbsOp>(b, y),
                          unary<nn::AbsOp>(b, x));
  Value shorter = choose(isSteep, x, y), longer = choose(isSteep, y, x);
  Value isOrigin = compare(b, ComparePredicate::EQ, longer, 0.0);
  Value angle =
      unary<nn::AtanOp>(b, div(b, shorter, choose(isOrigin, one, longer)));
  Value half = b.copySign(constantLike(b, y, std::numbers::pi / 2), y);
  Value turn = choose(b.signBit(x), mul(b, half, 2), mul(b, half, 0));
  return choose(isSteep, sub(b, half, angle), add(b, angle, turn));
}

static LogicalResult atan2(AtenCall &call, ImportBuilder &b) {
  return widely(call, b, "other",
                [&](Value y, Value x) { return atan2(b, y, x); });
}

/// sin(πx) / (πx), and 1 at 0.
static Value sinc(ImportBuilder &b, Value x) {
  Value isZero = compare(b, ComparePredicate::EQ, x, 0.0);
  Value one = constantLike(b, x, 1);
  Value angle = mul(b, select(b, isZero, one, x), std::numbers::pi);
  return select(b, isZero, one, div(b, unary<nn::SinOp>(b, angle), angle));
}

static Value degreesToRadians(ImportBuilder &b, Value x) {
  return mul(b, x, std::numbers::pi / 180);
}

static Value radiansToDegrees(ImportBuilder &b, Value x) {
  return mul(b, x, 180 / std::numbers::pi);
}

void mlir::tp::addTrigonometryOps(AtenTable &table) {
  table["tan"] = {widely<tan>, "self"};
  table["asin"] = {widely<asin>, "self"};
  table["acos"] = {widely<acos>, "self"};
  table["sinh"] = {widely<sinh>, "self"};
  table["cosh"] = {widely<cosh>, "self"};
  table["asinh"] = {widely<asinh>, "self"};
  table["acosh"] = {widely<acosh>, "self"};
  table["atanh"] = {widely<atanh>, "self"};
  table["atan2"] = {atan2, "self other"};
  table["sinc"] = {widely<sinc>, "self"};
  table["deg2rad"] = {widely<degreesToRadians>, "self"};
  table["rad2deg"] = {widely<radiansToDegrees>, "self"};
}
