//===- AtenElementwise.cpp - pointwise ops --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AtenCall.h"
#include <cmath>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;
using nn::ComparePredicate;

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

template <typename Op>
static LogicalResult unary(AtenCall &call, ImportBuilder &b) {
  Value self = castTo(b, call.tensor("self"), call.resultElement());
  return call.result(unary<Op>(b, self));
}

/// neg, abs, relu of a float tensor; round-like ops leave integers alone.
template <typename Op>
static LogicalResult roundLike(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  return call.result(isFloat(self) ? unary<Op>(b, self) : self);
}

/// Python's abs calls its argument x.
static LogicalResult absolute(AtenCall &call, ImportBuilder &b) {
  return call.result(
      unary<nn::AbsOp>(b, call.tensor(call.has("self") ? "self" : "x")));
}

static LogicalResult trunc(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  return call.result(isFloat(self) ? b.truncate(self) : self);
}

static LogicalResult gelu(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  bool tanh = call.string("approximate") == "tanh";
  return call.result(nn::GeluOp::create(b, self, tanh));
}

static LogicalResult square(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  return call.result(mul(b, self, self));
}

static LogicalResult logicalNot(AtenCall &call, ImportBuilder &b) {
  Value self = castTo(b, call.tensor("self"), b.getI1Type());
  return call.result(unary<nn::LogicalNotOp>(b, self));
}

static LogicalResult isNaN(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  return call.result(compare(b, ComparePredicate::NE, self, self));
}

static LogicalResult isInf(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  if (!isFloat(self))
    return call.result(
        b.splat(shapeOf(self), b.getI1Type(), Scalar::of(int64_t(0))));
  return call.result(compare(b, ComparePredicate::EQ, unary<nn::AbsOp>(b, self),
                             b.scalar(elementOf(self), Scalar::of(HUGE_VAL))));
}

static LogicalResult leakyRelu(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  Type type = elementOf(self);
  Value slope = b.scalar(type, call.scalar("negative_slope"));
  Value positive = compare(b, ComparePredicate::GT, self,
                           b.scalar(type, Scalar::of(int64_t(0))));
  return call.result(select(b, positive, self, mul(b, self, slope)));
}

/// log(1 + exp(βx)) / β, or x itself above the threshold.
static LogicalResult softplus(AtenCall &call, ImportBuilder &b) {
  Value self = b.widen(call.tensor("self"));
  Type type = elementOf(self);
  Value beta = b.scalar(type, call.scalar("beta"));
  Value scaled = mul(b, self, beta);
  Value above = compare(b, ComparePredicate::GT, scaled,
                        b.scalar(type, call.scalar("threshold")));
  Value below =
      select(b, above, b.scalar(type, Scalar::of(int64_t(0))), scaled);
  Value soft = div(b, unary<nn::Log1pOp>(b, unary<nn::ExpOp>(b, below)), beta);
  return call.result(
      castTo(b, select(b, above, self, soft), call.resultElement()));
}

static LogicalResult glu(AtenCall &call, ImportBuilder &b) {
  Value self = b.widen(call.tensor("self"));
  int64_t dim = call.dim("dim", rankOf(self));
  int64_t half = shapeOf(self)[dim] / 2;
  Value gate = unary<nn::SigmoidOp>(b, b.slice(self, dim, half, half));
  return call.result(castTo(b, mul(b, b.slice(self, dim, 0, half), gate),
                            call.resultElement()));
}

/// min(x, 0) - log(1 + exp(-|x|)), which is stable on both sides.
static LogicalResult logSigmoid(AtenCall &call, ImportBuilder &b) {
  Value self = b.widen(call.tensor("self"));
  Value zero = b.scalar(elementOf(self), Scalar::of(int64_t(0)));
  Value tail = unary<nn::Log1pOp>(
      b, unary<nn::ExpOp>(b, unary<nn::NegOp>(b, unary<nn::AbsOp>(b, self))));
  Value head = binary<nn::MinimumOp>(b, self, zero);
  return call.result(castTo(b, sub(b, head, tail), call.resultElement()));
}

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

template <typename Op>
static LogicalResult binary(AtenCall &call, ImportBuilder &b) {
  Type type = call.resultElement();
  return call.result(binary<Op>(b, operand(call, b, "self", type),
                                operand(call, b, "other", type)));
}

