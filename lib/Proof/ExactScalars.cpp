//===- ExactScalars.cpp - Arithmetic without rounding ---------------------===//

#include "ExactScalars.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace mlir::tp::exact;

uint64_t mlir::tp::exact::inverse(uint64_t a) {
  uint64_t result = 1;
  for (uint64_t exponent = kPrime - 2; exponent; exponent >>= 1) {
    if (exponent & 1)
      result = mul(result, a);
    a = mul(a, a);
  }
  return a == 0 ? 0 : result;
}

uint64_t mlir::tp::exact::fromFloat(const APFloat &value) {
  // The ends of the order.
  if (value.isInfinity())
    return value.isNegative() ? kPrime / 2 + 1 : kPrime / 2;
  if (value.isNaN())
    return hash({0x7ff8});
  // mantissa · 2^exponent
  bool lossless;
  APFloat wide = value;
  wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossless);
  int exponent;
  double fraction = std::frexp(wide.convertToDouble(), &exponent);
  auto mantissa = static_cast<int64_t>(std::ldexp(fraction, 53));
  exponent -= 53;
  uint64_t power = exponent < 0 ? inverse(2) : 2, scale = 1;
  for (int i = std::abs(exponent); i; --i)
    scale = mul(scale, power);
  return mul(fromSigned(mantissa), scale);
}

uint64_t mlir::tp::exact::hash(ArrayRef<uint64_t> values) {
  uint64_t state = 0x9e3779b97f4a7c15;
  for (uint64_t value : values) {
    state ^= value + 0x9e3779b97f4a7c15 + (state << 6) + (state >> 2);
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
    state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
    state ^= state >> 31;
  }
  return state % kPrime;
}

