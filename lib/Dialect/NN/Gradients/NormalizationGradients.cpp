//===- NormalizationGradients.cpp - Gradients of norms, softmax -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Norms compute in f32 at least, as their forward pass does.
//
//===----------------------------------------------------------------------===//

#include "tp/Dialect/NN/Expressions.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::expr;
using tp::GradientBuilder;

/// With x̂ the normalized input: dx = rstd * (gw - mean(gw) - x̂ * mean(gw *
/// x̂)), where gw = g * weight. Only a `centered` norm has the term mean(gw).
template <typename OpT>
static void buildNorm(OpT op, GradientBuilder &b, Value bias, bool centered) {
  auto type = op.getType();
  Type element = type.getElementType(), wide = getWideElement(element);
  int64_t rank = type.getRank();
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(
      rank - static_cast<int64_t>(op.getNormalized()), rank));
  auto mean = [&](Value value) {
    return reduce(b, ReduceKind::Mean, value, dims, /*keepdim=*/true);
  };
  // Rounds before the sum, so that a rank's part of the sum has the operand's
  // type and is reduced together with the gradients of other parameters.
  auto set = [&](Value operand, unsigned index, Value gradient) {
    b.setGradient(index, sumTo(b, castTo(b, gradient, elementOf(operand)),
                               typeOf(operand)));
  };
  Value weight = op.getWeight();
  unsigned weightIndex = 1, biasIndex = weight ? 2 : 1;
  Value g = castTo(b, b.getGradient(), wide);
  if (bias && b.wants(biasIndex))
    set(bias, biasIndex, b.getGradient());
  if (!b.wants(0) && !(weight && b.wants(weightIndex)))
    return;

  Value x = castTo(b, op.getInput(), wide);
  if (centered)
    x = sub(b, x, mean(x));
  Value rstd = unary<RsqrtOp>(
      b, add(b, mean(mul(b, x, x)), op.getEps().convertToDouble()));
  Value normal = mul(b, x, rstd);
  if (weight && b.wants(weightIndex))
    set(weight, weightIndex, mul(b, g, normal));
  if (!b.wants(0))
    return;
  Value gw = weight ? mul(b, g, castTo(b, weight, wide)) : g;
  Value along = mul(b, normal, mean(mul(b, gw, normal)));
  Value rest = centered ? sub(b, gw, mean(gw)) : gw;
  set(op.getInput(), 0, mul(b, rstd, sub(b, rest, along)));
}

void LayerNormOp::buildGradient(GradientBuilder &b) {
  buildNorm(*this, b, getBias(), /*centered=*/true);
}

void RMSNormOp::buildGradient(GradientBuilder &b) {
  buildNorm(*this, b, Value(), /*centered=*/false);
}

void SoftmaxOp::buildGradient(GradientBuilder &b) {
  Value g = b.getGradient(), y = b.getResult();
  Value sum = reduce(b, ReduceKind::Sum, mul(b, g, y),
                     {static_cast<int64_t>(getDim())}, /*keepdim=*/true);
  b.setGradient(0, mul(b, y, sub(b, g, sum)));
}

void LogSoftmaxOp::buildGradient(GradientBuilder &b) {
  Value g = b.getGradient();
  Value sum = reduce(b, ReduceKind::Sum, g, {static_cast<int64_t>(getDim())},
                     /*keepdim=*/true);
  b.setGradient(0, sub(b, g, mul(b, expr::exp(b, b.getResult()), sum)));
}

void ReduceOp::buildGradient(GradientBuilder &b) {
  Value x = getInput();
  ArrayRef<int64_t> shape = typeOf(x).getShape();
  SmallVector<int64_t> kept(shape);
  int64_t count = 1;
  for (int64_t dim : getDims()) {
    count *= shape[dim];
    kept[dim] = 1;
  }
  Value g = reshape(b, b.getGradient(), kept);
  Value y = reshape(b, b.getResult(), kept);
  auto sum = [&](Value value) {
    return reduce(b, ReduceKind::Sum, value, getDims(), /*keepdim=*/true);
  };
  switch (getKind()) {
  case ReduceKind::Sum:
    return b.setGradient(0, broadcast(b, g, shape));
  case ReduceKind::Mean:
    return b.setGradient(
        0, broadcast(b, mul(b, g, 1.0 / static_cast<double>(count)), shape));
  case ReduceKind::Max:
  case ReduceKind::Min: {
    // Equal extrema share the gradient, as in PyTorch's amax.
    Value isExtremum =
        castTo(b, compare(b, ComparePredicate::EQ, x, y), elementOf(x));
    return b.setGradient(0, mul(b, isExtremum, div(b, g, sum(isExtremum))));
  }
  case ReduceKind::Product: {
    // The gradient is the product of the other elements. With one zero, only
    // the zero's own product isn't 0.
    Value isZero = compare(b, ComparePredicate::EQ, x, 0.0);
    Value one = constantLike(b, x, 1);
    Value others = select(b, isZero, one, x);
    Value product = reduce(b, ReduceKind::Product, others, getDims(), true);
    Value zeros = sum(castTo(b, isZero, elementOf(x)));
    Value ofZero =
        keep(b, compare(b, ComparePredicate::EQ, zeros, 1.0), product);
    Value ofOther =
        div(b, keep(b, compare(b, ComparePredicate::EQ, zeros, 0.0), product),
            others);
    return b.setGradient(0, mul(b, g, select(b, isZero, ofZero, ofOther)));
  }
  }
}
