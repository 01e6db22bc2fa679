//===- AtenElementwise.cpp - pointwise ops --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AtenCall.h"
#include <cmath>

using namespace mlir;
using namespace mlir::tp;
using nn::ComparePredicate;

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

template <typename Op>
static LogicalResult unary(AtenCall &call, NNBuilder &b) {
  Value self = b.cast(call.tensor("self"), call.resultElement());
  return call.result(b.unary<Op>(self));
}

/// neg, abs, relu of a float tensor; round-like ops leave integers alone.
template <typename Op>
static LogicalResult roundLike(AtenCall &call, NNBuilder &b) {
  Value self = call.tensor("self");
  return call.result(b.isFloat(self) ? b.unary<Op>(self) : self);
}

/// Python's abs calls its argument x.
static LogicalResult absolute(AtenCall &call, NNBuilder &b) {
  return call.result(
      b.unary<nn::AbsOp>(call.tensor(call.has("self") ? "self" : "x")));
}

static LogicalResult trunc(AtenCall &call, NNBuilder &b) {
  Value self = call.tensor("self");
  if (!b.isFloat(self))
    return call.result(self);
  Value zero = b.scalar(b.element(self), Scalar::of(int64_t(0)));
  return call.result(b.where(b.compare(ComparePredicate::LT, self, zero),
                             b.unary<nn::CeilOp>(self),
                             b.unary<nn::FloorOp>(self)));
}

static LogicalResult gelu(AtenCall &call, NNBuilder &b) {
  Value self = call.tensor("self");
  bool tanh = call.string("approximate") == "tanh";
  return call.result(
      nn::GeluOp::create(b.builder, b.loc, self.getType(), self, tanh));
}

static LogicalResult square(AtenCall &call, NNBuilder &b) {
  Value self = call.tensor("self");
  return call.result(b.mul(self, self));
}

static LogicalResult logicalNot(AtenCall &call, NNBuilder &b) {
  Value self = b.cast(call.tensor("self"), b.builder.getI1Type());
  return call.result(b.unary<nn::LogicalNotOp>(self));
}

static LogicalResult bitwiseNot(AtenCall &call, NNBuilder &b) {
  if (!call.resultElement().isInteger(1))
    return call.unsupported("of integers");
  return logicalNot(call, b);
}

static LogicalResult isNaN(AtenCall &call, NNBuilder &b) {
  Value self = call.tensor("self");
  return call.result(b.compare(ComparePredicate::NE, self, self));
}

static LogicalResult isInf(AtenCall &call, NNBuilder &b) {
  Value self = call.tensor("self");
  if (!b.isFloat(self))
    return call.result(
        b.splat(b.shape(self), b.builder.getI1Type(), Scalar::of(int64_t(0))));
  return call.result(
      b.compare(ComparePredicate::EQ, b.unary<nn::AbsOp>(self),
                b.scalar(b.element(self), Scalar::of(HUGE_VAL))));
}

static LogicalResult leakyRelu(AtenCall &call, NNBuilder &b) {
  Value self = call.tensor("self");
  Type type = b.element(self);
  Value slope = b.scalar(type, call.scalar("negative_slope"));
  Value positive = b.compare(ComparePredicate::GT, self,
                             b.scalar(type, Scalar::of(int64_t(0))));
  return call.result(b.where(positive, self, b.mul(self, slope)));
}

/// log(1 + x) up to rounding, also for small x: what 1 + x loses by rounding is
/// added to the logarithm, without a gradient. For inf it is inf.
static Value log1p(NNBuilder &b, Value x) {
  Type type = b.element(x);
  Value one = b.scalar(type, Scalar::of(int64_t(1)));
  Value sum = b.add(x, one);
  Value lost = b.div(b.sub(x, b.sub(sum, one)), sum);
  Value isInfinite = b.compare(ComparePredicate::EQ, sum,
                               b.scalar(type, Scalar::of(HUGE_VAL)));
  lost = b.where(isInfinite, b.scalar(type, Scalar::of(int64_t(0))), lost);
  return b.add(b.unary<nn::LogOp>(sum), b.stopGradient(lost));
}

/// log(1 + exp(βx)) / β, or x itself above the threshold.
static LogicalResult softplus(AtenCall &call, NNBuilder &b) {
  Value self = b.widen(call.tensor("self"));
  Type type = b.element(self);
  Value beta = b.scalar(type, call.scalar("beta"));
  Value scaled = b.mul(self, beta);
  Value above = b.compare(ComparePredicate::GT, scaled,
                          b.scalar(type, call.scalar("threshold")));
  Value below = b.where(above, b.scalar(type, Scalar::of(int64_t(0))), scaled);
  Value soft = b.div(log1p(b, b.unary<nn::ExpOp>(below)), beta);
  return call.result(b.cast(b.where(above, self, soft), call.resultElement()));
}

