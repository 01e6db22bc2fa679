//===- AtenSpecial.cpp - special functions --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Logarithms of sums and odds, the error function's relatives, and the gamma
// function's. The formulas are accurate to a few roundings in f32 and f64.
// Source: Abramowitz and Stegun, "Handbook of Mathematical Functions", chapters
// 6 and 7.
//
//===----------------------------------------------------------------------===//

#include "AtenCall.h"
#include "AtenFunctions.h"
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;
using nn::ComparePredicate;

static Value log(ImportBuilder &b, Value x) { return unary<nn::LogOp>(b, x); }
static Value log1p(ImportBuilder &b, Value x) {
  return unary<nn::Log1pOp>(b, x);
}
static Value abs(ImportBuilder &b, Value x) { return unary<nn::AbsOp>(b, x); }
static Value logicalOr(ImportBuilder &b, Value x, Value y) {
  return binary<nn::LogicalOrOp>(b, x, y);
}
static Value logicalAnd(ImportBuilder &b, Value x, Value y) {
  return binary<nn::LogicalAndOp>(b, x, y);
}
static Value isEqual(ImportBuilder &b, Value x, double y) {
  return compare(b, ComparePredicate::EQ, x, y);
}
static Value isBelow(ImportBuilder &b, Value x, double y) {
  return compare(b, ComparePredicate::LT, x, y);
}
static Value choose(ImportBuilder &b, Value condition, Value x, double y) {
  return select(b, condition, x, constantLike(b, x, y));
}
static Value choose(ImportBuilder &b, Value condition, double x, Value y) {
  return select(b, condition, constantLike(b, y, x), y);
}

//===----------------------------------------------------------------------===//
// Logarithms
//===----------------------------------------------------------------------===//

/// x * f(y), and 0 for x = 0 wherever f(y) isn't a number.
template <Value (*f)(ImportBuilder &b, Value x), int64_t pole>
static LogicalResult timesLogarithm(AtenCall &call, ImportBuilder &b) {
  return widely(call, b, "other", [&](Value x, Value y) {
    Value hasPole = logicalOr(b, compare(b, ComparePredicate::LE, y, pole),
                              isEqual(b, y, HUGE_VAL));
    Value isZero = logicalAnd(b, isEqual(b, x, 0), hasPole);
    return mul(b, x, f(b, choose(b, isZero, 1, y)));
  });
}

/// max(x, y) + log(1 + exp(-|x - y|)).
Value mlir::tp::logAddExp(ImportBuilder &b, Value x, Value y) {
  // Equal infinities have no difference.
  Value areEqual = compare(b, ComparePredicate::EQ, x, y);
  Value distance = abs(b, choose(b, areEqual, 0, sub(b, x, y)));
  return add(b, binary<nn::MaximumOp>(b, x, y),
             log1p(b, exp(b, neg(b, distance))));
}

/// The same to base 2 if `isBinary`.
template <bool isBinary>
static LogicalResult logAddExpOp(AtenCall &call, ImportBuilder &b) {
  double unit = isBinary ? std::numbers::ln2 : 1;
  return widely(call, b, "other", [&](Value x, Value y) {
    Value sum = logAddExp(b, mul(b, x, unit), mul(b, y, unit));
    return mul(b, sum, 1 / unit);
  });
}

/// log(x / (1 - x)), with x moved to between eps and 1 - eps.
static LogicalResult logit(AtenCall &call, ImportBuilder &b) {
  return widely(call, b, [&](Value x) {
    if (call.has("eps")) {
      double eps = call.real("eps");
      x = choose(b, isBelow(b, x, eps), eps, x);
      x = choose(b, compare(b, ComparePredicate::GT, x, 1 - eps), 1 - eps, x);
    }
    return log(b, div(b, x, subFrom(b, 1, x)));
  });
}

