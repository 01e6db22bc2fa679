//===- LossGradients.cpp - Gradients of losses, dropout -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With p = softmax(x) over the classes and t the target, cross-entropy has the
// gradient p - onehot(t) times the target's weight. The forward pass saves the
// values from which p follows element by element, so the backward pass needs no
// sum over the classes. If the classes are split over ranks, it takes no
// communication, like PyTorch's loss_parallel.
//
//===----------------------------------------------------------------------===//

#include "tp/Dialect/NN/Expressions.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::expr;
using tp::ForwardBuilder;
using tp::GradientBuilder;

namespace {
/// The common part of both losses. The input is (n, c, d…) or (c), the target
/// the same without c.
class ClassLoss {
public:
  template <typename OpT>
  ClassLoss(ImplicitLocOpBuilder &b, OpT op)
      : b(b), target(op.getTarget()), weight(op.getWeight()),
        reduction(op.getReduction()), ignored(op.getIgnoreIndex()),
        classDim(op.getInput().getType().getRank() == 1 ? 0 : 1),
        numClasses(op.getInput().getType().getDimSize(classDim)) {}

  /// Which targets count, (n, d…).
  Value getCounted() {
    return compare(b, ComparePredicate::NE, target,
                   static_cast<double>(ignored));
  }

  /// The weight of each target, 0 if it is ignored; `safe` has a valid class
  /// for each target.
  Value getWeights(Value counted, Value safe, Type element) {
    auto type = typeOf(target).clone(element);
    if (!weight)
      return castTo(b, counted, element);
    auto index = reshape(b, safe, {type.getNumElements()});
    Value picked =
        IndexSelectOp::create(b, castTo(b, weight, element), index, /*dim=*/0);
    return keep(b, counted, reshape(b, picked, type.getShape()));
  }

  /// The element of `values`, (n, c, d…), at each target, (n, 1, d…); the
  /// element of any class if the target is ignored.
  Value pick(Value values, Value safe) {
    auto indexed = unsqueeze(b, safe, classDim);
    return GatherOp::create(b, values, indexed, classDim);
  }
  /// `value`, (n, 1, d…), as (n, d…).
  Value dropClasses(Value value) {
    return reshape(b, value, typeOf(target).getShape());
  }

  /// Targets, with any class for those that are ignored.
  Value getSafe(Value counted) {
    return select(b, counted, target, constantLike(b, target, 0));
  }

  /// Reduces the `losses` of the targets, whose weights are `weights`; for a
  /// mean, saves the weights' sum.
  Value combine(ForwardBuilder &f, Value losses, Value weights, Type result) {
    auto dims =
        llvm::to_vector(llvm::seq<int64_t>(0, typeOf(losses).getRank()));
    if (reduction != LossReduction::None)
      losses = reduce(b, ReduceKind::Sum, losses, dims, false);
    if (reduction == LossReduction::Mean) {
      Value total = reduce(b, ReduceKind::Sum, weights, dims, false);
      f.save(total);
      losses = div(b, losses, total);
    }
    return castTo(b, losses, result);
  }

  /// The gradient of each target's loss, with a class dimension of size 1; for
  /// a mean, `total` is the weights' sum. Ignored targets get 0, even if all
  /// are ignored and the mean is NaN.
  Value getPerTarget(GradientBuilder &g, Type element, unsigned total) {
    Value gradient = castTo(b, g.getGradient(), element);
    if (reduction == LossReduction::Mean)
      gradient = div(b, gradient, g.getSaved(total));
    gradient = broadcast(b, gradient, typeOf(target).getShape());
    return unsqueeze(b, keep(b, getCounted(), gradient), classDim);
  }

  /// A mask of where the class is the target, (n, c, d…).
  Value getIsTarget() {
    SmallVector<int64_t> shape(typeOf(target).getRank() + 1, 1);
    shape[classDim] = numClasses;
    return compare(b, ComparePredicate::EQ, unsqueeze(b, target, classDim),
                   iota(b, shape, classDim, elementOf(target)));
  }

  /// `weight` as (c, 1…), to multiply (n, c, d…).
  Value getClassWeights(Type element) {
    SmallVector<int64_t> shape(typeOf(target).getRank() + 1 - classDim, 1);
    shape[0] = numClasses;
    return reshape(b, castTo(b, weight, element), shape);
  }

  ImplicitLocOpBuilder &b;
  Value target, weight;
  LossReduction reduction;
  int64_t ignored, classDim, numClasses;
};
} // namespace