static Value scaledBy(AtenCall &call, ImportBuilder &b, StringRef name,
                      Value v) {
  if (!call.has(name) || call.scalar(name) == 1.0)
    return v;
  return mul(b, v, b.scalar(elementOf(v), call.scalar(name)));
}

static LogicalResult add(AtenCall &call, ImportBuilder &b) {
  Type type = call.resultElement();
  Value self = operand(call, b, "self", type);
  Value other = operand(call, b, "other", type);
  if (type.isInteger(1)) {
    if (call.scalar("alpha") == 0)
      return call.result(broadcast(b, self, call.resultShape()));
    return call.result(binary<nn::LogicalOrOp>(b, self, other));
  }
  return call.result(add(b, self, scaledBy(call, b, "alpha", other)));
}

static LogicalResult sub(AtenCall &call, ImportBuilder &b) {
  Type type = call.resultElement();
  Value other = scaledBy(call, b, "alpha", operand(call, b, "other", type));
  return call.result(sub(b, operand(call, b, "self", type), other));
}

static LogicalResult rsub(AtenCall &call, ImportBuilder &b) {
  Type type = call.resultElement();
  Value self = scaledBy(call, b, "alpha", operand(call, b, "self", type));
  return call.result(sub(b, operand(call, b, "other", type), self));
}

static LogicalResult mul(AtenCall &call, ImportBuilder &b) {
  if (call.resultElement().isInteger(1))
    return binary<nn::LogicalAndOp>(call, b);
  return binary<nn::MulOp>(call, b);
}

static LogicalResult div(AtenCall &call, ImportBuilder &b) {
  std::string rounding = call.string("rounding_mode");
  if (rounding == "floor")
    return binary<nn::FloorDivOp>(call, b);
  Type type = call.resultElement();
  Value quotient =
      div(b, operand(call, b, "self", type), operand(call, b, "other", type));
  if (rounding != "trunc" || !isa<FloatType>(type))
    return call.result(quotient);
  return call.result(b.truncate(quotient));
}

/// Computes small constant exponents as PyTorch's own kernels do.
static Value powConstant(ImportBuilder &b, Value base, double exponent) {
  bool isReal = isFloat(base);
  if (exponent == 1)
    return base;
  if (exponent == 2)
    return mul(b, base, base);
  if (exponent == 3)
    return mul(b, mul(b, base, base), base);
  if (isReal && exponent == 0.5)
    return unary<nn::SqrtOp>(b, base);
  if (isReal && exponent == -0.5)
    return unary<nn::RsqrtOp>(b, base);
  if (isReal && exponent == -1)
    return unary<nn::ReciprocalOp>(b, base);
  return Value();
}

static LogicalResult pow(AtenCall &call, ImportBuilder &b) {
  Type type = call.resultElement();
  Value base = operand(call, b, "self", type);
  if (call.isNumber("exponent"))
    if (Value simple = powConstant(b, b.widen(base), call.real("exponent")))
      return call.result(
          broadcast(b, castTo(b, simple, type), call.resultShape()));
  return call.result(
      binary<nn::PowOp>(b, base, operand(call, b, "exponent", type)));
}

template <ComparePredicate predicate>
static LogicalResult compare(AtenCall &call, ImportBuilder &b) {
  Type type = call.promote({"self", "other"});
  return call.result(compare(b, predicate, operand(call, b, "self", type),
                             operand(call, b, "other", type)));
}

template <typename Op>
static LogicalResult logical(AtenCall &call, ImportBuilder &b) {
  Type type = b.getI1Type();
  return call.result(binary<Op>(b, operand(call, b, "self", type),
                                operand(call, b, "other", type)));
}

//===----------------------------------------------------------------------===//
// Three operands
//===----------------------------------------------------------------------===//

/// `v`, or the bound if `v` is beyond it. At the bound the whole gradient
/// passes if `beyond` is strict; with a maximum, only half of it would.
static Value limit(ImportBuilder &b, Value v, ComparePredicate beyond,
                   Value bound) {
  return select(b, compare(b, beyond, v, bound), bound, v);
}