/// -x * log(x): 0 at 0, and -inf below.
static Value entropy(ImportBuilder &b, Value x) {
  Value isPositive = compare(b, ComparePredicate::GT, x, 0);
  Value isNaN = compare(b, ComparePredicate::NE, x, x);
  Value inside = choose(b, logicalOr(b, isPositive, isNaN), x, 1);
  Value result = neg(b, mul(b, inside, log(b, inside)));
  result = choose(b, isEqual(b, x, 0), 0, result);
  return choose(b, isBelow(b, x, 0), -HUGE_VAL, result);
}

//===----------------------------------------------------------------------===//
// The error function's relatives
//===----------------------------------------------------------------------===//

/// Clenshaw's recurrence.
Value mlir::tp::chebyshevSum(ImportBuilder &b, ArrayRef<double> coefficients,
                             Value t) {
  Value twice = mul(b, t, 2);
  Value next = constantLike(b, t, 0), afterNext = next;
  for (double coefficient : llvm::reverse(coefficients.drop_front())) {
    Value value = add(b, sub(b, mul(b, twice, next), afterNext), coefficient);
    afterNext = next, next = value;
  }
  return add(b, sub(b, mul(b, t, next), afterNext), coefficients.front());
}

/// exp(z²) erfc(z) for z ≥ 0: t times a Chebyshev series in 2t - 1 for
/// t = 2 / (2 + z). The coefficients are those of the function's interpolation
/// in 64 Chebyshev nodes, computed with 40 digits.
static Value scaledErfc(ImportBuilder &b, Value z) {
  static const double kCoefficients[] = {
      5.77033738616469689e-1,   3.55436921270498487e-1,
      6.50951588287865245e-2,   3.67114239583663917e-3,
      -1.1128447433526325e-3,   -1.60758299153780798e-4,
      3.27803157317413714e-5,   5.44244164550501509e-6,
      -1.51546655531714707e-6,  -1.42976081811699752e-7,
      8.23460882741958995e-8,   -1.29628468523135578e-9,
      -4.15472163101485714e-9,  6.34705827836343178e-10,
      1.4320822712210588e-10,   -6.16039010512566481e-11,
      2.06121385445581964e-12,  3.57149314995538925e-12,
      -8.58642285376450646e-13, -6.14560012830085586e-14,
      7.4187256940948711e-14,   -1.28950425918449782e-14,
      -2.35872614620810981e-15, 1.57293432890088398e-15,
  };
  bool isDouble = elementOf(z).isF64();
  auto series = ArrayRef(kCoefficients).take_front(isDouble ? 24 : 11);
  Value t = div(b, constantLike(b, z, 2), add(b, z, 2));
  Value sum = chebyshevSum(b, series, add(b, mul(b, t, 2), -1));
  return mul(b, t, sum);
}

/// ±z and whether x is negative; the sign has no derivative, which an absolute
/// value would lack at 0.
static std::pair<Value, Value> splitSign(ImportBuilder &b, Value x) {
  Value isNegative = isBelow(b, x, 0);
  Value sign = choose(b, isNegative, -1, constantLike(b, x, 1));
  return {mul(b, x, sign), isNegative};
}

static Value erfc(ImportBuilder &b, Value x) {
  auto [z, isNegative] = splitSign(b, x);
  // exp(-z²) is 0 from here on in f64.
  z = choose(b, compare(b, ComparePredicate::GT, z, 30), 30, z);
  Value tail = mul(b, exp(b, neg(b, mul(b, z, z))), scaledErfc(b, z));
  return select(b, isNegative, subFrom(b, 2, tail), tail);
}

/// exp(x²) erfc(x).
static Value erfcx(ImportBuilder &b, Value x) {
  auto [z, isNegative] = splitSign(b, x);
  Value tail = scaledErfc(b, z);
  Value inside = choose(b, isNegative, z, 0);
  Value whole = mul(b, exp(b, mul(b, inside, inside)), 2);
  return select(b, isNegative, sub(b, whole, tail), tail);
}