/// With m the maximum of the logits and s the sum of exp(x - m), the loss is
/// log(s) - (x[t] - m).
SmallVector<Value> CrossEntropyOp::buildForward(ForwardBuilder &b) {
  ClassLoss loss(b, *this);
  Value x = castTo(b, getInput(), getWideElement(elementOf(getInput())));
  Type element = elementOf(x);
  Value counted = loss.getCounted(), safe = loss.getSafe(counted);
  Value weights = loss.getWeights(counted, safe, element);
  Value maximum, sum, picked;
  if (getLossParallel()) {
    auto sums = ClassSumsOp::create(b, x, safe);
    maximum = sums.getMaximum(), sum = sums.getSum(), picked = sums.getPicked();
  } else {
    maximum = reduce(b, ReduceKind::Max, x, {loss.classDim}, /*keepdim=*/true);
    sum = reduce(b, ReduceKind::Sum, expr::exp(b, sub(b, x, maximum)),
                 {loss.classDim}, /*keepdim=*/true);
    picked = sub(b, loss.pick(x, safe), maximum);
  }
  Value logSum = unary<LogOp>(b, sum);

  Value logSums = loss.dropClasses(logSum);
  double smoothing = getLabelSmoothing().convertToDouble();
  Value losses =
      mul(b, mul(b, sub(b, logSums, loss.dropClasses(picked)), weights),
          1 - smoothing);
  if (smoothing != 0) {
    // -Σ_c w_c * log(p_c) = log(s) * Σ w - Σ_c w_c * (x_c - m).
    Value total, all = sub(b, x, maximum);
    auto count = static_cast<double>(loss.numClasses);
    if (loss.weight) {
      all = mul(b, all, loss.getClassWeights(element));
      total = reduce(b, ReduceKind::Sum, castTo(b, loss.weight, element), {0},
                     /*keepdim=*/false);
    } else {
      total = constant(b, element, count);
    }
    Value sums = reduce(b, ReduceKind::Sum, all, {loss.classDim},
                        /*keepdim=*/false);
    Value smooth = sub(b, mul(b, logSums, total), sums);
    losses = add(b, losses, mul(b, smooth, smoothing / count));
  }
  losses = keep(b, counted, losses);
  b.save(x);
  b.save(maximum);
  b.save(logSum);
  b.save(weights);
  return {loss.combine(b, losses, weights, getType().getElementType())};
}

void CrossEntropyOp::buildGradient(GradientBuilder &b) {
  if (!b.wants(0))
    return;
  ClassLoss loss(b, *this);
  Value x = b.getSaved(0), maximum = b.getSaved(1), logSum = b.getSaved(2);
  Type element = elementOf(x);
  Value g = loss.getPerTarget(b, element, /*total=*/4);
  Value weights = unsqueeze(b, b.getSaved(3), loss.classDim);
  double smoothing = getLabelSmoothing().convertToDouble();
  Value p = expr::exp(b, sub(b, sub(b, x, maximum), logSum));
  Value scale = mul(b, mul(b, g, weights), 1 - smoothing);
  Value minusTarget = sub(b, p, castTo(b, loss.getIsTarget(), element));
  Value gradient = mul(b, scale, minusTarget);
  if (smoothing != 0) {
    // The gradient of -Σ_c w_c * log(p_c): p * Σ w - w.
    Value rest;
    if (loss.weight) {
      Value w = loss.getClassWeights(element);
      Value sum = reduce(b, ReduceKind::Sum, castTo(b, loss.weight, element),
                         {0}, false);
      rest = sub(b, mul(b, p, sum), w);
    } else {
      rest = add(b, mul(b, p, static_cast<double>(loss.numClasses)), -1.0);
    }
    Value smooth = mul(b, g, smoothing / static_cast<double>(loss.numClasses));
    gradient = add(b, gradient, mul(b, smooth, rest));
  }
  b.setGradient(0, castTo(b, gradient, elementOf(getInput())));
}

SmallVector<Value> NLLLossOp::buildForward(ForwardBuilder &b) {
  ClassLoss loss(b, *this);
  Value x = castTo(b, getInput(), getWideElement(elementOf(getInput())));
  Value counted = loss.getCounted(), safe = loss.getSafe(counted);
  Value weights = loss.getWeights(counted, safe, elementOf(x));
  Value losses =
      keep(b, counted,
           mul(b, neg(b, loss.dropClasses(loss.pick(x, safe))), weights));
  b.save(weights);
  return {loss.combine(b, losses, weights, getType().getElementType())};
}

void NLLLossOp::buildGradient(GradientBuilder &b) {
  if (!b.wants(0))
    return;
  ClassLoss loss(b, *this);
  Value weights = b.getSaved(0);
  Value g = loss.getPerTarget(b, elementOf(weights), /*total=*/1);
  Value scale = mul(b, g, unsqueeze(b, weights, loss.classDim));
  Value gradient = keep(b, loss.getIsTarget(), neg(b, scale));
  b.setGradient(0, castTo(b, gradient, elementOf(getInput())));
}

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

/// The mask is a function of step, stream and each element's global index.
SmallVector<Value> DropoutOp::buildForward(ForwardBuilder &b) {
  ArrayRef<int64_t> shape = getType().getShape();
  double p = getP().convertToDouble();
  int64_t rank = shape.size(), stride = 1;
  Value index;
  for (int64_t dim = rank - 1; dim >= 0; --dim) {
    SmallVector<int64_t> along(rank, 1);
    along[dim] = shape[dim];
    Value part = iota(b, along, dim, b.getI64Type(), /*start=*/0,
                      static_cast<double>(stride));
    index = index ? add(b, index, part) : part;
    stride *= shape[dim];
  }
  if (!index)
    index = filled(b, RankedTensorType::get({}, b.getI64Type()), 0);
  Value stream = integer(b, b.getI64Type(), b.getNextStream());
  Value random =
      RandomUniformOp::create(b, b.getStep(), index, stream, b.getSeed());
  Value isKept = compare(b, ComparePredicate::GE, random, p);
  b.save(isKept);
  // With p = 1, nothing is kept; this avoids a division by 0.
  double scale = p < 1 ? 1 / (1 - p) : 0;
  return {keep(b, isKept, mul(b, getInput(), scale))};
}

void DropoutOp::buildGradient(GradientBuilder &b) {
  double p = getP().convertToDouble();
  Value g = mul(b, b.getGradient(), p < 1 ? 1 / (1 - p) : 0);
  b.setGradient(0, keep(b, b.getSaved(0), g));
}
