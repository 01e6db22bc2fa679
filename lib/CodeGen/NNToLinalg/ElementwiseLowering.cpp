//===- ElementwiseLowering.cpp - Pointwise nn ops -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One overload of `emit` per op builds its scalar body; one pattern template
// puts it into a linalg.generic.
//
//===----------------------------------------------------------------------===//

#include "LinalgBuilders.h"
#include "LoweringPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "tp/CodeGen/NNToLinalg/Activations.h"
#include "tp/Dialect/NN/NN.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::nnlinalg;

using BodyBuilder = ImplicitLocOpBuilder;
using Args = ArrayRef<Value>;

static bool isFloat(Value value) { return isa<FloatType>(value.getType()); }

static Value constantLike(BodyBuilder &b, Value value, double constant) {
  return getScalar(b, value.getType(), constant);
}

//===----------------------------------------------------------------------===//
// Arithmetic that works on floats and integers
//===----------------------------------------------------------------------===//

static Value add(BodyBuilder &b, Value x, Value y) {
  if (isFloat(x))
    return b.createOrFold<arith::AddFOp>(x, y);
  return b.createOrFold<arith::AddIOp>(x, y);
}

static Value sub(BodyBuilder &b, Value x, Value y) {
  if (isFloat(x))
    return b.createOrFold<arith::SubFOp>(x, y);
  return b.createOrFold<arith::SubIOp>(x, y);
}

static Value mul(BodyBuilder &b, Value x, Value y) {
  if (isFloat(x))
    return b.createOrFold<arith::MulFOp>(x, y);
  return b.createOrFold<arith::MulIOp>(x, y);
}

static Value select(BodyBuilder &b, Value condition, Value x, Value y) {
  return b.createOrFold<arith::SelectOp>(condition, x, y);
}

static Value compare(BodyBuilder &b, nn::ComparePredicate predicate, Value x,
                     Value y) {
  using nn::ComparePredicate;
  if (isFloat(x)) {
    auto kind = [&] {
      switch (predicate) {
      case ComparePredicate::EQ:
        return arith::CmpFPredicate::OEQ;
      case ComparePredicate::NE:
        return arith::CmpFPredicate::UNE;
      case ComparePredicate::LT:
        return arith::CmpFPredicate::OLT;
      case ComparePredicate::LE:
        return arith::CmpFPredicate::OLE;
      case ComparePredicate::GT:
        return arith::CmpFPredicate::OGT;
      case ComparePredicate::GE:
        return arith::CmpFPredicate::OGE;
      }
      llvm_unreachable("all predicates are handled");
    }();
    return b.createOrFold<arith::CmpFOp>(kind, x, y);
  }
  bool isBool = x.getType().isInteger(1);
  auto kind = [&] {
    switch (predicate) {
    case ComparePredicate::EQ:
      return arith::CmpIPredicate::eq;
    case ComparePredicate::NE:
      return arith::CmpIPredicate::ne;
    case ComparePredicate::LT:
      return isBool ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
    case ComparePredicate::LE:
      return isBool ? arith::CmpIPredicate::ule : arith::CmpIPredicate::sle;
    case ComparePredicate::GT:
      return isBool ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt;
    case ComparePredicate::GE:
      return isBool ? arith::CmpIPredicate::uge : arith::CmpIPredicate::sge;
    }
    llvm_unreachable("all predicates are handled");
  }();
  return b.createOrFold<arith::CmpIOp>(kind, x, y);
}

/// 1 / (1 + exp(-x)), which is exact to rounding on both sides.
static Value sigmoid(BodyBuilder &b, Value x) {
  Value one = constantLike(b, x, 1);
  Value exp = math::ExpOp::create(b, arith::NegFOp::create(b, x));
  return arith::DivFOp::create(b, one, arith::AddFOp::create(b, one, exp));
}

//===----------------------------------------------------------------------===//
// Unary
//===----------------------------------------------------------------------===//

