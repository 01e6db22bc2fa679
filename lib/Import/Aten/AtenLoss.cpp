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
  if (isFloat(target))
    return call.unsupported("with class probabilities, expected class indices");
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

static LogicalResult meanSquaredError(AtenCall &call, ImportBuilder &b) {
  Type type = call.resultElement();
  Value difference = sub(b, b.widen(castTo(b, call.tensor("self"), type)),
                         b.widen(castTo(b, call.tensor("target"), type)));
  Value loss = mul(b, difference, difference);
  nn::LossReduction reduction = reductionOf(call);
  if (reduction != nn::LossReduction::None)
    loss = b.reduce(reduction == nn::LossReduction::Sum ? nn::ReduceKind::Sum
                                                        : nn::ReduceKind::Mean,
                    loss, {}, false);
  return call.result(castTo(b, loss, type));
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
  table["mse_loss"] = {meanSquaredError, "self target reduction"};
}