/// The same for a bound of `clamp`, which may be NaN: then so is the result.
static Value limit(AtenCall &call, ImportBuilder &b, Value v,
                   ComparePredicate beyond, StringRef name) {
  Value bound = operand(call, b, name, elementOf(v));
  bool mayBeNaN =
      isFloat(v) && (!call.isNumber(name) || std::isnan(call.real(name)));
  Value result = limit(b, v, beyond, bound);
  if (!mayBeNaN)
    return result;
  Value isNaN = compare(b, ComparePredicate::NE, bound, bound);
  return select(b, isNaN, bound, result);
}

static LogicalResult clamp(AtenCall &call, ImportBuilder &b) {
  Value v = operand(call, b, "self", call.resultElement());
  if (call.has("min"))
    v = limit(call, b, v, ComparePredicate::LT, "min");
  if (call.has("max"))
    v = limit(call, b, v, ComparePredicate::GT, "max");
  return call.result(v);
}

static LogicalResult hardtanh(AtenCall &call, ImportBuilder &b) {
  Type type = call.resultElement();
  Value v = operand(call, b, "self", type);
  v = limit(b, v, ComparePredicate::LE, operand(call, b, "min_val", type));
  return call.result(
      limit(b, v, ComparePredicate::GE, operand(call, b, "max_val", type)));
}

static LogicalResult relu6(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  return call.result(limit(b, unary<nn::ReluOp>(b, self), ComparePredicate::GE,
                           b.scalar(elementOf(self), Scalar::of(int64_t(6)))));
}

static LogicalResult where(AtenCall &call, ImportBuilder &b) {
  if (!call.has("self"))
    return call.unsupported("with a condition alone: the number of results "
                            "depends on the data");
  Type type = call.resultElement();
  Value condition = castTo(b, call.tensor("condition"), b.getI1Type());
  return call.result(select(b, condition, operand(call, b, "self", type),
                            operand(call, b, "other", type)));
}

static LogicalResult maskedFill(AtenCall &call, ImportBuilder &b) {
  Type type = call.resultElement();
  Value mask = castTo(b, call.tensor("mask"), b.getI1Type());
  return call.result(select(b, mask, operand(call, b, "value", type),
                            operand(call, b, "self", type)));
}

static LogicalResult fill(AtenCall &call, ImportBuilder &b) {
  return call.result(broadcast(
      b, operand(call, b, "value", call.resultElement()), call.resultShape()));
}

static LogicalResult zero(AtenCall &call, ImportBuilder &b) {
  return call.result(b.splat(call.resultShape(), call.resultElement(),
                             Scalar::of(int64_t(0))));
}

/// An operand in the type in which a result of `type` is computed.
static Value wideOperand(AtenCall &call, ImportBuilder &b, StringRef name,
                         Type type) {
  return b.widen(operand(call, b, name, type));
}

template <bool divide>
static LogicalResult addcmul(AtenCall &call, ImportBuilder &b) {
  Type type = call.resultElement();
  Value first = wideOperand(call, b, "tensor1", type);
  Value second = wideOperand(call, b, "tensor2", type);
  Value product = divide ? div(b, first, second) : mul(b, first, second);
  Value sum = add(b, wideOperand(call, b, "self", type),
                  scaledBy(call, b, "value", product));
  return call.result(castTo(b, sum, type));
}

/// Interpolates from the nearer end, as PyTorch does, so that weights of 0 and
/// 1 give the ends.
static LogicalResult lerp(AtenCall &call, ImportBuilder &b) {
  Type type = call.resultElement();
  Value self = wideOperand(call, b, "self", type);
  Value end = wideOperand(call, b, "end", type);
  Value weight = wideOperand(call, b, "weight", type);
  Type wide = elementOf(weight);
  Value isNear = compare(b, ComparePredicate::LT, unary<nn::AbsOp>(b, weight),
                         b.scalar(wide, Scalar::of(0.5)));
  Value rest = sub(b, weight, b.scalar(wide, Scalar::of(int64_t(1))));
  Value way = mul(b, select(b, isNear, weight, rest), sub(b, end, self));
  return call.result(
      castTo(b, add(b, select(b, isNear, self, end), way), type));
}