static Value emit(nn::NegOp, BodyBuilder &b, Args args) {
  if (isFloat(args[0]))
    return arith::NegFOp::create(b, args[0]);
  return sub(b, constantLike(b, args[0], 0), args[0]);
}
static Value emit(nn::AbsOp, BodyBuilder &b, Args args) {
  if (isFloat(args[0]))
    return math::AbsFOp::create(b, args[0]);
  return math::AbsIOp::create(b, args[0]);
}
static Value emit(nn::ExpOp, BodyBuilder &b, Args args) {
  return math::ExpOp::create(b, args[0]);
}
static Value emit(nn::LogOp, BodyBuilder &b, Args args) {
  return math::LogOp::create(b, args[0]);
}
/// (u - 1) * x / log(u) for u = exp(x), in which the rounding errors of u
/// cancel (Kahan; Higham, "Accuracy and Stability of Numerical Algorithms",
/// 1.14.1). MLIR lowers math.expm1 to u - 1.
static Value emit(nn::Expm1Op, BodyBuilder &b, Args args) {
  Value x = args[0], one = constantLike(b, x, 1);
  Value u = math::ExpOp::create(b, x);
  Value less = sub(b, u, one);
  Value log = math::LogOp::create(b, u);
  Value ratio = arith::DivFOp::create(b, x, log);
  Value exact = arith::MulFOp::create(b, less, ratio);
  auto is = [&](Value value, double constant) -> Value {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, value,
                                 constantLike(b, x, constant));
  };
  auto select = [&](Value condition, Value yes, Value no) -> Value {
    return arith::SelectOp::create(b, condition, yes, no);
  };
  // Where the quotient is 0 / 0 or infinite, the difference is the result, or
  // x, which is too small for u.
  Value simple = select(is(less, -1), less, exact);
  simple = select(is(u, std::numeric_limits<double>::infinity()), u, simple);
  return select(is(u, 1), x, simple);
}
static Value emit(nn::Log1pOp, BodyBuilder &b, Args args) {
  return math::Log1pOp::create(b, args[0]);
}
static Value emit(nn::SqrtOp, BodyBuilder &b, Args args) {
  return math::SqrtOp::create(b, args[0]);
}
static Value emit(nn::RsqrtOp, BodyBuilder &b, Args args) {
  return math::RsqrtOp::create(b, args[0]);
}
static Value emit(nn::ReciprocalOp, BodyBuilder &b, Args args) {
  return arith::DivFOp::create(b, constantLike(b, args[0], 1), args[0]);
}
static Value emit(nn::SinOp, BodyBuilder &b, Args args) {
  return math::SinOp::create(b, args[0]);
}
static Value emit(nn::CosOp, BodyBuilder &b, Args args) {
  return math::CosOp::create(b, args[0]);
}
static Value emit(nn::AtanOp, BodyBuilder &b, Args args) {
  return math::AtanOp::create(b, args[0]);
}
static Value emit(nn::TanhOp, BodyBuilder &b, Args args) {
  return math::TanhOp::create(b, args[0]);
}
static Value emit(nn::ErfOp, BodyBuilder &b, Args args) {
  return math::ErfOp::create(b, args[0]);
}
static Value emit(nn::FloorOp, BodyBuilder &b, Args args) {
  return math::FloorOp::create(b, args[0]);
}
static Value emit(nn::CeilOp, BodyBuilder &b, Args args) {
  return math::CeilOp::create(b, args[0]);
}
static Value emit(nn::RoundOp, BodyBuilder &b, Args args) {
  return math::RoundEvenOp::create(b, args[0]);
}
static Value emit(nn::SigmoidOp, BodyBuilder &b, Args args) {
  return sigmoid(b, args[0]);
}
static Value emit(nn::SiluOp, BodyBuilder &b, Args args) {
  return emitActivation(b, tprt::Activation::Silu, args[0]);
}
static Value emit(nn::ReluOp, BodyBuilder &b, Args args) {
  if (isFloat(args[0]))
    return emitActivation(b, tprt::Activation::Relu, args[0]);
  return arith::MaxSIOp::create(b, args[0], constantLike(b, args[0], 0));
}
static Value emit(nn::LogicalNotOp, BodyBuilder &b, Args args) {
  Value one = arith::ConstantOp::create(b, b.getBoolAttr(true));
  return arith::XOrIOp::create(b, args[0], one);
}
static Value emit(nn::GeluOp op, BodyBuilder &b, Args args) {
  return emitActivation(
      b, op.getTanh() ? tprt::Activation::GeluTanh : tprt::Activation::Gelu,
      args[0]);
}
static Value emit(nn::CastOp, BodyBuilder &, Args args) {
  // The builder converts the result to the output's type.
  return args[0];
}