Scalar mlir::tp::exact::getConstant(Attribute value) {
  if (auto number = dyn_cast<FloatAttr>(value))
    return fromFloat(number.getValue());
  APInt integer = cast<IntegerAttr>(value).getValue();
  return integer.getBitWidth() == 1 ? integer.getZExtValue()
                                    : integer.getSExtValue();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

Scalar mlir::tp::exact::wrap(Scalar value, uint64_t width) {
  if (width >= 64)
    return value;
  if (width == 1)
    return value & 1;
  return static_cast<uint64_t>(static_cast<int64_t>(value << (64 - width)) >>
                               (64 - width));
}
static uint64_t getUnsigned(Scalar value, uint64_t width) {
  return width >= 64 ? value : value & ((uint64_t(1) << width) - 1);
}

/// Field elements are ordered, none is NaN: both kinds of a predicate agree.
static Scalar compareFloats(const Scalar *a, const ScalarCode &code) {
  int64_t x = toSigned(a[0]), y = toSigned(a[1]);
  switch (static_cast<arith::CmpFPredicate>(code.detail)) {
  case arith::CmpFPredicate::AlwaysFalse:
  case arith::CmpFPredicate::UNO:
    return 0;
  case arith::CmpFPredicate::AlwaysTrue:
  case arith::CmpFPredicate::ORD:
    return 1;
  case arith::CmpFPredicate::OEQ:
  case arith::CmpFPredicate::UEQ:
    return x == y;
  case arith::CmpFPredicate::ONE:
  case arith::CmpFPredicate::UNE:
    return x != y;
  case arith::CmpFPredicate::OGT:
  case arith::CmpFPredicate::UGT:
    return x > y;
  case arith::CmpFPredicate::OGE:
  case arith::CmpFPredicate::UGE:
    return x >= y;
  case arith::CmpFPredicate::OLT:
  case arith::CmpFPredicate::ULT:
    return x < y;
  case arith::CmpFPredicate::OLE:
  case arith::CmpFPredicate::ULE:
    return x <= y;
  }
  llvm_unreachable("unknown predicate");
}

static Scalar compareIntegers(const Scalar *a, const ScalarCode &code) {
  auto predicate = static_cast<arith::CmpIPredicate>(code.detail & 0xff);
  uint64_t width = code.detail >> 8;
  auto x = static_cast<int64_t>(a[0]), y = static_cast<int64_t>(a[1]);
  uint64_t u = getUnsigned(a[0], width), v = getUnsigned(a[1], width);
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
}

/// A function of which only that it is one is known.
static Scalar callUnknown(const Scalar *operands, const ScalarCode &code) {
  SmallVector<uint64_t, 4> values = {code.detail};
  values.append(operands, operands + code.numOperands);
  return hash(values);
}

static Scalar divideSigned(int64_t a, int64_t b) {
  return b == 0 || b == -1 ? -a * (b != 0) : a / b;
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
#define SIGNED(index) static_cast<int64_t>(a[index])
#define UNSIGNED(index) getUnsigned(a[index], code.detail)

std::optional<ScalarCode> mlir::tp::exact::compile(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumRegions())
    return std::nullopt;
  Type type = op->getResult(0).getType();
  if (!getElementTypeOrSelf(type).isIntOrIndexOrFloat())
    return std::nullopt;
  uint64_t width = getWidth(type);
  unsigned count = op->getNumOperands();
  using Code = ScalarCode;
  using Result = std::optional<ScalarCode>;
  return TypeSwitch<Operation *, Result>(op)
      .Case([&](arith::AddFOp) { return Code{FUNCTION(add(a[0], a[1]))}; })
      .Case([&](arith::SubFOp) { return Code{FUNCTION(sub(a[0], a[1]))}; })
      .Case([&](arith::MulFOp) { return Code{FUNCTION(mul(a[0], a[1]))}; })
      .Case([&](arith::DivFOp) {
        return Code{FUNCTION(mul(a[0], inverse(a[1])))};
      })
      .Case([&](arith::NegFOp) { return Code{FUNCTION(sub(0, a[0]))}; })
      .Case([&](math::FmaOp) {
        return Code{FUNCTION(add(mul(a[0], a[1]), a[2]))};
      })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>([&](auto) {
        return Code{FUNCTION(toSigned(a[0]) > toSigned(a[1]) ? a[0] : a[1])};
      })
      .Case<arith::MinimumFOp, arith::MinNumFOp>([&](auto) {
        return Code{FUNCTION(toSigned(a[0]) < toSigned(a[1]) ? a[0] : a[1])};
      })
      .Case<arith::ExtFOp, arith::TruncFOp>(
          [&](auto) { return Code{FUNCTION(a[0])}; })
      .Case([&](arith::SIToFPOp) { return Code{FUNCTION(fromSigned(a[0]))}; })
      .Case([&](arith::UIToFPOp op) {
        return Code{FUNCTION(fromSigned(UNSIGNED(0))),
                    getWidth(op.getIn().getType())};
      })
      .Case<arith::FPToSIOp, arith::FPToUIOp>([&](auto) {
        return Code{FUNCTION(wrap(toSigned(a[0]), code.detail)), width};
      })
      .Case([&](arith::CmpFOp op) {
        return Code{compareFloats, static_cast<uint64_t>(op.getPredicate())};
      })
      .Case([&](arith::CmpIOp op) {
        return Code{compareIntegers,
                    static_cast<uint64_t>(op.getPredicate()) |
                        uint64_t(getWidth(op.getLhs().getType())) << 8};
      })
      .Case([&](arith::SelectOp op) -> Result {
        if (isa<ShapedType>(type) &&
            !isa<ShapedType>(op.getCondition().getType()))
          return std::nullopt;
        return Code{FUNCTION(a[0] ? a[1] : a[2])};
      })
      .Case([&](arith::AddIOp) {
        return Code{FUNCTION(wrap(a[0] + a[1], code.detail)), width};
      })
      .Case([&](arith::SubIOp) {
        return Code{FUNCTION(wrap(a[0] - a[1], code.detail)), width};
      })
      .Case([&](arith::MulIOp) {
        return Code{FUNCTION(wrap(a[0] * a[1], code.detail)), width};
      })
      .Case([&](arith::DivSIOp) {
        return Code{
            FUNCTION(wrap(divideSigned(SIGNED(0), SIGNED(1)), code.detail)),
            width};
      })
      .Case([&](arith::RemSIOp) {
        return Code{
            FUNCTION(wrap(a[0] - divideSigned(SIGNED(0), SIGNED(1)) * a[1],
                          code.detail)),
            width};
      })
      .Case([&](arith::DivUIOp) {
        return Code{FUNCTION(UNSIGNED(1)
                                 ? wrap(UNSIGNED(0) / UNSIGNED(1), code.detail)
                                 : 0),
                    width};
      })
      .Case([&](arith::RemUIOp) {
        return Code{FUNCTION(UNSIGNED(1)
                                 ? wrap(UNSIGNED(0) % UNSIGNED(1), code.detail)
                                 : 0),
                    width};
      })
      .Case([&](arith::AndIOp) { return Code{FUNCTION(a[0] & a[1])}; })
      .Case([&](arith::OrIOp) { return Code{FUNCTION(a[0] | a[1])}; })
      .Case([&](arith::XOrIOp) { return Code{FUNCTION(a[0] ^ a[1])}; })
      .Case([&](arith::ShLIOp) {
        return Code{FUNCTION(a[1] < 64 ? wrap(a[0] << a[1], code.detail) : 0),
                    width};
      })
      .Case([&](arith::ShRUIOp) {
        return Code{
            FUNCTION(a[1] < 64 ? wrap(UNSIGNED(0) >> a[1], code.detail) : 0),
            width};
      })
      .Case([&](arith::ShRSIOp) {
        return Code{FUNCTION(
            static_cast<Scalar>(SIGNED(0) >> std::min<uint64_t>(a[1], 63)))};
      })
      .Case([&](arith::MaxSIOp) {
        return Code{FUNCTION(SIGNED(0) > SIGNED(1) ? a[0] : a[1])};
      })
      .Case([&](arith::MinSIOp) {
        return Code{FUNCTION(SIGNED(0) < SIGNED(1) ? a[0] : a[1])};
      })
      .Case([&](arith::MaxUIOp) {
        return Code{FUNCTION(UNSIGNED(0) > UNSIGNED(1) ? a[0] : a[1]), width};
      })
      .Case([&](arith::MinUIOp) {
        return Code{FUNCTION(UNSIGNED(0) < UNSIGNED(1) ? a[0] : a[1]), width};
      })
      .Case<arith::ExtSIOp, arith::IndexCastOp, arith::TruncIOp>([&](auto op) {
        // A boolean is 1, as a signed number -1.
        bool isBool =
            getWidth(op.getIn().getType()) == 1 && !isa<arith::IndexCastOp>(op);
        if (isBool)
          return Code{FUNCTION(wrap(-a[0], code.detail)), width};
        return Code{FUNCTION(wrap(a[0], code.detail)), width};
      })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>([&](auto op) {
        return Code{FUNCTION(UNSIGNED(0)), getWidth(op.getIn().getType())};
      })
      .Case([&](math::AbsIOp) {
        return Code{FUNCTION(wrap(SIGNED(0) < 0 ? -a[0] : a[0], code.detail)),
                    width};
      })
      .Default([&](Operation *op) -> Result {
        // Any other pure function of floats that has no say in which type.
        if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
            !count || !isa<FloatType>(getElementTypeOrSelf(type)) ||
            isa<arith::BitcastOp, arith::ScalingExtFOp, arith::ScalingTruncFOp>(
                op))
          return std::nullopt;
        return Code{callUnknown, llvm::xxHash64(op->getName().getStringRef()),
                    count};
      });
}
#undef FUNCTION
#undef SIGNED
#undef UNSIGNED