static LogicalResult glu(AtenCall &call, NNBuilder &b) {
  Value self = b.widen(call.tensor("self"));
  int64_t dim = call.dim("dim", b.rank(self));
  int64_t half = b.shape(self)[dim] / 2;
  Value gate = b.unary<nn::SigmoidOp>(b.slice(self, dim, half, half));
  return call.result(
      b.cast(b.mul(b.slice(self, dim, 0, half), gate), call.resultElement()));
}

/// min(x, 0) - log(1 + exp(-|x|)), which is stable on both sides.
static LogicalResult logSigmoid(AtenCall &call, NNBuilder &b) {
  Value self = b.widen(call.tensor("self"));
  Value zero = b.scalar(b.element(self), Scalar::of(int64_t(0)));
  Value tail = log1p(
      b, b.unary<nn::ExpOp>(b.unary<nn::NegOp>(b.unary<nn::AbsOp>(self))));
  Value head = b.binary<nn::MinimumOp>(self, zero);
  return call.result(b.cast(b.sub(head, tail), call.resultElement()));
}

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

template <typename Op>
static LogicalResult binary(AtenCall &call, NNBuilder &b) {
  Type type = call.resultElement();
  return call.result(b.binary<Op>(operand(call, b, "self", type),
                                  operand(call, b, "other", type)));
}

static Value scaledBy(AtenCall &call, NNBuilder &b, StringRef name, Value v) {
  if (!call.has(name) || call.scalar(name) == 1.0)
    return v;
  return b.mul(v, b.scalar(b.element(v), call.scalar(name)));
}

static LogicalResult add(AtenCall &call, NNBuilder &b) {
  Type type = call.resultElement();
  Value self = operand(call, b, "self", type);
  Value other = operand(call, b, "other", type);
  if (type.isInteger(1))
    return call.result(b.binary<nn::LogicalOrOp>(self, other));
  return call.result(b.add(self, scaledBy(call, b, "alpha", other)));
}

static LogicalResult sub(AtenCall &call, NNBuilder &b) {
  Type type = call.resultElement();
  Value other = scaledBy(call, b, "alpha", operand(call, b, "other", type));
  return call.result(b.sub(operand(call, b, "self", type), other));
}

static LogicalResult rsub(AtenCall &call, NNBuilder &b) {
  Type type = call.resultElement();
  Value self = scaledBy(call, b, "alpha", operand(call, b, "self", type));
  return call.result(b.sub(operand(call, b, "other", type), self));
}

static LogicalResult mul(AtenCall &call, NNBuilder &b) {
  if (call.resultElement().isInteger(1))
    return binary<nn::LogicalAndOp>(call, b);
  return binary<nn::MulOp>(call, b);
}

static LogicalResult div(AtenCall &call, NNBuilder &b) {
  std::string rounding = call.string("rounding_mode");
  if (rounding == "floor")
    return binary<nn::FloorDivOp>(call, b);
  Type type = call.resultElement();
  Value quotient =
      b.div(operand(call, b, "self", type), operand(call, b, "other", type));
  if (rounding != "trunc" || !isa<FloatType>(type))
    return call.result(quotient);
  Value zero = b.scalar(type, Scalar::of(int64_t(0)));
  return call.result(b.where(b.compare(ComparePredicate::LT, quotient, zero),
                             b.unary<nn::CeilOp>(quotient),
                             b.unary<nn::FloorOp>(quotient)));
}

/// Computes small constant exponents as PyTorch's own kernels do.
static Value powConstant(NNBuilder &b, Value base, double exponent) {
  bool isFloat = b.isFloat(base);
  if (exponent == 1)
    return base;
  if (exponent == 2)
    return b.mul(base, base);
  if (exponent == 3)
    return b.mul(b.mul(base, base), base);
  if (isFloat && exponent == 0.5)
    return b.unary<nn::SqrtOp>(base);
  if (isFloat && exponent == -0.5)
    return b.unary<nn::RsqrtOp>(base);
  if (isFloat && exponent == -1)
    return b.unary<nn::ReciprocalOp>(base);
  return Value();
}

static LogicalResult pow(AtenCall &call, NNBuilder &b) {
  Type type = call.resultElement();
  Value base = operand(call, b, "self", type);
  if (call.isNumber("exponent"))
    if (Value simple = powConstant(b, b.widen(base), call.real("exponent")))
      return call.result(b.broadcast(b.cast(simple, type), call.resultShape()));
  return call.result(
      b.binary<nn::PowOp>(base, operand(call, b, "exponent", type)));
}