//===----------------------------------------------------------------------===//
// Division
//===----------------------------------------------------------------------===//

namespace {
/// A divisor that makes integer division by `y` defined for all inputs: 0 and
/// -1 (whose quotient may overflow) are replaced by 1 and flagged.
struct IntegerDivisor {
  Value safe, isZero, isMinusOne;
};
} // namespace

static IntegerDivisor getDivisor(BodyBuilder &b, Value y) {
  using nn::ComparePredicate;
  IntegerDivisor divisor;
  divisor.isZero = compare(b, ComparePredicate::EQ, y, constantLike(b, y, 0));
  divisor.isMinusOne =
      compare(b, ComparePredicate::EQ, y, constantLike(b, y, -1));
  Value special =
      b.createOrFold<arith::OrIOp>(divisor.isZero, divisor.isMinusOne);
  divisor.safe = select(b, special, constantLike(b, y, 1), y);
  return divisor;
}

/// Truncated x / y: -x for y = -1, wrapping as in PyTorch; 0 for y = 0.
static Value divideIntegers(BodyBuilder &b, Value x, Value y) {
  IntegerDivisor divisor = getDivisor(b, y);
  Value zero = constantLike(b, x, 0);
  Value quotient = b.createOrFold<arith::DivSIOp>(x, divisor.safe);
  quotient = select(b, divisor.isMinusOne, sub(b, zero, x), quotient);
  return select(b, divisor.isZero, zero, quotient);
}

static Value remainderOfIntegers(BodyBuilder &b, Value x, Value y) {
  // x % 1 is 0, which is the remainder for the replaced divisors too.
  return b.createOrFold<arith::RemSIOp>(x, getDivisor(b, y).safe);
}

/// Whether `remainder`, which has the sign of x, must be moved to the sign of
/// y.
static Value hasWrongSign(BodyBuilder &b, Value remainder, Value y) {
  using nn::ComparePredicate;
  Value zero = constantLike(b, y, 0);
  Value signsDiffer = b.createOrFold<arith::XOrIOp>(
      compare(b, ComparePredicate::LT, remainder, zero),
      compare(b, ComparePredicate::LT, y, zero));
  return b.createOrFold<arith::AndIOp>(
      compare(b, ComparePredicate::NE, remainder, zero), signsDiffer);
}

static Value emit(nn::DivOp, BodyBuilder &b, Args args) {
  if (isFloat(args[0]))
    return arith::DivFOp::create(b, args[0], args[1]);
  return divideIntegers(b, args[0], args[1]);
}

static Value emit(nn::RemainderOp, BodyBuilder &b, Args args) {
  Value y = args[1];
  Value remainder = isFloat(y)
                        ? arith::RemFOp::create(b, args[0], y).getResult()
                        : remainderOfIntegers(b, args[0], y);
  Value wrong = hasWrongSign(b, remainder, y);
  return select(b, wrong, add(b, remainder, y), remainder);
}