/// log((1 + erf(x / √2)) / 2), by the tail itself where it is small.
static Value logNormal(ImportBuilder &b, Value x) {
  Value isTail = isBelow(b, x, -1);
  Value z = mul(b, choose(b, isTail, x, -1), -1 / std::numbers::sqrt2);
  Value tail = sub(b, log(b, mul(b, scaledErfc(b, z), 0.5)), mul(b, z, z));
  Value body = mul(b, choose(b, isTail, 0, x), 1 / std::numbers::sqrt2);
  return select(b, isTail, tail, log1p(b, mul(b, erfc(b, body), -0.5)));
}

/// Newton's method from Winitzki's approximation. The last step alone has a
/// derivative, which is exact.
static Value erfinv(ImportBuilder &b, Value x) {
  constexpr double a = 0.147;
  auto [z, isNegative] = splitSign(b, x);
  Value isOne = isEqual(b, z, 1);
  z = choose(b, isOne, 0.5, z);
  Value start = b.stopGradient(z);
  Value logarithm =
      add(b, log1p(b, neg(b, start)), log1p(b, start)); // of 1 - z²
  Value t = add(b, mul(b, logarithm, 0.5), 2 / (std::numbers::pi * a));
  Value root =
      unary<nn::SqrtOp>(b, sub(b, mul(b, t, t), mul(b, logarithm, 1 / a)));
  Value difference = sub(b, root, t);
  Value y =
      unary<nn::SqrtOp>(b, choose(b, isBelow(b, difference, 0), 0, difference));
  int steps = elementOf(x).isF64() ? 4 : 3;
  for (int step = 1; step <= steps; ++step) {
    y = b.stopGradient(y);
    Value target = step < steps ? start : z;
    Value slope =
        mul(b, exp(b, neg(b, mul(b, y, y))), 2 * std::numbers::inv_sqrtpi);
    // Both are exact where they are used: 1 - z from 0.5 on.
    Value low = sub(b, target, unary<nn::ErfOp>(b, y));
    Value high = sub(b, erfc(b, y), subFrom(b, 1, target));
    y = add(b, y, div(b, select(b, isBelow(b, target, 0.5), low, high), slope));
  }
  y = choose(b, isOne, HUGE_VAL, y);
  return select(b, isNegative, neg(b, y), y);
}

//===----------------------------------------------------------------------===//
// The gamma function's relatives
//===----------------------------------------------------------------------===//

/// How far an argument is moved up, so that the asymptotic series converge.
static constexpr int kShift = 8;

/// The argument for the right half: x, or 1 - x left of 0.5.
static std::pair<Value, Value> reflect(ImportBuilder &b, Value x) {
  Value isLeft = isBelow(b, x, 0.5);
  return {select(b, isLeft, subFrom(b, 1, x), x), isLeft};
}

/// The distance of x from the integer below it, times π.
static Value angleOf(ImportBuilder &b, Value x) {
  return mul(b, sub(b, x, unary<nn::FloorOp>(b, x)), std::numbers::pi);
}

static Value isPole(ImportBuilder &b, Value x) {
  Value isInteger =
      compare(b, ComparePredicate::EQ, x, unary<nn::FloorOp>(b, x));
  return logicalAnd(b, isInteger, compare(b, ComparePredicate::LE, x, 0));
}