template <ComparePredicate predicate>
static LogicalResult compare(AtenCall &call, NNBuilder &b) {
  Type type = call.promote({"self", "other"});
  return call.result(b.compare(predicate, operand(call, b, "self", type),
                               operand(call, b, "other", type)));
}

template <typename Op>
static LogicalResult logical(AtenCall &call, NNBuilder &b) {
  Type type = b.builder.getI1Type();
  return call.result(b.binary<Op>(operand(call, b, "self", type),
                                  operand(call, b, "other", type)));
}

template <typename Op>
static LogicalResult bitwise(AtenCall &call, NNBuilder &b) {
  if (!call.resultElement().isInteger(1))
    return call.unsupported("of integers");
  return logical<Op>(call, b);
}

//===----------------------------------------------------------------------===//
// Three operands
//===----------------------------------------------------------------------===//

/// `v`, or the bound if `v` is beyond it. At the bound the whole gradient
/// passes if `beyond` is strict; with a maximum, only half of it would.
static Value limit(NNBuilder &b, Value v, ComparePredicate beyond,
                   Value bound) {
  return b.where(b.compare(beyond, v, bound), bound, v);
}

/// Whether a bound of `clamp` is a number other than NaN. A NaN bound, also as
/// an element of a tensor, gives NaN, as in maximum and minimum.
static bool isBound(AtenCall &call, StringRef name) {
  return call.isNumber(name) && !std::isnan(call.real(name));
}

static LogicalResult clamp(AtenCall &call, NNBuilder &b) {
  Type type = call.resultElement();
  Value v = operand(call, b, "self", type);
  if (call.has("min")) {
    Value bound = operand(call, b, "min", type);
    v = isBound(call, "min") ? limit(b, v, ComparePredicate::LT, bound)
                             : b.binary<nn::MaximumOp>(v, bound);
  }
  if (call.has("max")) {
    Value bound = operand(call, b, "max", type);
    v = isBound(call, "max") ? limit(b, v, ComparePredicate::GT, bound)
                             : b.binary<nn::MinimumOp>(v, bound);
  }
  return call.result(v);
}

static LogicalResult hardtanh(AtenCall &call, NNBuilder &b) {
  Type type = call.resultElement();
  Value v = operand(call, b, "self", type);
  v = limit(b, v, ComparePredicate::LE, operand(call, b, "min_val", type));
  return call.result(
      limit(b, v, ComparePredicate::GE, operand(call, b, "max_val", type)));
}

static LogicalResult relu6(AtenCall &call, NNBuilder &b) {
  Value self = call.tensor("self");
  return call.result(limit(b, b.unary<nn::ReluOp>(self), ComparePredicate::GE,
                           b.scalar(b.element(self), Scalar::of(int64_t(6)))));
}

static LogicalResult where(AtenCall &call, NNBuilder &b) {
  if (!call.has("self"))
    return call.unsupported("with a condition alone: the number of results "
                            "depends on the data");
  Type type = call.resultElement();
  Value condition = b.cast(call.tensor("condition"), b.builder.getI1Type());
  return call.result(b.where(condition, operand(call, b, "self", type),
                             operand(call, b, "other", type)));
}

static LogicalResult maskedFill(AtenCall &call, NNBuilder &b) {
  Type type = call.resultElement();
  Value mask = b.cast(call.tensor("mask"), b.builder.getI1Type());
  return call.result(b.where(mask, operand(call, b, "value", type),
                             operand(call, b, "self", type)));
}

static LogicalResult fill(AtenCall &call, NNBuilder &b) {
  return call.result(b.broadcast(
      operand(call, b, "value", call.resultElement()), call.resultShape()));
}

static LogicalResult zero(AtenCall &call, NNBuilder &b) {
  return call.result(b.splat(call.resultShape(), call.resultElement(),
                             Scalar::of(int64_t(0))));
}

/// An operand in the type in which a result of `type` is computed.
static Value wideOperand(AtenCall &call, NNBuilder &b, StringRef name,
                         Type type) {
  return b.widen(operand(call, b, name, type));
}

template <bool divide>
static LogicalResult addcmul(AtenCall &call, NNBuilder &b) {
  Type type = call.resultElement();
  Value first = wideOperand(call, b, "tensor1", type);
  Value second = wideOperand(call, b, "tensor2", type);
  Value product = divide ? b.div(first, second) : b.mul(first, second);
  Value sum = b.add(wideOperand(call, b, "self", type),
                    scaledBy(call, b, "value", product));
  return call.result(b.cast(sum, type));
}