static Value emit(nn::FloorDivOp, BodyBuilder &b, Args args) {
  using nn::ComparePredicate;
  Value x = args[0], y = args[1];
  Value one = constantLike(b, x, 1);
  if (!isFloat(x)) {
    Value quotient = divideIntegers(b, x, y);
    Value wrong = hasWrongSign(b, remainderOfIntegers(b, x, y), y);
    return select(b, wrong, sub(b, quotient, one), quotient);
  }
  // As in PyTorch: (x - remainder) / y is an integer except for rounding
  // errors, and is rounded to the nearest one; x / y decides the sign of 0 and
  // the result for y = 0.
  Value remainder = arith::RemFOp::create(b, x, y);
  Value quotient = arith::DivFOp::create(b, sub(b, x, remainder), y);
  quotient =
      select(b, hasWrongSign(b, remainder, y), sub(b, quotient, one), quotient);
  Value floor = math::FloorOp::create(b, quotient);
  Value isBelow = compare(b, ComparePredicate::GT, sub(b, quotient, floor),
                          constantLike(b, x, 0.5));
  Value rounded = select(b, isBelow, add(b, floor, one), floor);
  Value exact = arith::DivFOp::create(b, x, y);
  Value zero = constantLike(b, x, 0);
  Value signedZero = math::CopySignOp::create(b, zero, exact);
  Value isNonZero = compare(b, ComparePredicate::NE, quotient, zero);
  Value result = select(b, isNonZero, rounded, signedZero);
  return select(b, compare(b, ComparePredicate::EQ, y, zero), exact, result);
}

//===----------------------------------------------------------------------===//
// Other binary and ternary ops
//===----------------------------------------------------------------------===//

static Value emit(nn::AddOp, BodyBuilder &b, Args args) {
  return add(b, args[0], args[1]);
}
static Value emit(nn::SubOp, BodyBuilder &b, Args args) {
  return sub(b, args[0], args[1]);
}
static Value emit(nn::MulOp, BodyBuilder &b, Args args) {
  return mul(b, args[0], args[1]);
}
static Value emit(nn::MaximumOp, BodyBuilder &b, Args args) {
  if (isFloat(args[0]))
    return arith::MaximumFOp::create(b, args[0], args[1]);
  return arith::MaxSIOp::create(b, args[0], args[1]);
}
static Value emit(nn::MinimumOp, BodyBuilder &b, Args args) {
  if (isFloat(args[0]))
    return arith::MinimumFOp::create(b, args[0], args[1]);
  return arith::MinSIOp::create(b, args[0], args[1]);
}
static Value emit(nn::LogicalAndOp, BodyBuilder &b, Args args) {
  return arith::AndIOp::create(b, args[0], args[1]);
}
static Value emit(nn::LogicalOrOp, BodyBuilder &b, Args args) {
  return arith::OrIOp::create(b, args[0], args[1]);
}
static Value emit(nn::LogicalXorOp, BodyBuilder &b, Args args) {
  return arith::XOrIOp::create(b, args[0], args[1]);
}
static Value emit(nn::CompareOp op, BodyBuilder &b, Args args) {
  return compare(b, op.getPredicate(), args[0], args[1]);
}
static Value emit(nn::WhereOp, BodyBuilder &b, Args args) {
  return select(b, args[0], args[1], args[2]);
}

/// x to a small constant power, by multiplications; null for other exponents.
static Value powByConstant(BodyBuilder &b, Value x, double exponent) {
  if (exponent == 0)
    return constantLike(b, x, 1);
  if (exponent == 1)
    return x;
  if (exponent == 2)
    return mul(b, x, x);
  if (exponent == 3)
    return mul(b, mul(b, x, x), x);
  if (!isFloat(x))
    return {};
  if (exponent == 0.5)
    return math::SqrtOp::create(b, x);
  if (exponent == -0.5)
    return math::RsqrtOp::create(b, x);
  if (exponent == -1 || exponent == -2)
    return arith::DivFOp::create(b, constantLike(b, x, 1),
                                 powByConstant(b, x, -exponent));
  return {};
}