/// Stirling's series for y + kShift, less the logarithm of the factors that
/// lie between.
static Value logGamma(ImportBuilder &b, Value x) {
  Value isInfinite = isEqual(b, abs(b, x), HUGE_VAL);
  Value hasPole = isPole(b, x);
  x = choose(b, logicalOr(b, isInfinite, hasPole), 0.75, x);
  auto [y, isLeft] = reflect(b, x);
  Value isSmall = isBelow(b, y, kShift);
  Value small = choose(b, isSmall, y, 1);
  Value factors = small;
  for (int k = 1; k < kShift; ++k)
    factors = mul(b, factors, add(b, small, k));
  Value z = select(b, isSmall, add(b, y, kShift), y);
  Value inverse = unary<nn::ReciprocalOp>(b, z),
        square = mul(b, inverse, inverse);
  Value series = constantLike(b, z, 1.0 / 1188);
  for (double term : {-1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12})
    series = add(b, mul(b, series, square), term);
  Value result = sub(b, mul(b, add(b, z, -0.5), log(b, z)), z);
  result = add(b, result, 0.5 * std::log(2 * std::numbers::pi));
  result = add(b, result, mul(b, series, inverse));
  result = sub(b, result, choose(b, isSmall, log(b, factors), 0));
  Value angle = angleOf(b, choose(b, isLeft, x, 0.25));
  Value reflected = sub(b, constantLike(b, x, std::log(std::numbers::pi)),
                        add(b, log(b, unary<nn::SinOp>(b, angle)), result));
  result = select(b, isLeft, reflected, result);
  return choose(b, logicalOr(b, isInfinite, hasPole), HUGE_VAL, result);
}

/// The derivative of logGamma, by the derivative of its series.
static Value digamma(ImportBuilder &b, Value x) {
  Value hasPole = isPole(b, x);
  Value inside = choose(b, hasPole, 0.75, x);
  auto [y, isLeft] = reflect(b, inside);
  Value isSmall = isBelow(b, y, kShift);
  Value small = choose(b, isSmall, y, 1);
  Value terms = unary<nn::ReciprocalOp>(b, small);
  for (int k = 1; k < kShift; ++k)
    terms = add(b, terms, unary<nn::ReciprocalOp>(b, add(b, small, k)));
  Value z = select(b, isSmall, add(b, y, kShift), y);
  Value inverse = unary<nn::ReciprocalOp>(b, z),
        square = mul(b, inverse, inverse);
  Value series = constantLike(b, z, 1.0 / 132);
  for (double term : {-1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12})
    series = add(b, mul(b, series, square), term);
  Value result = sub(b, log(b, z), mul(b, inverse, 0.5));
  result = sub(b, result, mul(b, series, square));
  result = sub(b, result, choose(b, isSmall, terms, 0));
  Value angle = angleOf(b, choose(b, isLeft, inside, 0.25));
  Value cotangent =
      div(b, unary<nn::CosOp>(b, angle), unary<nn::SinOp>(b, angle));
  result = select(b, isLeft,
                  sub(b, result, mul(b, cotangent, std::numbers::pi)), result);
  // PyTorch's values at the poles.
  Value atPole = select(b, isEqual(b, x, 0),
                        b.copySign(constantLike(b, x, HUGE_VAL), neg(b, x)),
                        constantLike(b, x, std::nan("")));
  return select(b, hasPole, atPole, result);
}

/// π times the n-th derivative of cot(πx), from the cotangent c: a polynomial,
/// because the derivative of c is -π(1 + c²).
static Value cotangentDerivative(ImportBuilder &b, Value c, int64_t n) {
  llvm::SmallVector<double> polynomial = {0, std::numbers::pi};
  for (int64_t i = 0; i < n; ++i) {
    llvm::SmallVector<double> next(polynomial.size() + 1);
    for (auto [k, coefficient] : llvm::enumerate(polynomial))
      if (k > 0) {
        double slope = -std::numbers::pi * static_cast<double>(k) * coefficient;
        next[k - 1] += slope;
        next[k + 1] += slope;
      }
    polynomial = next;
  }
  Value sum = constantLike(b, c, polynomial.back());
  for (double coefficient : llvm::reverse(ArrayRef(polynomial).drop_back()))
    sum = add(b, mul(b, sum, c), coefficient);
  return sum;
}

