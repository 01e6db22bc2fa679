//===- ScalarCode.cpp - Code of ops on scalars ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ScalarCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/xxhash.h"
#include <cmath>

using namespace mlir;
using namespace mlir::tp::exact;

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

using Order = Interpretation::Order;
using Mode = Interpretation::Mode;
using Code = ScalarCode;
using Result = std::optional<ScalarCode>;

/// Each predicate is one of these relations, perhaps with swapped operands or
/// negated. Under Free, each relation may have any meaning.
enum Relation : uint64_t { Equals, Differs, Less, LessOrUnordered, IsNaN };

static Scalar compareFloats(const Scalar *a, const ScalarCode &code) {
  Order order = code.meaning->getOrder(a[0], a[1]);
  bool less = order == Order::Less, greater = order == Order::Greater,
       equal = order == Order::Equal, unordered = order == Order::Unordered;
  auto decide = [&](Relation relation, bool swapped, bool negated, bool truth) {
    Scalar x = a[swapped], y = a[!swapped];
    if (relation != Less && relation != LessOrUnordered && y.bits < x.bits)
      std::swap(x, y);
    return Scalar{
        code.meaning->decide(code.site, relation, x, y, order, truth, negated)};
  };
  switch (static_cast<arith::CmpFPredicate>(code.detail)) {
  case arith::CmpFPredicate::AlwaysFalse:
    return {0};
  case arith::CmpFPredicate::AlwaysTrue:
    return {1};
  case arith::CmpFPredicate::UNO:
    return decide(IsNaN, false, false, unordered);
  case arith::CmpFPredicate::ORD:
    return decide(IsNaN, false, true, !unordered);
  case arith::CmpFPredicate::OEQ:
    return decide(Equals, false, false, equal);
  case arith::CmpFPredicate::UNE:
    return decide(Equals, false, true, !equal);
  case arith::CmpFPredicate::ONE:
    return decide(Differs, false, false, less || greater);
  case arith::CmpFPredicate::UEQ:
    return decide(Differs, false, true, equal || unordered);
  case arith::CmpFPredicate::OLT:
    return decide(Less, false, false, less);
  case arith::CmpFPredicate::OGT:
    return decide(Less, true, false, greater);
  case arith::CmpFPredicate::ULT:
    return decide(LessOrUnordered, false, false, less || unordered);
  case arith::CmpFPredicate::UGT:
    return decide(LessOrUnordered, true, false, greater || unordered);
  case arith::CmpFPredicate::OGE:
    return decide(LessOrUnordered, false, true, greater || equal);
  case arith::CmpFPredicate::OLE:
    return decide(LessOrUnordered, true, true, less || equal);
  case arith::CmpFPredicate::UGE:
    return decide(Less, false, true, !less);
  case arith::CmpFPredicate::ULE:
    return decide(Less, true, true, !greater);
  }
  llvm_unreachable("unknown predicate");
}

enum Extremum : uint64_t { Larger = 1, IgnoresNaN = 2 };
static Scalar takeExtremum(const Scalar *a, const ScalarCode &code) {
  for (unsigned i : {0, 1})
    if (a[i].bits == kNaN)
      return a[code.detail & IgnoresNaN ? !i : i];
  bool isLarger = code.meaning->isFirstLarger(code.site, a[0], a[1]);
  return a[isLarger == bool(code.detail & Larger) ? 0 : 1];
}

static uint64_t getUnsigned(Scalar value, uint64_t width) {
  return width >= 64 ? value.bits : value.bits & ((uint64_t(1) << width) - 1);
}

static Scalar compareIntegers(const Scalar *a, const ScalarCode &code) {
  auto predicate = static_cast<arith::CmpIPredicate>(code.detail & 0xff);
  uint64_t width = code.detail >> 8;
  int64_t x = a[0].getInt(), y = a[1].getInt();
  uint64_t u = getUnsigned(a[0], width), v = getUnsigned(a[1], width);
  auto compare = [&]() {
    switch (predicate) {
    case arith::CmpIPredicate::eq:
      return u == v;
    case arith::CmpIPredicate::ne:
      return u != v;
    case arith::CmpIPredicate::slt:
      return x < y;
    case arith::CmpIPredicate::sle:
      return x <= y;
    case arith::CmpIPredicate::sgt:
      return x > y;
    case arith::CmpIPredicate::sge:
      return x >= y;
    case arith::CmpIPredicate::ult:
      return u < v;
    case arith::CmpIPredicate::ule:
      return u <= v;
    case arith::CmpIPredicate::ugt:
      return u > v;
    case arith::CmpIPredicate::uge:
      return u >= v;
    }
    llvm_unreachable("unknown predicate");
  };
  bool truth = compare();
  if (code.site)
    code.meaning->note(code.site, code.detail, x, y, truth);
  return {truth};
}