static LogicalResult nanToNum(AtenCall &call, ImportBuilder &b) {
  Value v = call.tensor("self");
  auto type = dyn_cast<FloatType>(elementOf(v));
  if (!type)
    return call.result(v);
  double largest =
      llvm::APFloat::getLargest(type.getFloatSemantics()).convertToDouble();
  auto replacement = [&](StringRef name, double otherwise) {
    return b.scalar(type,
                    call.has(name) ? call.scalar(name) : Scalar::of(otherwise));
  };
  auto equals = [&](double value) {
    return compare(b, ComparePredicate::EQ, v,
                   b.scalar(type, Scalar::of(value)));
  };
  Value isNaN = compare(b, ComparePredicate::NE, v, v);
  Value isHigh = equals(HUGE_VAL), isLow = equals(-HUGE_VAL);
  Value result = select(b, isNaN, replacement("nan", 0), v);
  result = select(b, isHigh, replacement("posinf", largest), result);
  return call.result(select(b, isLow, replacement("neginf", -largest), result));
}

//===----------------------------------------------------------------------===//
// Conversions and copies
//===----------------------------------------------------------------------===//

static LogicalResult convert(AtenCall &call, ImportBuilder &b) {
  return call.result(castTo(b, call.tensor("self"), call.resultElement()));
}

static LogicalResult detach(AtenCall &call, ImportBuilder &b) {
  // The argument of prim::data has another name.
  return call.result(
      b.stopGradient(call.tensor(call.has("self") ? "self" : "a")));
}

/// Only for a tensor that the model computes: whether a parameter is trained
/// can't be changed.
static LogicalResult requiresGrad(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  return call.result(call.flag("requires_grad") ? self : b.stopGradient(self));
}

static LogicalResult copy(AtenCall &call, ImportBuilder &b) {
  // For numbers, the argument is called other.
  Value source =
      operand(call, b, call.has("src") ? "src" : "other", call.resultElement());
  return call.result(broadcast(b, source, call.resultShape()));
}

static LogicalResult dropout(AtenCall &call, ImportBuilder &b) {
  Value input = inputOf(call);
  // native_dropout's None means true.
  if (call.has("train") && !call.flag("train"))
    return call.result(input);
  return call.result(
      nn::DropoutOp::create(b, input, b.getF64FloatAttr(call.real("p"))));
}

static LogicalResult otherDropout(AtenCall &call, ImportBuilder &b) {
  if (!call.flag("train"))
    return call.result(inputOf(call));
  return call.unsupported("in training mode: call eval() on the module before "
                          "saving it");
}

