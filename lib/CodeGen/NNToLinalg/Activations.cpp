//===- Activations.cpp - Activations as scalar code -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/CodeGen/NNToLinalg/Activations.h"
#include "LinalgBuilders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include <numbers>

using namespace mlir;
using namespace mlir::tp;

static Value add(ImplicitLocOpBuilder &b, Value x, Value y) {
  return b.createOrFold<arith::AddFOp>(x, y);
}

static Value mul(ImplicitLocOpBuilder &b, Value x, Value y) {
  return b.createOrFold<arith::MulFOp>(x, y);
}

/// x / 2 * (1 + inner)
static Value emitGelu(ImplicitLocOpBuilder &b, Value x, Value inner) {
  auto constant = [&](double value) {
    return nnlinalg::getScalar(b, x.getType(), value);
  };
  return mul(b, mul(b, x, constant(0.5)), add(b, constant(1), inner));
}

Value tp::emitActivation(ImplicitLocOpBuilder &b, tprt::Activation activation,
                         Value x) {
  auto constant = [&](double value) {
    return nnlinalg::getScalar(b, x.getType(), value);
  };
  switch (activation) {
  case tprt::Activation::Relu:
    return arith::MaximumFOp::create(b, x, constant(0));
  case tprt::Activation::Gelu:
    return emitGelu(
        b, x,
        math::ErfOp::create(b, mul(b, x, constant(std::numbers::sqrt2 / 2))));
  case tprt::Activation::GeluTanh: {
    // tanh(sqrt(2 / pi) * (x + 0.044715 * x³))
    Value cube = mul(b, mul(b, x, x), x);
    Value sum = add(b, x, mul(b, constant(0.044715), cube));
    double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    return emitGelu(b, x,
                    math::TanhOp::create(b, mul(b, constant(scale), sum)));
  }
  case tprt::Activation::Silu: {
    // x / (1 + exp(-x)), which is exact to rounding on both sides.
    Value exp = math::ExpOp::create(b, arith::NegFOp::create(b, x));
    Value one = constant(1);
    return mul(b, x, arith::DivFOp::create(b, one, add(b, one, exp)));
  }
  }
  llvm_unreachable("all activations are handled");
}

/// Whether `value` computes from `x` what `formula` does from `argument`.
static bool isSame(Value value, Value x, Value formula, Value argument,
                   llvm::function_ref<Value(Value)> look) {
  value = look(value);
  if (formula == argument || value == x)
    return formula == argument && value == x;
  Attribute constant, expected;
  if (matchPattern(formula, m_Constant(&expected)))
    return matchPattern(value, m_Constant(&constant)) && constant == expected;
  Operation *op = value.getDefiningOp(), *model = formula.getDefiningOp();
  if (!op || op->getName() != model->getName() ||
      op->getDiscardableAttrDictionary() !=
          model->getDiscardableAttrDictionary() ||
      op->getPropertiesAsAttribute() != model->getPropertiesAsAttribute())
    return false;
  auto operandsMatch = [&](unsigned shift) {
    unsigned count = op->getNumOperands();
    for (unsigned i = 0; i < count; ++i)
      if (!isSame(op->getOperand((i + shift) % count), x, model->getOperand(i),
                  argument, look))
        return false;
    return true;
  };
  return operandsMatch(0) ||
         (op->hasTrait<OpTrait::IsCommutative>() && operandsMatch(1));
}

std::optional<tprt::Activation>
tp::matchActivation(Value value, Value x,
                    llvm::function_ref<Value(Value)> look) {
  Location loc = x.getLoc();
  Type type = nnlinalg::getComputeType(x.getType());
  for (int64_t number = 0; number <= tprt::getMaxEnumValForActivation();
       ++number) {
    std::optional<tprt::Activation> activation =
        tprt::symbolizeActivation(number);
    if (!activation)
      continue;
    Block scratch;
    Value argument = scratch.addArgument(type, loc);
    ImplicitLocOpBuilder b(loc, loc.getContext());
    b.setInsertionPointToEnd(&scratch);
    Value formula = emitActivation(b, *activation, argument);
    if (isSame(value, x, formula, argument, look))
      return activation;
  }
  return std::nullopt;
}
