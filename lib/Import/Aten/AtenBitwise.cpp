//===- AtenBitwise.cpp - bits of integers ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The nn dialect has no ops on bits. They are arithmetic: a bit, or with a
// constant a run of bits, is the remainder of a quotient by powers of 2, and a
// shift is a product or a quotient.
//
//===----------------------------------------------------------------------===//

#include "AtenCall.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;
using nn::ComparePredicate;

static Value powerOf2(ImportBuilder &b, Type type, unsigned exponent) {
  return b.scalar(type, Scalar::of(int64_t(uint64_t(1) << exponent)));
}

/// x & bits: the sum of the runs of ones in `bits`. The highest bit, which is
/// the sign, is left out with its complement.
static Value keepBits(ImportBuilder &b, Value x, int64_t bits) {
  Type type = elementOf(x);
  bits = llvm::SignExtend64(bits, type.getIntOrFloatBitWidth());
  if (bits < 0)
    return bits == -1 ? x : sub(b, x, keepBits(b, x, ~bits));
  Value sum = b.scalar(type, Scalar::of(int64_t(0)));
  for (unsigned first = 0; uint64_t(bits) >> first;) {
    if (!(bits >> first & 1)) {
      ++first;
      continue;
    }
    unsigned end = first;
    while (bits >> end & 1)
      ++end;
    // (x >> first) mod 2^(end - first), moved back.
    Value run = x;
    if (first != 0)
      run = binary<nn::FloorDivOp>(b, run, powerOf2(b, type, first));
    if (end - first + 1 < type.getIntOrFloatBitWidth())
      run = binary<nn::RemainderOp>(b, run, powerOf2(b, type, end - first));
    else // all bits but the sign
      run = select(b, compare(b, ComparePredicate::LT, run, 0.0),
                   add(b, add(b, run, b.scalar(type, Scalar::of(bits))),
                       b.scalar(type, Scalar::of(int64_t(1)))),
                   run);
    if (first != 0)
      run = mul(b, run, powerOf2(b, type, first));
    sum = add(b, sum, run);
    first = end;
  }
  return sum;
}

/// x & y: the sum of the bits that are products of both. The highest bit is the
/// sign.
static Value keepCommonBits(ImportBuilder &b, Value x, Value y) {
  Type type = elementOf(x);
  unsigned sign = type.getIntOrFloatBitWidth() - 1;
  auto isNegative = [&](Value v) {
    return compare(b, ComparePredicate::LT, v, 0.0);
  };
  auto getBit = [&](Value v, unsigned bit) {
    Value rest = binary<nn::FloorDivOp>(b, v, powerOf2(b, type, bit));
    return binary<nn::RemainderOp>(b, rest, powerOf2(b, type, 1));
  };
  Value sum = keep(b, binary<nn::LogicalAndOp>(b, isNegative(x), isNegative(y)),
                   powerOf2(b, type, sign));
  for (unsigned bit = 0; bit < sign; ++bit) {
    Value both = mul(b, getBit(x, bit), getBit(y, bit));
    sum = add(b, sum, mul(b, both, powerOf2(b, type, bit)));
  }
  return sum;
}

static Value bitwiseNot(ImportBuilder &b, Value x) {
  return sub(b, b.scalar(elementOf(x), Scalar::of(int64_t(-1))), x);
}

static LogicalResult bitwiseNot(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  if (isBool(self))
    return call.result(unary<nn::LogicalNotOp>(b, self));
  return call.result(bitwiseNot(b, self));
}

/// An op on bits: `onBools` for booleans. For integers, `combine` makes it of
/// x, y, and x & y.
template <typename OnBools>
static LogicalResult
bitwise(AtenCall &call, ImportBuilder &b,
        llvm::function_ref<Value(Value x, Value y, Value both)> combine) {
  Type type = call.resultElement();
  Value self = operand(call, b, "self", type),
        other = operand(call, b, "other", type);
  if (type.isInteger(1))
    return call.result(binary<OnBools>(b, self, other));
  if (call.isNumber("other"))
    return call.result(
        combine(self, other, keepBits(b, self, call.integer("other"))));
  if (call.isNumber("self"))
    return call.result(
        combine(self, other, keepBits(b, other, call.integer("self"))));
  return call.result(combine(self, other, keepCommonBits(b, self, other)));
}

static LogicalResult bitwiseAnd(AtenCall &call, ImportBuilder &b) {
  return bitwise<nn::LogicalAndOp>(
      call, b, [](Value, Value, Value both) { return both; });
}

static LogicalResult bitwiseOr(AtenCall &call, ImportBuilder &b) {
  return bitwise<nn::LogicalOrOp>(call, b, [&](Value x, Value y, Value both) {
    return sub(b, add(b, x, y), both);
  });
}

static LogicalResult bitwiseXor(AtenCall &call, ImportBuilder &b) {
  return bitwise<nn::LogicalXorOp>(call, b, [&](Value x, Value y, Value both) {
    return sub(b, sub(b, add(b, x, y), both), both);
  });
}

/// x * 2^n or floor(x / 2^n). From the number of bits on nothing is left but,
/// on the right, the sign.
template <bool isLeft>
static LogicalResult shift(AtenCall &call, ImportBuilder &b) {
  Type type = call.resultElement();
  if (!isa<IntegerType>(type) || type.isInteger(1))
    return call.unsupported("of floats or booleans, expected integers");
  Value x = operand(call, b, "self", type);
  Value count = operand(call, b, "other", type);
  auto number = [&](int64_t value) {
    return b.scalar(type, Scalar::of(value));
  };
  int64_t width = type.getIntOrFloatBitWidth();
  // 2^(width - 1) is the sign's bit alone, which doesn't divide.
  int64_t most = isLeft ? width - 1 : width - 2;
  Value isInside = binary<nn::LogicalAndOp>(
      b, compare(b, ComparePredicate::GE, count, number(0)),
      compare(b, ComparePredicate::LE, count, number(most)));
  Value factor =
      binary<nn::PowOp>(b, number(2), select(b, isInside, count, number(0)));
  if (isLeft)
    return call.result(select(b, isInside, mul(b, x, factor), number(0)));
  Value sign = select(b, compare(b, ComparePredicate::LT, x, number(0)),
                      number(-1), number(0));
  return call.result(
      select(b, isInside, binary<nn::FloorDivOp>(b, x, factor), sign));
}

void mlir::tp::addBitwiseOps(AtenTable &table) {
  for (StringRef name : {"bitwise_and", "__and__"})
    table[name] = {bitwiseAnd, "self other"};
  for (StringRef name : {"bitwise_or", "__or__"})
    table[name] = {bitwiseOr, "self other"};
  for (StringRef name : {"bitwise_xor", "__xor__"})
    table[name] = {bitwiseXor, "self other"};
  for (StringRef name : {"bitwise_left_shift", "__lshift__"})
    table[name] = {shift<true>, "self other"};
  for (StringRef name : {"bitwise_right_shift", "__rshift__"})
    table[name] = {shift<false>, "self other"};
  table["bitwise_not"] = {bitwiseNot, "self"};
}