/// Integer power by repeated squaring, modulo 2^bits; a negative exponent gives
/// 1, ±1 or 0 for a base of 1, -1 or another, as in PyTorch.
static Value powOfIntegers(BodyBuilder &b, Value x, Value y) {
  using nn::ComparePredicate;
  Value zero = constantLike(b, x, 0), one = constantLike(b, x, 1);
  Value minusOne = constantLike(b, x, -1);
  auto isOdd = [&](BodyBuilder &b, Value value) {
    return compare(b, ComparePredicate::NE,
                   b.createOrFold<arith::AndIOp>(value, one), zero);
  };
  Value lower = arith::ConstantIndexOp::create(b, 0);
  Value upper = arith::ConstantIndexOp::create(
      b, x.getType().getIntOrFloatBitWidth() - 1);
  Value step = arith::ConstantIndexOp::create(b, 1);
  auto loop = scf::ForOp::create(
      b, lower, upper, step, ValueRange{one, x, y},
      [&](OpBuilder &builder, Location loc, Value, ValueRange state) {
        BodyBuilder b(loc, builder);
        Value result = state[0], square = state[1], rest = state[2];
        Value next = select(b, isOdd(b, rest), mul(b, result, square), result);
        scf::YieldOp::create(
            b, ValueRange{next, mul(b, square, square),
                          b.createOrFold<arith::ShRUIOp>(rest, one)});
      });
  Value sign = select(b, isOdd(b, y), minusOne, one);
  Value inverse = select(
      b, compare(b, ComparePredicate::EQ, x, one), one,
      select(b, compare(b, ComparePredicate::EQ, x, minusOne), sign, zero));
  Value isNegative = compare(b, ComparePredicate::LT, y, zero);
  return select(b, isNegative, inverse, loop.getResult(0));
}

static Value emit(nn::PowOp, BodyBuilder &b, Args args) {
  Value x = args[0], y = args[1];
  APFloat floatExponent(0.0);
  APInt intExponent;
  Value result;
  if (matchPattern(y, m_ConstantFloat(&floatExponent)))
    result = powByConstant(b, x, floatExponent.convertToDouble());
  else if (matchPattern(y, m_ConstantInt(&intExponent)))
    result = powByConstant(b, x, intExponent.getSExtValue());
  if (result)
    return result;
  if (isFloat(x))
    return math::PowFOp::create(b, x, y);
  return powOfIntegers(b, x, y);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {
template <typename OpTy>
struct ElementwisePattern : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    BodyBuilder b(op.getLoc(), rewriter);
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    rewriter.replaceOp(op, buildElementwise(b, type, op->getOperands(),
                                            [&](BodyBuilder &b, Args args) {
                                              return emit(op, b, args);
                                            }));
    return success();
  }
};

template <typename... OpTys>
void addElementwise(RewritePatternSet &patterns) {
  patterns.add<ElementwisePattern<OpTys>...>(patterns.getContext());
}
} // namespace

void mlir::tp::nnlinalg::populateElementwisePatterns(
    RewritePatternSet &patterns) {
  addElementwise<nn::NegOp, nn::AbsOp, nn::ExpOp, nn::Expm1Op, nn::LogOp,
                 nn::Log1pOp, nn::SqrtOp, nn::RsqrtOp, nn::ReciprocalOp,
                 nn::SinOp, nn::CosOp, nn::AtanOp, nn::TanhOp, nn::ErfOp,
                 nn::SigmoidOp, nn::SiluOp, nn::ReluOp, nn::FloorOp, nn::CeilOp,
                 nn::RoundOp, nn::LogicalNotOp, nn::GeluOp, nn::CastOp,
                 nn::AddOp, nn::SubOp, nn::MulOp, nn::DivOp, nn::FloorDivOp,
                 nn::RemainderOp, nn::PowOp, nn::MaximumOp, nn::MinimumOp,
                 nn::LogicalAndOp, nn::LogicalOrOp, nn::LogicalXorOp,
                 nn::CompareOp, nn::WhereOp>(patterns);
}
