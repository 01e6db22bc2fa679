//===- MathEdges.cpp - math functions at the edges of f32 -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "MathEdges.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace {
/// Arithmetic on scalars of f32 and i32.
class ScalarBuilder : public ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  Value real(float value) {
    return arith::ConstantOp::create(*this, getF32FloatAttr(value));
  }
  Value integer(int32_t value) {
    return arith::ConstantOp::create(*this, getI32IntegerAttr(value));
  }
  Value add(Value x, Value y) {
    return arith::AddFOp::create(*this, x, y, kContract);
  }
  Value mul(Value x, Value y) {
    return arith::MulFOp::create(*this, x, y, kContract);
  }
  Value sub(Value x, Value y) { return arith::SubFOp::create(*this, x, y); }
  /// `x`, or `bound` if `x` is beyond it; NaN never is.
  Value limit(Value x, arith::CmpFPredicate beyond, float bound) {
    Value end = real(bound);
    return arith::SelectOp::create(
        *this, arith::CmpFOp::create(*this, beyond, x, end), end, x);
  }
  Value isLess(Value x, Value y) {
    return arith::CmpFOp::create(*this, arith::CmpFPredicate::OLT, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(*this, condition, x, y);
  }
  /// 2^n for -126 <= n <= 127.
  Value power(Value n) {
    Value exponent = arith::AddIOp::create(*this, n, integer(127));
    Value bits = arith::ShLIOp::create(*this, exponent, integer(23));
    return arith::BitcastOp::create(*this, getF32Type(), bits);
  }

private:
  static constexpr auto kContract = arith::FastMathFlags::contract;
};
} // namespace

/// 2^n times a polynomial in x - n ln 2 with Cephes' coefficients, as in the
/// runtime's Exponential.h. The multiplication by 2^n takes two steps; the
/// first is exact, so a denormal result is rounded once.
static Value buildExp(ScalarBuilder &b, Value x) {
  // Beyond these bounds, the result is 0 or infinity.
  x = b.limit(x, arith::CmpFPredicate::OLT, -104.0f);
  x = b.limit(x, arith::CmpFPredicate::OGT, 89.0f);
  // Adding this rounds to an integer, which is then in the low bits.
  Value shift = b.real(12582912.0f);
  Value scaled = arith::MulFOp::create(b, x, b.real(1.44269504f));
  Value shifted = arith::AddFOp::create(b, scaled, shift);
  Value n = b.sub(shifted, shift);
  Value r = b.add(x, b.mul(n, b.real(-0.693359375f)));
  r = b.add(r, b.mul(n, b.real(2.12194440e-4f)));
  Value p = b.real(1.9875691500e-4f);
  for (float coefficient :
       {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f,
        5.0000001201e-1f})
    p = b.add(b.mul(p, r), b.real(coefficient));
  p = b.add(b.add(b.mul(b.mul(r, r), p), r), b.real(1.0f));
  Value bits = arith::BitcastOp::create(b, b.getI32Type(), shifted);
  Value whole = arith::SubIOp::create(b, bits, b.integer(0x4b400000));
  Value half = arith::ShRSIOp::create(b, whole, b.integer(1));
  Value rest = arith::SubIOp::create(b, whole, half);
  return b.mul(b.mul(p, b.power(half)), b.power(rest));
}

/// Scales a denormal number to a normal one, and subtracts the scale's
/// logarithm.
static void surroundLog(ScalarBuilder &b, math::LogOp op) {
  Value x = op.getOperand();
  Value isSmall = b.isLess(x, b.real(0x1p-126f));
  Value scaled = b.select(isSmall, b.mul(x, b.real(0x1p23f)), x);
  op.getOperandMutable().assign(scaled);
  b.setInsertionPointAfter(op);
  Value excess = b.select(isSmall, b.real(15.942385152878742f), b.real(0.0f));
  Value result = b.sub(op.getResult(), excess);
  op.getResult().replaceAllUsesExcept(result, result.getDefiningOp());
}

static void surroundErf(ScalarBuilder &b, math::ErfOp op) {
  b.setInsertionPointAfter(op);
  Value result = math::CopySignOp::create(b, op.getResult(), op.getOperand());
  op.getResult().replaceAllUsesExcept(result, result.getDefiningOp());
}

/// Computes a function of f16 or bf16 in f32 and rounds the result.
static Operation *widen(ScalarBuilder &b, RewriterBase &rewriter,
                        Operation *op) {
  Type type = op->getResult(0).getType();
  if (type.isF32())
    return op;
  Operation *wide = b.clone(*op);
  b.setInsertionPoint(wide);
  wide->setOperand(0,
                   arith::ExtFOp::create(b, b.getF32Type(), op->getOperand(0)));
  wide->getResult(0).setType(b.getF32Type());
  b.setInsertionPointAfter(wide);
  rewriter.replaceOp(op, arith::TruncFOp::create(b, type, wide->getResult(0)));
  b.setInsertionPoint(wide);
  return wide;
}

void tp::expandMathEdges(Operation *root, RewriterBase &rewriter) {
  SmallVector<Operation *> ops;
  root->walk([&](Operation *op) {
    if (!isa<math::ExpOp, math::LogOp, math::ErfOp>(op))
      return;
    Type type = op->getResult(0).getType();
    if (type.isF32() || type.isF16() || type.isBF16())
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    ScalarBuilder b(op->getLoc(), rewriter);
    b.setInsertionPoint(op);
    op = widen(b, rewriter, op);
    rewriter.setInsertionPoint(op);
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](math::ExpOp exp) {
          rewriter.replaceOp(exp, buildExp(b, exp.getOperand()));
        })
        .Case([&](math::LogOp log) { surroundLog(b, log); })
        .Case([&](math::ErfOp erf) { surroundErf(b, erf); });
  }
}