/// |ψₙ(y)| for y ≥ 0.5, where ψₙ is the n-th derivative of digamma:
///
///   Σₖ n! / (y + k)ⁿ⁺¹ for k < shift, and for z = y + shift
///   (n-1)! / zⁿ + n! / 2zⁿ⁺¹ + Σₖ B₂ₖ (2k+n-1)! / (2k)! / z²ᵏ⁺ⁿ
static Value sizeOfPolygamma(ImportBuilder &b, Value y, int64_t n) {
  auto power = [&](Value base, int64_t exponent) -> Value {
    return binary<nn::PowOp>(
        b, base, constantLike(b, base, static_cast<double>(exponent)));
  };
  auto shift = static_cast<double>(kShift + n);
  Value isSmall = isBelow(b, y, shift);
  Value small = choose(b, isSmall, y, 1);
  Value terms = power(small, -n - 1);
  for (int64_t k = 1; k < kShift + n; ++k)
    terms = add(b, terms, power(add(b, small, static_cast<double>(k)), -n - 1));
  Value z = select(b, isSmall, add(b, y, shift), y);
  Value inverse = unary<nn::ReciprocalOp>(b, z),
        square = mul(b, inverse, inverse);
  static const double kBernoulli[] = {1.0 / 6,   -1.0 / 30, 1.0 / 42,
                                      -1.0 / 30, 5.0 / 66,  -691.0 / 2730,
                                      7.0 / 6};
  auto order = static_cast<double>(n);
  Value series = constantLike(b, y, 0);
  for (int k = std::size(kBernoulli); k > 0; --k) {
    double factors =
        std::exp(std::lgamma(2 * k + order) - std::lgamma(2.0 * k + 1));
    series = mul(b, add(b, series, kBernoulli[k - 1] * factors), square);
  }
  double factorial = std::tgamma(order + 1);
  series =
      add(b, add(b, series, mul(b, inverse, factorial / 2)), factorial / order);
  Value result = mul(b, series, power(inverse, n));
  return add(b, result, choose(b, isSmall, mul(b, terms, factorial), 0));
}

/// Left of 0.5 by reflection: ψₙ(x) = (-1)ⁿ ψₙ(1 - x) - π dⁿ/dxⁿ cot(πx).
static LogicalResult polygamma(AtenCall &call, ImportBuilder &b) {
  constexpr int64_t kMaxOrder = 20;
  int64_t n = call.integer("n");
  if (n > kMaxOrder)
    return call.unsupported("of order " + llvm::Twine(n) +
                            ", expected at most " + llvm::Twine(kMaxOrder));
  return widely(call, b, [&](Value x) {
    if (n == 0)
      return digamma(b, x);
    Value hasPole = isPole(b, x);
    Value inside = choose(b, hasPole, 0.75, x);
    auto [y, isLeft] = reflect(b, inside);
    Value size = sizeOfPolygamma(b, y, n);
    double sign = n % 2 == 0 ? -1 : 1;
    Value angle = angleOf(b, choose(b, isLeft, inside, 0.25));
    Value cotangent =
        div(b, unary<nn::CosOp>(b, angle), unary<nn::SinOp>(b, angle));
    Value reflected =
        neg(b, add(b, cotangentDerivative(b, cotangent, n), size));
    Value result = select(b, isLeft, reflected, mul(b, size, sign));
    return choose(b, hasPole, sign * HUGE_VAL, result);
  });
}

void mlir::tp::addSpecialOps(AtenTable &table) {
  table["xlogy"] = {timesLogarithm<log, 0>, "self other"};
  table["special_xlog1py"] = {timesLogarithm<log1p, -1>, "self other"};
  table["logaddexp"] = {logAddExpOp<false>, "self other"};
  table["logaddexp2"] = {logAddExpOp<true>, "self other"};
  table["logit"] = {logit, "self eps"};
  table["special_entr"] = {widely<entropy>, "self"};
  table["erfc"] = {widely<erfc>, "self"};
  table["special_erfcx"] = {widely<erfcx>, "self"};
  table["special_log_ndtr"] = {widely<logNormal>, "self"};
  table["erfinv"] = {widely<erfinv>, "self"};
  table["lgamma"] = {widely<logGamma>, "self"};
  table["digamma"] = {widely<digamma>, "self"};
  table["polygamma"] = {polygamma, "n self"};
}
