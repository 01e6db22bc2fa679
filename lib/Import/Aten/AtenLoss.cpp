//===- AtenLoss.cpp - losses ----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AtenCall.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;

/// The reduction for PyTorch's number in `reduction`.
static nn::LossReduction reductionOf(AtenCall &call) {
  switch (call.integer("reduction")) {
  case 0:
    return nn::LossReduction::None;
  case 2:
    return nn::LossReduction::Sum;
  default:
    return nn::LossReduction::Mean;
  }
}

/// The operands of a loss over classes. A sum may be reduced over ranks, so sums
/// of small floats are computed in f32.
struct ClassLoss {
  ClassLoss(AtenCall &call, ImportBuilder &b)
      : input(call.tensor("self")), weight(call.tensor("weight")),
        reduction(reductionOf(call)) {
    if (reduction != nn::LossReduction::Sum)
      return;
    input = b.widen(input);
    weight = weight ? b.widen(weight) : weight;
  }

  Value input, weight;
  nn::LossReduction reduction;
};

static LogicalResult crossEntropy(AtenCall &call, ImportBuilder &b) {
  Value target = call.tensor("target");
  if (isFloat(target)) // class probabilities
    return call.decompose();
  ClassLoss loss(call, b);
  Value result = nn::CrossEntropyOp::create(
      b, loss.input, target, loss.weight, loss.reduction,
      b.getI64IntegerAttr(call.integer("ignore_index")),
      b.getF64FloatAttr(call.real("label_smoothing")),
      /*loss_parallel=*/UnitAttr());
  return call.result(castTo(b, result, call.resultElement()));
}

static LogicalResult nllLoss(AtenCall &call, ImportBuilder &b) {
  ClassLoss loss(call, b);
  Value result = nn::NLLLossOp::create(
      b, loss.input, call.tensor("target"), loss.weight, loss.reduction,
      b.getI64IntegerAttr(call.integer("ignore_index")));
  return call.result(castTo(b, result, call.resultElement()));
}

/// `losses` reduced as the op's argument says, in the result's type.
static LogicalResult reduceLosses(AtenCall &call, ImportBuilder &b,
                                  Value losses) {
  nn::LossReduction reduction = reductionOf(call);
  if (reduction != nn::LossReduction::None)
    losses =
        b.reduce(reduction == nn::LossReduction::Sum ? nn::ReduceKind::Sum
                                                     : nn::ReduceKind::Mean,
                 losses, {}, false);
  return call.result(castTo(b, losses, call.resultElement()));
}

/// A loss of each input and its target, computed in at least 32 bits.
static LogicalResult
elementLoss(AtenCall &call, ImportBuilder &b,
            llvm::function_ref<Value(Value input, Value target)> f) {
  Type type = call.resultElement();
  Value input = b.widen(castTo(b, call.tensor("self"), type));
  Value target = b.widen(castTo(b, call.tensor("target"), type));
  return reduceLosses(call, b, f(input, target));
}

static LogicalResult meanSquaredError(AtenCall &call, ImportBuilder &b) {
  return elementLoss(call, b, [&](Value input, Value target) {
    Value difference = sub(b, input, target);
    return mul(b, difference, difference);
  });
}

/// square * d² for |d| < limit, and slope * (|d| - limit / 2) beyond, for the
/// difference d.
static LogicalResult smoothError(AtenCall &call, ImportBuilder &b, double limit,
                                 double square, double slope) {
  return elementLoss(call, b, [&](Value input, Value target) {
    Value size = unary<nn::AbsOp>(b, sub(b, input, target));
    Value line = mul(b, add(b, size, -limit / 2), slope);
    if (limit == 0)
      return line;
    Value isNear = compare(b, nn::ComparePredicate::LT, size, limit);
    // An infinite number in the square would make the gradient NaN.
    Value small = keep(b, isNear, size);
    return select(b, isNear, mul(b, mul(b, small, small), square), line);
  });
}

static LogicalResult smoothL1(AtenCall &call, ImportBuilder &b) {
  double beta = call.real("beta");
  return smoothError(call, b, beta, 0.5 / beta, 1);
}

static LogicalResult huber(AtenCall &call, ImportBuilder &b) {
  double delta = call.real("delta");
  return smoothError(call, b, delta, 0.5, delta);
}