void mlir::tp::addElementwiseOps(AtenTable &table) {
  table["neg"] = {unary<nn::NegOp>, "self"};
  table["abs"] = {absolute, "self x"};
  table["relu"] = {unary<nn::ReluOp>, "self"};
  table["exp"] = {unary<nn::ExpOp>, "self"};
  table["log"] = {unary<nn::LogOp>, "self"};
  table["sqrt"] = {unary<nn::SqrtOp>, "self"};
  table["rsqrt"] = {unary<nn::RsqrtOp>, "self"};
  table["reciprocal"] = {unary<nn::ReciprocalOp>, "self"};
  table["sin"] = {unary<nn::SinOp>, "self"};
  table["cos"] = {unary<nn::CosOp>, "self"};
  table["tanh"] = {unary<nn::TanhOp>, "self"};
  table["erf"] = {unary<nn::ErfOp>, "self"};
  table["sigmoid"] = {unary<nn::SigmoidOp>, "self"};
  table["silu"] = {unary<nn::SiluOp>, "self"};
  table["floor"] = {roundLike<nn::FloorOp>, "self"};
  table["ceil"] = {roundLike<nn::CeilOp>, "self"};
  table["trunc"] = {trunc, "self"};
  table["gelu"] = {gelu, "self approximate"};
  table["square"] = {square, "self"};
  table["logical_not"] = {logicalNot, "self"};
  table["isnan"] = {isNaN, "self"};
  table["isinf"] = {isInf, "self"};
  table["leaky_relu"] = {leakyRelu, "self negative_slope"};
  table["softplus"] = {softplus, "self beta threshold"};
  table["glu"] = {glu, "self dim"};
  table["log_sigmoid"] = {logSigmoid, "self"};

  table["add"] = {add, "self other alpha"};
  table["sub"] = {sub, "self other alpha"};
  table["subtract"] = {sub, "self other alpha"};
  table["rsub"] = {rsub, "self other alpha"};
  table["mul"] = {mul, "self other"};
  table["multiply"] = {mul, "self other"};
  table["div"] = {div, "self other rounding_mode"};
  table["divide"] = {div, "self other rounding_mode"};
  table["true_divide"] = {div, "self other"};
  table["floor_divide"] = {binary<nn::FloorDivOp>, "self other"};
  table["remainder"] = {binary<nn::RemainderOp>, "self other"};
  table["pow"] = {pow, "self exponent"};
  table["maximum"] = {binary<nn::MaximumOp>, "self other"};
  table["minimum"] = {binary<nn::MinimumOp>, "self other"};
  table["eq"] = {compare<ComparePredicate::EQ>, "self other"};
  table["ne"] = {compare<ComparePredicate::NE>, "self other"};
  table["not_equal"] = {compare<ComparePredicate::NE>, "self other"};
  table["lt"] = {compare<ComparePredicate::LT>, "self other"};
  table["less"] = {compare<ComparePredicate::LT>, "self other"};
  table["le"] = {compare<ComparePredicate::LE>, "self other"};
  table["less_equal"] = {compare<ComparePredicate::LE>, "self other"};
  table["gt"] = {compare<ComparePredicate::GT>, "self other"};
  table["greater"] = {compare<ComparePredicate::GT>, "self other"};
  table["ge"] = {compare<ComparePredicate::GE>, "self other"};
  table["greater_equal"] = {compare<ComparePredicate::GE>, "self other"};
  table["logical_and"] = {logical<nn::LogicalAndOp>, "self other"};
  table["logical_or"] = {logical<nn::LogicalOrOp>, "self other"};
  table["logical_xor"] = {logical<nn::LogicalXorOp>, "self other"};

  table["clamp"] = {clamp, "self min max"};
  table["clamp_min"] = {clamp, "self min"};
  table["clamp_max"] = {clamp, "self max"};
  table["clip"] = {clamp, "self min max"};
  table["hardtanh"] = {hardtanh, "self min_val max_val"};
  table["relu6"] = {relu6, "self"};
  table["where"] = {where, "condition self other"};
  table["masked_fill"] = {maskedFill, "self mask value"};
  table["fill"] = {.run = fill, .reads = "value", .inType = "self"};
  table["zero"] = {.run = zero, .reads = "", .inType = "self"};
  table["addcmul"] = {addcmul<false>, "self tensor1 tensor2 value"};
  table["addcdiv"] = {addcmul<true>, "self tensor1 tensor2 value"};
  table["lerp"] = {lerp, "self end weight"};
  table["nan_to_num"] = {nanToNum, "self nan posinf neginf"};

  table["to"] = {
      .run = convert,
      .reads = "self",
      .inType = "dtype other",
      .noEffect = "device layout pin_memory non_blocking copy memory_format"};
  table["_to_copy"] = {
      .run = convert,
      .reads = "self",
      .inType = "dtype",
      .noEffect = "device layout pin_memory non_blocking memory_format"};
  table["type_as"] = {.run = convert, .reads = "self", .inType = "other"};
  table["clone"] = {
      .run = convert, .reads = "self", .noEffect = "memory_format"};
  table["contiguous"] = {
      .run = convert, .reads = "self", .noEffect = "memory_format"};
  table["detach"] = {detach, "self"};
  table["detach_copy"] = {detach, "self"};
  table["data"] = {detach, "self a"};
  table["requires_grad"] = {requiresGrad, "self requires_grad"};
  table["alias"] = {convert, "self"};
  table["lift_fresh"] = {convert, "self"};
  table["lift_fresh_copy"] = {convert, "self"};
  table["copy"] = {.run = copy,
                   .reads = "src other",
                   .inType = "self",
                   .noEffect = "non_blocking"};
  table["dropout"] = {dropout, "input self p train"};
  table["native_dropout"] = {dropout, "input p train"};
  table["alpha_dropout"] = {otherDropout, "input self p train"};
  table["feature_dropout"] = {otherDropout, "input self p train"};
}
