//===- AtenLoss.cpp - losses
//------------------------------------------------===//

#include "AtenCall.h"

using namespace mlir;
using namespace mlir::tp;

/// PyTorch's numbers for `reduction`.
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

static LogicalResult crossEntropy(AtenCall &call, NNBuilder &b) {
  Value target = call.tensor("target");
  if (b.isFloat(target))
    return call.unsupported("with class probabilities, expected class indices");
  return call.result(nn::CrossEntropyOp::create(
      b.builder, b.loc, call.resultType(), call.tensor("self"), target,
      call.tensor("weight"), reductionOf(call),
      b.builder.getI64IntegerAttr(call.integer("ignore_index")),
      b.builder.getF64FloatAttr(call.real("label_smoothing")),
      /*loss_parallel=*/UnitAttr()));
}

static LogicalResult nllLoss(AtenCall &call, NNBuilder &b) {
  return call.result(nn::NLLLossOp::create(
      b.builder, b.loc, call.resultType(), call.tensor("self"),
      call.tensor("target"), call.tensor("weight"), reductionOf(call),
      b.builder.getI64IntegerAttr(call.integer("ignore_index"))));
}

static LogicalResult meanSquaredError(AtenCall &call, NNBuilder &b) {
  Type type = call.resultElement();
  Value difference = b.sub(b.cast(call.tensor("self"), type),
                           b.cast(call.tensor("target"), type));
  Value squares = b.mul(difference, difference);
  switch (reductionOf(call)) {
  case nn::LossReduction::None:
    return call.result(squares);
  case nn::LossReduction::Sum:
    return call.result(b.reduce(nn::ReduceKind::Sum, squares, {}, false));
  case nn::LossReduction::Mean:
    return call.result(b.reduce(nn::ReduceKind::Mean, squares, {}, false));
  }
  return failure();
}

void mlir::tp::addLossOps(AtenTable &table) {
  table["cross_entropy_loss"] = {
      crossEntropy,
      "self target weight reduction ignore_index label_smoothing"};
  table["nll_loss"] = {nllLoss, "self target weight reduction ignore_index"};
  table["nll_loss_nd"] = {nllLoss, "self target weight reduction ignore_index"};
  table["nll_loss2d"] = {nllLoss, "self target weight reduction ignore_index"};
  table["mse_loss"] = {meanSquaredError, "self target reduction"};
}