/// Interpolates from the nearer end, as PyTorch does, so that weights of 0 and
/// 1 give the ends.
static LogicalResult lerp(AtenCall &call, NNBuilder &b) {
  Type type = call.resultElement();
  Value self = wideOperand(call, b, "self", type);
  Value end = wideOperand(call, b, "end", type);
  Value weight = wideOperand(call, b, "weight", type);
  Type wide = b.element(weight);
  Value isNear = b.compare(ComparePredicate::LT, b.unary<nn::AbsOp>(weight),
                           b.scalar(wide, Scalar::of(0.5)));
  Value rest = b.sub(weight, b.scalar(wide, Scalar::of(int64_t(1))));
  Value way = b.mul(b.where(isNear, weight, rest), b.sub(end, self));
  return call.result(b.cast(b.add(b.where(isNear, self, end), way), type));
}

static LogicalResult nanToNum(AtenCall &call, NNBuilder &b) {
  Value v = call.tensor("self");
  auto type = dyn_cast<FloatType>(b.element(v));
  if (!type)
    return call.result(v);
  double largest =
      llvm::APFloat::getLargest(type.getFloatSemantics()).convertToDouble();
  auto replacement = [&](StringRef name, double otherwise) {
    return b.scalar(type,
                    call.has(name) ? call.scalar(name) : Scalar::of(otherwise));
  };
  auto equals = [&](double value) {
    return b.compare(ComparePredicate::EQ, v,
                     b.scalar(type, Scalar::of(value)));
  };
  Value isNaN = b.compare(ComparePredicate::NE, v, v);
  Value isHigh = equals(HUGE_VAL), isLow = equals(-HUGE_VAL);
  Value result = b.where(isNaN, replacement("nan", 0), v);
  result = b.where(isHigh, replacement("posinf", largest), result);
  return call.result(b.where(isLow, replacement("neginf", -largest), result));
}

//===----------------------------------------------------------------------===//
// Conversions and copies
//===----------------------------------------------------------------------===//

static LogicalResult convert(AtenCall &call, NNBuilder &b) {
  return call.result(b.cast(call.tensor("self"), call.resultElement()));
}

static LogicalResult detach(AtenCall &call, NNBuilder &b) {
  // The argument of prim::data has another name.
  return call.result(
      b.stopGradient(call.tensor(call.has("self") ? "self" : "a")));
}

/// Only for a tensor that the model computes: whether a parameter is trained
/// can't be changed.
static LogicalResult requiresGrad(AtenCall &call, NNBuilder &b) {
  Value self = call.tensor("self");
  return call.result(call.flag("requires_grad") ? self : b.stopGradient(self));
}

static LogicalResult copy(AtenCall &call, NNBuilder &b) {
  // For numbers, the argument is called other.
  Value source =
      operand(call, b, call.has("src") ? "src" : "other", call.resultElement());
  return call.result(b.broadcast(source, call.resultShape()));
}

/// In-place forms call it self.
static Value inputOf(AtenCall &call) {
  return call.tensor(call.has("input") ? "input" : "self");
}

static LogicalResult dropout(AtenCall &call, NNBuilder &b) {
  Value input = inputOf(call);
  if (!call.flag("train"))
    return call.result(input);
  return call.result(
      nn::DropoutOp::create(b.builder, b.loc, input.getType(), input,
                            b.builder.getF64FloatAttr(call.real("p"))));
}

static LogicalResult otherDropout(AtenCall &call, NNBuilder &b) {
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
  table["bitwise_not"] = {bitwiseNot, "self"};
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
  table["bitwise_and"] = {bitwise<nn::LogicalAndOp>, "self other"};
  table["bitwise_or"] = {bitwise<nn::LogicalOrOp>, "self other"};
  table["bitwise_xor"] = {bitwise<nn::LogicalXorOp>, "self other"};
  table["__and__"] = {bitwise<nn::LogicalAndOp>, "self other"};
  table["__or__"] = {bitwise<nn::LogicalOrOp>, "self other"};
  table["__xor__"] = {bitwise<nn::LogicalXorOp>, "self other"};

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
  table["copy"] = {.run = copy,
                   .reads = "src other",
                   .inType = "self",
                   .noEffect = "non_blocking"};
  table["dropout"] = {dropout, "input self p train"};
  table["alpha_dropout"] = {otherDropout, "input self p train"};
  table["feature_dropout"] = {otherDropout, "input self p train"};
}