/// Detail: the width, plus 1 << 8 for the maximum, plus 1 << 9 for unsigned
/// numbers.
static Scalar takeIntegerExtremum(const Scalar *a, const ScalarCode &code) {
  uint64_t width = code.detail & 0xff;
  bool isLess = code.detail >> 9
                    ? getUnsigned(a[0], width) < getUnsigned(a[1], width)
                    : a[0].getInt() < a[1].getInt();
  // The smallest or largest number is the initial value of a reduction, not one
  // that needs to be compared.
  auto isEnd = [&](Scalar end) {
    uint64_t bits = getUnsigned(end, width), top = uint64_t(1) << (width - 1);
    return (code.detail >> 9 && bits == 0) || bits == top || bits == top - 1 ||
           bits == top + (top - 1);
  };
  if (code.site && !isEnd(a[0]) && !isEnd(a[1]))
    code.meaning->note(code.site, code.detail, a[0].getInt(), a[1].getInt(),
                       isLess);
  return a[isLess == bool(code.detail >> 8 & 1)];
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// A function with at most a known real value: the element of the field is a
/// hash of the function and its operands.
static Scalar callFunction(const Scalar *operands, const ScalarCode &code) {
  SmallVector<uint64_t, 4> bits = {code.detail};
  SmallVector<double, 4> values;
  bool areFinite = true;
  for (const Scalar &operand : ArrayRef(operands, code.numOperands)) {
    bits.push_back(operand.bits);
    values.push_back(getValue(operand));
    areFinite &= isFinite(operand);
  }
  Scalar unknown = fromHash(hash(bits));
  if (!code.value)
    return areFinite ? unknown : fromDouble(NAN);
  if (code.meaning->getMode() == Mode::Free && areFinite)
    return code.meaning->mayBeNaN(unknown.bits) ? fromDouble(NAN) : unknown;
  double value = code.value(values.data());
  if (!std::isfinite(value) || value == 0)
    return fromDouble(value);
  return {unknown.bits, value};
}

/// A function that rounds to integers. Under Free, it keeps small integers and
/// is arbitrary on other numbers.
static Scalar round(const Scalar *a, const ScalarCode &code) {
  double value = code.meaning->getRounded(a[0]);
  if (code.meaning->getMode() == Mode::Free && isFinite(a[0])) {
    constexpr int64_t kSmall = int64_t(1) << 32;
    return std::abs(toSigned(a[0].bits)) < kSmall
               ? a[0]
               : fromHash(hash({code.detail, a[0].bits}));
  }
  return fromDouble(code.value(&value));
}

/// A cast to a narrower float, which is the identity up to rounding. Under
/// Free, it is another linear function: it commutes with sums, as the rules
/// assume, and with nothing else. Detail: the types.
static Scalar shorten(const Scalar *a, const ScalarCode &code) {
  constexpr int64_t kExact = 1 << 8;
  bool isExact = std::abs(toSigned(a[0].bits)) <= kExact;
  if (code.meaning->getMode() != Mode::Free || !isFinite(a[0]) || isExact)
    return a[0];
  return mul(a[0], fromHash(hash({code.detail})));
}

/// A cast to an integer. Detail: the width, plus 1 << 8 for an unsigned one. A
/// value outside the range gives the nearest end; NaN gives 0.
static Scalar truncate(const Scalar *a, const ScalarCode &code) {
  uint64_t width = code.detail & 0xff;
  bool isUnsigned = code.detail >> 8;
  double value = code.meaning->getRounded(a[0]);
  if (code.meaning->getMode() == Mode::Free && isFinite(a[0])) {
    constexpr int64_t kSmall = int64_t(1) << 32;
    int64_t whole = toSigned(a[0].bits);
    if (std::abs(whole) >= kSmall)
      whole = hash({code.detail, a[0].bits}) % 8;
    return {wrap(whole, width)};
  }
  if (std::isnan(value))
    return {0};
  double bound = std::ldexp(1.0, width - !isUnsigned);
  double low = isUnsigned ? 0 : -bound;
  if (value >= bound)
    return {isUnsigned || width == 1 ? wrap(~uint64_t(0), width)
                                     : (uint64_t(1) << (width - 1)) - 1};
  if (value <= low)
    return {isUnsigned ? 0 : wrap(uint64_t(1) << (width - 1), width)};
  return {wrap(isUnsigned ? static_cast<uint64_t>(value)
                          : static_cast<uint64_t>(static_cast<int64_t>(value)),
               width)};
}

/// Detail: the name of the op.
static Scalar takeAbs(const Scalar *a, const ScalarCode &code) {
  if (!isFinite(a[0]))
    return fromDouble(std::abs(a[0].real));
  if (code.meaning->getMode() == Mode::Free)
    return fromHash(hash({code.detail, a[0].bits}));
  Order order = code.meaning->getOrder(a[0], {});
  return order == Order::Less ? negate(a[0]) : a[0];
}
static Scalar copySign(const Scalar *a, const ScalarCode &code) {
  if (code.meaning->getMode() == Mode::Free && isFinite(a[0]) && isFinite(a[1]))
    return fromHash(hash({code.detail, a[0].bits, a[1].bits}));
  return std::signbit(getValue(a[0])) == std::signbit(getValue(a[1]))
             ? a[0]
             : negate(a[0]);
}
static Scalar takeRemainder(const Scalar *a, const ScalarCode &code) {
  if (!isFinite(a[0]) || !isFinite(a[1]) || a[1].bits == 0)
    return fromDouble(std::fmod(getValue(a[0]), getSign(a[1])));
  if (code.meaning->getMode() == Mode::Free)
    return fromHash(hash({code.detail, a[0].bits, a[1].bits}));
  Scalar quotient = div(a[0], a[1]);
  double whole = std::trunc(code.meaning->getRounded(quotient));
  return sub(a[0], mul(fromDouble(whole), a[1]));
}

static Scalar raise(const Scalar *a, const ScalarCode &) {
  Scalar result = fromInteger(1), factor = a[0];
  int64_t exponent = a[1].getInt();
  for (uint64_t rest = std::abs(exponent); rest; rest >>= 1) {
    if (rest & 1)
      result = mul(result, factor);
    factor = mul(factor, factor);
  }
  return exponent < 0 ? div(fromInteger(1), result) : result;
}

/// The functions of math, by name.
static double (*getFunction(StringRef name))(const double *) {
#define UNARY(mnemonic, call)                                                  \
  .Case("math." #mnemonic, [](const double *x) -> double { return call; })
  using Function = double (*)(const double *);
  return llvm::StringSwitch<Function>(name)
      // clang-format off
      UNARY(exp, std::exp(x[0])) UNARY(exp2, std::exp2(x[0]))
      UNARY(expm1, std::expm1(x[0])) UNARY(log, std::log(x[0]))
      UNARY(log2, std::log2(x[0])) UNARY(log10, std::log10(x[0]))
      UNARY(log1p, std::log1p(x[0])) UNARY(sqrt, std::sqrt(x[0]))
      UNARY(rsqrt, 1 / std::sqrt(x[0])) UNARY(cbrt, std::cbrt(x[0]))
      UNARY(sin, std::sin(x[0])) UNARY(cos, std::cos(x[0]))
      UNARY(tan, std::tan(x[0])) UNARY(asin, std::asin(x[0]))
      UNARY(acos, std::acos(x[0])) UNARY(atan, std::atan(x[0]))
      UNARY(sinh, std::sinh(x[0])) UNARY(cosh, std::cosh(x[0]))
      UNARY(tanh, std::tanh(x[0])) UNARY(asinh, std::asinh(x[0]))
      UNARY(acosh, std::acosh(x[0])) UNARY(atanh, std::atanh(x[0]))
      UNARY(erf, std::erf(x[0])) UNARY(erfc, std::erfc(x[0]))
      UNARY(powf, std::pow(x[0], x[1])) UNARY(atan2, std::atan2(x[0], x[1]))
      UNARY(floor, std::floor(x[0])) UNARY(ceil, std::ceil(x[0]))
      UNARY(trunc, std::trunc(x[0])) UNARY(round, std::round(x[0]))
      UNARY(roundeven, std::nearbyint(x[0]))
                                                      // clang-format on
                                                      .Default(nullptr);
#undef UNARY
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static uint64_t divideSigned(int64_t a, int64_t b) {
  return b == 0    ? 0
         : b == -1 ? -static_cast<uint64_t>(a)
                   : static_cast<uint64_t>(a / b);
}

static unsigned getWidth(Type type) {
  type = getElementTypeOrSelf(type);
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

#define FUNCTION(expression)                                                   \
  [](const Scalar *a, const ScalarCode &code) -> Scalar {                      \
    (void)code;                                                                \
    return expression;                                                         \
  }
#define INTEGER(expression)                                                    \
  [](const Scalar *a, const ScalarCode &code) -> Scalar {                      \
    (void)code;                                                                \
    return {static_cast<uint64_t>(expression)};                                \
  }
#define WRAPPED(expression) INTEGER(wrap(expression, code.detail))
#define SIGNED(index) a[index].getInt()
#define UNSIGNED(index) getUnsigned(a[index], code.detail)

/// Whether a few integers are enough to test what the op does with integers: if
/// it is a polynomial, or if its site records how they compare.
static bool isShownByFewIntegers(Operation *op) {
  return isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::TruncIOp,
             arith::SelectOp, arith::CmpIOp, arith::MaxSIOp, arith::MinSIOp,
             arith::MaxUIOp, arith::MinUIOp, UnrealizedConversionCastOp>(op) ||
         llvm::none_of(op->getOperandTypes(), [](Type type) {
           type = getElementTypeOrSelf(type);
           return type.isIntOrIndex() && !type.isInteger(1);
         });
}

bool mlir::tp::exact::assumesFinite(Operation *op) {
  auto floats = dyn_cast<arith::ArithFastMathInterface>(op);
  arith::FastMathFlagsAttr flags =
      floats ? floats.getFastMathFlagsAttr() : nullptr;
  return flags &&
         bitEnumContainsAny(flags.getValue(), arith::FastMathFlags::nnan |
                                                  arith::FastMathFlags::ninf);
}

/// Whether the result is undefined for some operands, which execution can't
/// show.
static bool isUndefinedForSome(Operation *op) {
  if (auto integers = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op))
    if (auto flags = integers.getOverflowAttr();
        flags && flags.getValue() != arith::IntegerOverflowFlags::none)
      return true;
  return assumesFinite(op) || op->hasAttr("isExact");
}

/// The code of an op that may compare; its site records the decisions.
static ScalarCode makeComparison(Operation *op, Interpretation &meaning,
                                 ScalarCode::Function function, uint64_t detail,
                                 Site::Kind kind) {
  ScalarCode code{function, detail};
  code.meaning = &meaning;
  code.site = meaning.getSite(op, kind);
  meaning.usesOrder |= kind == Site::Kind::Floats;
  return code;
}

static Result compileFloatOp(Operation *op, Interpretation &meaning) {
  StringRef name = op->getName().getStringRef();
  uint64_t named = llvm::xxHash64(name);
  uint64_t width = getWidth(op->getResult(0).getType());
  auto compares = [&](ScalarCode::Function function, uint64_t detail) {
    return makeComparison(op, meaning, function, detail, Site::Kind::Floats);
  };
  auto rounds = [&](ScalarCode::Function function, uint64_t detail) {
    Code code{function, detail};
    code.meaning = &meaning;
    meaning.usesOrder = meaning.usesRounding = true;
    return code;
  };
  return TypeSwitch<Operation *, Result>(op)
      .Case([&](arith::AddFOp) { return Code{FUNCTION(add(a[0], a[1]))}; })
      .Case([&](arith::SubFOp) { return Code{FUNCTION(sub(a[0], a[1]))}; })
      .Case([&](arith::MulFOp) { return Code{FUNCTION(mul(a[0], a[1]))}; })
      .Case([&](arith::DivFOp) { return Code{FUNCTION(div(a[0], a[1]))}; })
      .Case([&](arith::NegFOp) { return Code{FUNCTION(negate(a[0]))}; })
      .Case([&](math::FmaOp) {
        return Code{FUNCTION(add(mul(a[0], a[1]), a[2]))};
      })
      .Case([&](arith::MaximumFOp) { return compares(takeExtremum, Larger); })
      .Case([&](arith::MaxNumFOp) {
        return compares(takeExtremum, Larger | IgnoresNaN);
      })
      .Case([&](arith::MinimumFOp) { return compares(takeExtremum, 0); })
      .Case(
          [&](arith::MinNumFOp) { return compares(takeExtremum, IgnoresNaN); })
      .Case([&](arith::FPToSIOp) { return rounds(truncate, width); })
      .Case([&](arith::FPToUIOp) { return rounds(truncate, width | 1 << 8); })
      .Case([&](arith::RemFOp) { return rounds(takeRemainder, named); })
      .Case<math::FloorOp, math::CeilOp, math::TruncOp, math::RoundOp,
            math::RoundEvenOp>([&](auto) {
        Code code = rounds(round, named);
        code.value = getFunction(name);
        return code;
      })
      .Case([&](math::AbsFOp) { return rounds(takeAbs, named); })
      .Case([&](math::FPowIOp) { return Code{raise}; })
      .Case([&](math::CopySignOp) { return rounds(copySign, named); })
      .Case([&](arith::CmpFOp op) {
        return compares(compareFloats,
                        static_cast<uint64_t>(op.getPredicate()));
      })
      .Default(std::nullopt);
}

/// A cast, except from floats to integers.
static Result compileCast(Operation *op, Interpretation &meaning) {
  Type type = getElementTypeOrSelf(op->getResult(0));
  uint64_t width = getWidth(type);
  return TypeSwitch<Operation *, Result>(op)
      .Case([&](arith::ExtFOp) { return Code{FUNCTION(a[0])}; })
      .Case([&](arith::TruncFOp op) {
        std::string types;
        llvm::raw_string_ostream(types)
            << getElementTypeOrSelf(op.getIn()) << " to " << type;
        Code code{shorten, llvm::xxHash64(types)};
        code.meaning = &meaning;
        meaning.usesFunctions = true;
        return code;
      })
      .Case([&](arith::SIToFPOp op) {
        // A true boolean is 1; as a signed number, it is -1.
        if (getWidth(op.getIn().getType()) == 1)
          return Code{FUNCTION(fromInteger(-SIGNED(0)))};
        return Code{FUNCTION(fromInteger(SIGNED(0)))};
      })
      .Case([&](arith::UIToFPOp op) {
        return Code{FUNCTION(fromInteger(UNSIGNED(0))),
                    getWidth(op.getIn().getType())};
      })
      .Case<arith::ExtSIOp, arith::IndexCastOp, arith::TruncIOp>([&](auto op) {
        // A true boolean is 1; as a signed number, it is -1.
        bool isBool =
            getWidth(op.getIn().getType()) == 1 && !isa<arith::IndexCastOp>(op);
        return isBool ? Code{WRAPPED(-a[0].bits), width}
                      : Code{WRAPPED(a[0].bits), width};
      })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>([&](auto op) {
        return Code{INTEGER(UNSIGNED(0)), getWidth(op.getIn().getType())};
      })
      // A cast between integers that differ in signedness keeps the bits.
      .Case([&](UnrealizedConversionCastOp op) -> Result {
        if (op.getNumOperands() != 1 || !type.isInteger(width) ||
            !getElementTypeOrSelf(op.getOperand(0)).isInteger(width))
          return std::nullopt;
        return Code{FUNCTION(a[0])};
      })
      .Default(std::nullopt);
}

static Result compileIntegerOp(Operation *op, Interpretation &meaning) {
  uint64_t width = getWidth(op->getResult(0).getType());
  return TypeSwitch<Operation *, Result>(op)
      .Case([&](arith::CmpIOp op) {
        unsigned width = getWidth(op.getLhs().getType());
        uint64_t detail =
            static_cast<uint64_t>(op.getPredicate()) | uint64_t(width) << 8;
        if (width == 1)
          return Code{compareIntegers, detail};
        return makeComparison(op, meaning, compareIntegers, detail,
                              Site::Kind::Integers);
      })
      .Case<arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp>(
          [&](auto) {
            bool isLarger = isa<arith::MaxSIOp, arith::MaxUIOp>(op);
            bool isUnsigned = isa<arith::MaxUIOp, arith::MinUIOp>(op);
            return makeComparison(op, meaning, takeIntegerExtremum,
                                  width | isLarger << 8 | isUnsigned << 9,
                                  Site::Kind::IntegerExtremum);
          })
      .Case([&](arith::AddIOp) {
        return Code{WRAPPED(a[0].bits + a[1].bits), width};
      })
      .Case([&](arith::SubIOp) {
        return Code{WRAPPED(a[0].bits - a[1].bits), width};
      })
      .Case([&](arith::MulIOp) {
        return Code{WRAPPED(a[0].bits * a[1].bits), width};
      })
      .Case([&](arith::DivSIOp) {
        return Code{WRAPPED(divideSigned(SIGNED(0), SIGNED(1))), width};
      })
      .Case([&](arith::RemSIOp) {
        return Code{
            WRAPPED(a[0].bits - divideSigned(SIGNED(0), SIGNED(1)) * a[1].bits),
            width};
      })
      .Case([&](arith::DivUIOp) {
        return Code{WRAPPED(UNSIGNED(1) ? UNSIGNED(0) / UNSIGNED(1) : 0),
                    width};
      })
      .Case([&](arith::RemUIOp) {
        return Code{WRAPPED(UNSIGNED(1) ? UNSIGNED(0) % UNSIGNED(1) : 0),
                    width};
      })
      .Case([&](arith::AndIOp) { return Code{INTEGER(a[0].bits & a[1].bits)}; })
      .Case([&](arith::OrIOp) { return Code{INTEGER(a[0].bits | a[1].bits)}; })
      .Case([&](arith::XOrIOp) { return Code{INTEGER(a[0].bits ^ a[1].bits)}; })
      .Case([&](arith::ShLIOp) {
        return Code{WRAPPED(a[1].bits < 64 ? a[0].bits << a[1].bits : 0),
                    width};
      })
      .Case([&](arith::ShRUIOp) {
        return Code{WRAPPED(a[1].bits < 64 ? UNSIGNED(0) >> a[1].bits : 0),
                    width};
      })
      .Case([&](arith::ShRSIOp) {
        return Code{INTEGER(SIGNED(0) >> std::min<uint64_t>(a[1].bits, 63))};
      })
      .Case([&](math::AbsIOp) {
        return Code{WRAPPED(SIGNED(0) < 0 ? -a[0].bits : a[0].bits), width};
      })
      .Default(std::nullopt);
}

/// Any other pure function of floats that doesn't depend on their type.
static Result compileFunction(Operation *op, Interpretation &meaning) {
  unsigned count = op->getNumOperands();
  StringRef name = op->getName().getStringRef();
  if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
      !count || !isa<FloatType>(getElementTypeOrSelf(op->getResult(0))) ||
      isa<arith::BitcastOp, arith::ScalingExtFOp, arith::ScalingTruncFOp>(op))
    return std::nullopt;
  Code code{callFunction, llvm::xxHash64(name), count};
  code.value = getFunction(name);
  code.meaning = &meaning;
  meaning.usesFunctions = true;
  return code;
}

Result mlir::tp::exact::compile(Operation *op, Interpretation &meaning) {
  if (op->getNumResults() != 1 || op->getNumRegions() || isUndefinedForSome(op))
    return std::nullopt;
  meaning.usesIntegers |= !isShownByFewIntegers(op);
  Type type = op->getResult(0).getType();
  if (!getElementTypeOrSelf(type).isIntOrIndexOrFloat())
    return std::nullopt;
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return isa<ShapedType>(type) ==
                   isa<ShapedType>(select.getCondition().getType())
               ? Result(Code{FUNCTION(a[0].bits ? a[1] : a[2])})
               : std::nullopt;
  for (auto *compileOp :
       {compileFloatOp, compileCast, compileIntegerOp, compileFunction})
    if (Result code = compileOp(op, meaning))
      return code;
  return std::nullopt;
}
#undef FUNCTION
#undef INTEGER
#undef WRAPPED
#undef SIGNED
#undef UNSIGNED