/// -(t log(x) + (1 - t) log(1 - x)), with logarithms of at least -100. The
/// derivative by x is PyTorch's: (x - t) / max(x (1 - x), 1e-12).
static LogicalResult binaryCrossEntropy(AtenCall &call, ImportBuilder &b) {
  return elementLoss(call, b, [&](Value input, Value target) {
    Value x = b.stopGradient(input), rest = subFrom(b, 1, x);
    auto logarithm = [&](Value x) {
      return binary<nn::MaximumOp>(b, unary<nn::LogOp>(b, x),
                                   constantLike(b, x, -100));
    };
    Value loss = neg(b, add(b, mul(b, target, logarithm(x)),
                            mul(b, subFrom(b, 1, target), logarithm(rest))));
    Value divisor =
        binary<nn::MaximumOp>(b, mul(b, x, rest), constantLike(b, x, 1e-12));
    Value slope = div(b, sub(b, x, b.stopGradient(target)), divisor);
    // This is 0, and only has a derivative.
    loss = add(b, loss, mul(b, slope, sub(b, input, x)));
    if (call.has("weight"))
      loss = mul(b, loss, castTo(b, call.tensor("weight"), elementOf(loss)));
    return loss;
  });
}

/// log(1 + exp(-t x)), computed without overflow.
static LogicalResult softMargin(AtenCall &call, ImportBuilder &b) {
  return elementLoss(call, b, [&](Value input, Value target) {
    Value x = neg(b, mul(b, input, target));
    Value tail = unary<nn::Log1pOp>(b, exp(b, neg(b, unary<nn::AbsOp>(b, x))));
    // At 0 the maximum, unlike relu, has the derivative of the whole.
    return add(b, binary<nn::MaximumOp>(b, x, constantLike(b, x, 0)), tail);
  });
}

/// The mean over the classes i ≠ t of max(0, margin - x[t] + x[i])^p, times the
/// weight of class t.
static LogicalResult multiMargin(AtenCall &call, ImportBuilder &b) {
  Value self = b.widen(call.tensor("self")), target = call.tensor("target");
  int64_t rank = rankOf(self), count = shapeOf(self).back();
  auto rows = llvm::to_vector(shapeOf(self));
  rows.back() = 1;
  Value index = b.reshape(target, rows);
  Value picked = nn::GatherOp::create(b, self, index, rank - 1);
  Value loss =
      unary<nn::ReluOp>(b, add(b, sub(b, self, picked), call.real("margin")));
  if (call.real("p") == 2)
    loss = mul(b, loss, loss);
  Value classes = iota(b, {count}, 0, elementOf(index));
  Value isOther = compare(b, nn::ComparePredicate::NE, classes, index);
  loss = b.reduce(nn::ReduceKind::Sum, keep(b, isOther, loss), {rank - 1},
                  /*keepdim=*/false);
  loss = mul(b, loss, 1.0 / double(count));
  if (call.has("weight")) {
    Value weight = castTo(b, call.tensor("weight"), elementOf(loss));
    Value flat = b.reshape(target, {typeOf(target).getNumElements()});
    loss = mul(b, loss,
               b.reshape(nn::IndexSelectOp::create(b, weight, flat, 0),
                         shapeOf(loss)));
  }
  return reduceLosses(call, b, loss);
}

void mlir::tp::addLossOps(AtenTable &table) {
  table["cross_entropy_loss"] = {
      crossEntropy,
      "self target weight reduction ignore_index label_smoothing"};
  table["nll_loss"] = {nllLoss, "self target weight reduction ignore_index"};
  table["nll_loss_forward"] = {nllLoss,
                               "self target weight reduction ignore_index"};
  table["nll_loss_nd"] = {nllLoss, "self target weight reduction ignore_index"};
  table["nll_loss2d"] = {nllLoss, "self target weight reduction ignore_index"};
  table["smooth_l1_loss"] = {smoothL1, "self target reduction beta"};
  table["huber_loss"] = {huber, "self target reduction delta"};
  table["binary_cross_entropy"] = {binaryCrossEntropy,
                                   "self target weight reduction"};
  table["soft_margin_loss"] = {softMargin, "self target reduction"};
  table["multi_margin_loss"] = {multiMargin,
                                "self target p margin weight reduction"};
  table["mse_loss"] = {meanSquaredError, "self target reduction"};
}
