//===- ElementwiseGradients.cpp - Gradients of pointwise ops --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The formulas are PyTorch's (derivatives.yaml), also where a function has no
// derivative: equal operands of a maximum get half of the gradient each, and
// relu has slope 0 at 0.
//
//===----------------------------------------------------------------------===//

#include "tp/Dialect/NN/Expressions.h"
#include <numbers>

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::expr;
using tp::GradientBuilder;

//===----------------------------------------------------------------------===//
// Unary
//===----------------------------------------------------------------------===//

void NegOp::buildGradient(GradientBuilder &b) {
  b.setGradient(0, neg(b, b.getGradient()));
}

void AbsOp::buildGradient(GradientBuilder &b) {
  Value x = getInput(), one = constantLike(b, x, 1);
  Value negative = select(b, compare(b, ComparePredicate::LT, x, 0.0),
                          constantLike(b, x, -1), constantLike(b, x, 0));
  Value sign =
      select(b, compare(b, ComparePredicate::GT, x, 0.0), one, negative);
  b.setGradient(0, mul(b, b.getGradient(), sign));
}

void ExpOp::buildGradient(GradientBuilder &b) {
  b.setGradient(0, mul(b, b.getGradient(), b.getResult()));
}

void LogOp::buildGradient(GradientBuilder &b) {
  b.setGradient(0, div(b, b.getGradient(), getInput()));
}

void Expm1Op::buildGradient(GradientBuilder &b) {
  b.setGradient(0, mul(b, b.getGradient(), add(b, b.getResult(), 1)));
}

void Log1pOp::buildGradient(GradientBuilder &b) {
  b.setGradient(0, div(b, b.getGradient(), add(b, getInput(), 1)));
}

void SqrtOp::buildGradient(GradientBuilder &b) {
  b.setGradient(0, div(b, b.getGradient(), mul(b, b.getResult(), 2)));
}

void RsqrtOp::buildGradient(GradientBuilder &b) {
  Value y = b.getResult();
  Value cube = mul(b, mul(b, y, y), y);
  b.setGradient(0, mul(b, mul(b, b.getGradient(), cube), -0.5));
}

void ReciprocalOp::buildGradient(GradientBuilder &b) {
  Value y = b.getResult();
  b.setGradient(0, neg(b, mul(b, b.getGradient(), mul(b, y, y))));
}

void SinOp::buildGradient(GradientBuilder &b) {
  b.setGradient(0, mul(b, b.getGradient(), unary<CosOp>(b, getInput())));
}

void CosOp::buildGradient(GradientBuilder &b) {
  b.setGradient(0,
                neg(b, mul(b, b.getGradient(), unary<SinOp>(b, getInput()))));
}

void AtanOp::buildGradient(GradientBuilder &b) {
  Value x = getInput();
  b.setGradient(0, div(b, b.getGradient(), add(b, mul(b, x, x), 1)));
}

void TanhOp::buildGradient(GradientBuilder &b) {
  Value y = b.getResult();
  b.setGradient(0, mul(b, b.getGradient(), subFrom(b, 1, mul(b, y, y))));
}

void ErfOp::buildGradient(GradientBuilder &b) {
  Value x = getInput();
  Value slope =
      mul(b, expr::exp(b, neg(b, mul(b, x, x))), 2 * std::numbers::inv_sqrtpi);
  b.setGradient(0, mul(b, b.getGradient(), slope));
}

void SigmoidOp::buildGradient(GradientBuilder &b) {
  Value y = b.getResult();
  b.setGradient(0, mul(b, b.getGradient(), mul(b, y, subFrom(b, 1, y))));
}

/// For small floats, a slope that takes several ops is computed, and multiplied
/// by the gradient, in f32, as in PyTorch.
static void setWide(GradientBuilder &b, Value input,
                    llvm::function_ref<Value(Value x)> getSlope) {
  Type wide = getWideElement(elementOf(input));
  Value slope = getSlope(castTo(b, input, wide));
  Value gradient = mul(b, castTo(b, b.getGradient(), wide), slope);
  b.setGradient(0, castTo(b, gradient, elementOf(input)));
}

void SiluOp::buildGradient(GradientBuilder &b) {
  setWide(b, getInput(), [&](Value x) {
    Value s = unary<SigmoidOp>(b, x);
    return mul(b, s, add(b, mul(b, x, subFrom(b, 1, s)), 1));
  });
}

void ReluOp::buildGradient(GradientBuilder &b) {
  // A NaN isn't cut off: it compares false.
  Value isCut = compare(b, ComparePredicate::LE, b.getResult(), 0.0);
  Value g = b.getGradient();
  b.setGradient(0, select(b, isCut, constantLike(b, g, 0), g));
}

/// Step functions are flat, so the gradient is 0. As in PyTorch, it is still
/// set, so that an optimizer updates a parameter that is used only through step
/// functions.
static void setFlat(GradientBuilder &b, Operation *op) {
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (b.wants(i))
      b.setGradient(i, filled(b, typeOf(operand), 0));
}

void FloorOp::buildGradient(GradientBuilder &b) { setFlat(b, *this); }
void RoundOp::buildGradient(GradientBuilder &b) { setFlat(b, *this); }
void CeilOp::buildGradient(GradientBuilder &b) { setFlat(b, *this); }

bool StopGradientOp::passesGradient() { return false; }

Value StopGradientOp::buildUndifferentiated(ImplicitLocOpBuilder &) {
  return getInput();
}
void StopGradientOp::buildGradient(GradientBuilder &) {}

