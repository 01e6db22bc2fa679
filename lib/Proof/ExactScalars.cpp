//===- ExactScalars.cpp - Arithmetic without rounding ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExactScalars.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/ScopedPrinter.h"
#include <cfloat>
#include <cmath>

using namespace mlir;
using namespace mlir::tp::exact;

static uint64_t addBits(uint64_t a, uint64_t b) {
  uint64_t sum = a + b;
  return sum >= kPrime ? sum - kPrime : sum;
}
static uint64_t subBits(uint64_t a, uint64_t b) {
  return a >= b ? a - b : a + kPrime - b;
}
static uint64_t mulBits(uint64_t a, uint64_t b) {
  __uint128_t product = static_cast<__uint128_t>(a) * b;
  return addBits(static_cast<uint64_t>(product & kPrime),
                 static_cast<uint64_t>(product >> 61));
}
static uint64_t invertBits(uint64_t a) {
  uint64_t result = 1;
  for (uint64_t exponent = kPrime - 2; exponent; exponent >>= 1) {
    if (exponent & 1)
      result = mulBits(result, a);
    a = mulBits(a, a);
  }
  return result;
}
static uint64_t signedBits(int64_t value) {
  int64_t rest = value % static_cast<int64_t>(kPrime);
  return rest < 0 ? rest + kPrime : rest;
}

/// An element of the field; its real value is clamped to finite numbers.
static Scalar makeFinite(uint64_t bits, double real) {
  if (LLVM_UNLIKELY(!(std::abs(real) <= DBL_MAX)))
    real = std::isnan(real) ? 0 : std::copysign(DBL_MAX, real);
  return {bits, real};
}

Scalar mlir::tp::exact::fromDouble(double value) {
  if (std::isnan(value))
    return {kNaN, value};
  if (std::isinf(value))
    return {value < 0 ? kMinusInfinity : kInfinity, value};
  // mantissa · 2^exponent, and 2^61 is 1
  int exponent;
  double fraction = std::frexp(value, &exponent);
  auto mantissa = static_cast<int64_t>(std::ldexp(fraction, 53));
  int shift = (exponent - 53) % 61;
  return {mulBits(signedBits(mantissa),
                  uint64_t(1) << (shift < 0 ? shift + 61 : shift)),
          value};
}

Scalar mlir::tp::exact::fromInteger(int64_t value) {
  return {signedBits(value), static_cast<double>(value)};
}

Scalar mlir::tp::exact::fromHash(uint64_t bits) {
  return {bits, static_cast<double>(toSigned(bits)) / (kPrime / 4)};
}

Scalar mlir::tp::exact::add(Scalar a, Scalar b) {
  if (LLVM_LIKELY(isFinite(a) && isFinite(b)))
    return makeFinite(addBits(a.bits, b.bits), a.real + b.real);
  return fromDouble(a.real + b.real);
}
Scalar mlir::tp::exact::negate(Scalar a) {
  if (LLVM_LIKELY(isFinite(a)))
    return {subBits(0, a.bits), -a.real};
  return fromDouble(-a.real);
}
Scalar mlir::tp::exact::sub(Scalar a, Scalar b) { return add(a, negate(b)); }
double mlir::tp::exact::getSign(Scalar a) {
  if (!isFinite(a))
    return a.real;
  return a.bits == 0 ? getValue(a) : std::copysign(1.0, a.real);
}
Scalar mlir::tp::exact::mul(Scalar a, Scalar b) {
  if (LLVM_LIKELY(isFinite(a) && isFinite(b)))
    return makeFinite(mulBits(a.bits, b.bits), a.real * b.real);
  return fromDouble(getSign(a) * getSign(b));
}
Scalar mlir::tp::exact::div(Scalar a, Scalar b) {
  if (LLVM_LIKELY(isFinite(a) && isFinite(b) && b.bits))
    return makeFinite(mulBits(a.bits, invertBits(b.bits)), a.real / b.real);
  return fromDouble(getSign(a) / getSign(b));
}

Scalar mlir::tp::exact::getConstant(Attribute value) {
  if (auto number = dyn_cast<FloatAttr>(value)) {
    bool lossless;
    APFloat wide = number.getValue();
    wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                 &lossless);
    return fromDouble(wide.convertToDouble());
  }
  APInt integer = cast<IntegerAttr>(value).getValue();
  return {static_cast<uint64_t>(integer.getBitWidth() == 1
                                    ? integer.getZExtValue()
                                    : integer.getSExtValue())};
}

uint64_t mlir::tp::exact::wrap(uint64_t value, uint64_t width) {
  if (width >= 64)
    return value;
  if (width == 1)
    return value & 1;
  return static_cast<uint64_t>(static_cast<int64_t>(value << (64 - width)) >>
                               (64 - width));
}

std::string mlir::tp::exact::print(Scalar number, Type type) {
  if (type.isInteger(1))
    return number.bits ? "true" : "false";
  if (!isa<FloatType>(type))
    return std::to_string(number.getInt());
  return llvm::to_string(llvm::format("%.9g", getValue(number)));
}