/// Φ(x) + x φ(x)
static Value getGeluSlope(GradientBuilder &b, Value x) {
  Value phi = mul(
      b, add(b, unary<ErfOp>(b, mul(b, x, 1 / std::numbers::sqrt2)), 1), 0.5);
  Value density = mul(b, expr::exp(b, mul(b, mul(b, x, x), -0.5)),
                      std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return add(b, phi, mul(b, x, density));
}

/// The derivative of x/2 * (1 + tanh(u)), u = c * (x + k * x³).
static Value getGeluTanhSlope(GradientBuilder &b, Value x) {
  constexpr double k = 0.044715;
  double c = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  Value square = mul(b, x, x);
  Value inner = mul(b, mul(b, x, add(b, mul(b, square, k), 1)), c);
  Value t = unary<TanhOp>(b, inner);
  Value slope = mul(b, add(b, mul(b, square, 3 * k), 1), c);
  Value left = mul(b, add(b, t, 1), 0.5);
  Value right =
      mul(b, mul(b, mul(b, x, subFrom(b, 1, mul(b, t, t))), slope), 0.5);
  return add(b, left, right);
}

void GeluOp::buildGradient(GradientBuilder &b) {
  setWide(b, getInput(), [&](Value x) {
    return getTanh() ? getGeluTanhSlope(b, x) : getGeluSlope(b, x);
  });
}

void CastOp::buildGradient(GradientBuilder &b) {
  if (isa<FloatType>(elementOf(getInput())))
    b.setGradient(0, castTo(b, b.getGradient(), elementOf(getInput())));
}

//===----------------------------------------------------------------------===//
// Binary
//===----------------------------------------------------------------------===//

/// Sets the gradient of an operand that was broadcast.
static void setSummed(GradientBuilder &b, Operation *op, unsigned operand,
                      Value gradient) {
  b.setGradient(operand, sumTo(b, gradient, typeOf(op->getOperand(operand))));
}

void AddOp::buildGradient(GradientBuilder &b) {
  for (unsigned i : {0, 1})
    if (b.wants(i))
      setSummed(b, *this, i, b.getGradient());
}

void SubOp::buildGradient(GradientBuilder &b) {
  if (b.wants(0))
    setSummed(b, *this, 0, b.getGradient());
  if (b.wants(1)) // summed first, to negate fewer elements
    b.setGradient(1, neg(b, sumTo(b, b.getGradient(), typeOf(getRhs()))));
}

void MulOp::buildGradient(GradientBuilder &b) {
  if (b.wants(0))
    setSummed(b, *this, 0, mul(b, b.getGradient(), getRhs()));
  if (b.wants(1))
    setSummed(b, *this, 1, mul(b, b.getGradient(), getLhs()));
}

void DivOp::buildGradient(GradientBuilder &b) {
  if (b.wants(0))
    setSummed(b, *this, 0, div(b, b.getGradient(), getRhs()));
  // PyTorch's order, which gives 0 for 0 / y even if y is so small that 1 / y²
  // is infinite.
  if (b.wants(1))
    setSummed(b, *this, 1,
              neg(b, mul(b, b.getGradient(), div(b, b.getResult(), getRhs()))));
}

void FloorDivOp::buildGradient(GradientBuilder &b) { setFlat(b, *this); }

void RemainderOp::buildGradient(GradientBuilder &b) {
  if (b.wants(0))
    setSummed(b, *this, 0, b.getGradient());
  if (b.wants(1)) {
    Value floor = binary<FloorDivOp>(b, getLhs(), getRhs());
    setSummed(b, *this, 1, neg(b, mul(b, b.getGradient(), floor)));
  }
}

void PowOp::buildGradient(GradientBuilder &b) {
  Value x = getLhs(), y = getRhs(), g = b.getGradient();
  if (b.wants(0)) {
    // Where y is 0 the slope is 0, also at x = 0.
    Value slope = mul(b, y, binary<PowOp>(b, x, add(b, y, -1)));
    Value isConstant = compare(b, ComparePredicate::EQ, y, 0.0);
    slope = select(b, isConstant, constantLike(b, slope, 0), slope);
    setSummed(b, *this, 0, mul(b, g, slope));
  }
  if (b.wants(1)) {
    Value slope = mul(b, b.getResult(), unary<LogOp>(b, x));
    Value isZero =
        LogicalAndOp::create(b, compare(b, ComparePredicate::EQ, x, 0.0),
                             compare(b, ComparePredicate::GE, y, 0.0));
    slope = select(b, isZero, constantLike(b, slope, 0), slope);
    setSummed(b, *this, 1, mul(b, g, slope));
  }
}

/// The gradient of a maximum or minimum. An operand that isn't the result
/// compares by `loses` with the other one. If one is NaN, neither loses, and
/// both get the whole gradient.
static void buildExtremum(GradientBuilder &b, Operation *op,
                          ComparePredicate loses) {
  for (unsigned i : {0, 1}) {
    if (!b.wants(i))
      continue;
    Value x = op->getOperand(i), y = op->getOperand(1 - i);
    Value g = b.getGradient();
    Value kept =
        select(b, compare(b, ComparePredicate::EQ, x, y), mul(b, g, 0.5), g);
    setSummed(b, op, i,
              select(b, compare(b, loses, x, y), constantLike(b, g, 0), kept));
  }
}

void MaximumOp::buildGradient(GradientBuilder &b) {
  buildExtremum(b, *this, ComparePredicate::LT);
}

void MinimumOp::buildGradient(GradientBuilder &b) {
  buildExtremum(b, *this, ComparePredicate::GT);
}

void WhereOp::buildGradient(GradientBuilder &b) {
  Value g = b.getGradient(), zero = constantLike(b, g, 0);
  if (b.wants(1))
    setSummed(b, *this, 1, select(b, getCondition(), g, zero));
  if (b.wants(2))
    setSummed(b, *this, 2, select(b, getCondition(), zero, g));
}
