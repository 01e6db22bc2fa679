//===- Loss.cpp - gradients of losses, dropout ----------------------------===//
//
// With p = softmax(x) over the classes and t the target, cross-entropy has the
// gradient p - onehot(t) times the target's weight. The forward pass keeps
// log(p), so that the backward pass needs no sum over the classes: split over
// ranks, it takes no communication, as PyTorch's loss_parallel doesn't.
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
/// What both losses have in common: log-probabilities (n, c, d…) or (c), target
/// without c.
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

  /// The weight of each target, 0 where it is ignored; `safe` has a class for
  /// each.
  Value getWeights(Value counted, Value safe, Type element) {
    auto type = typeOf(target).clone(element);
    if (!weight)
      return castTo(b, counted, element);
    auto index = reshape(b, safe, {type.getNumElements()});
    Value picked = IndexSelectOp::create(
        b, RankedTensorType::get({type.getNumElements()}, element),
        castTo(b, weight, element), index, b.getI64IntegerAttr(0));
    return keep(b, counted, reshape(b, picked, type.getShape()));
  }

  /// Builds the loss; saves what the gradient needs: log-probabilities,
  /// weights, and for a mean their sum.
  Value build(ForwardBuilder &f, Value logits, double smoothing, Type result) {
    Type element = elementOf(logits);
    Value counted = getCounted();
    Value safe = select(b, counted, target, constantLike(b, target, 0));
    Value weights = getWeights(counted, safe, element);
    auto indexed = unsqueeze(b, safe, classDim);
    Value picked = GatherOp::create(b, typeOf(indexed).clone(element), logits,
                                    indexed, b.getI64IntegerAttr(classDim));
    picked = reshape(b, picked, typeOf(target).getShape());
    Value losses = mul(b, mul(b, neg(b, picked), weights), 1 - smoothing);
    if (smoothing != 0) {
      Value all = weight ? mul(b, logits, getClassWeights(element)) : logits;
      Value sums = reduce(b, ReduceKind::Sum, all, {classDim}, false);
      Value smooth =
          mul(b, neg(b, sums), smoothing / static_cast<double>(numClasses));
      losses = add(b, losses, keep(b, counted, smooth));
    }
    f.save(logits);
    f.save(weights);
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

  /// The gradient of each target's loss, with a class dimension of size 1.
  Value getPerTarget(GradientBuilder &g, Type element) {
    Value gradient = castTo(b, g.getGradient(), element);
    if (reduction == LossReduction::Mean)
      gradient = div(b, gradient, g.getSaved(2));
    return unsqueeze(b, broadcast(b, gradient, typeOf(target).getShape()),
                     classDim);
  }

  /// Where the class is the target, (n, c, d…).
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

SmallVector<Value> CrossEntropyOp::buildForward(ForwardBuilder &b) {
  ClassLoss loss(b, *this);
  Value x = castTo(b, getInput(), getWideElement(elementOf(getInput())));
  Value logits = LogSoftmaxOp::create(b, x.getType(), x,
                                      b.getI64IntegerAttr(loss.classDim));
  return {loss.build(b, logits, getLabelSmoothing().convertToDouble(),
                     getType().getElementType())};
}

void CrossEntropyOp::buildGradient(GradientBuilder &b) {
  if (!b.wants(0))
    return;
  ClassLoss loss(b, *this);
  Value logits = b.getSaved(0);
  Type element = elementOf(logits);
  Value g = loss.getPerTarget(b, element);
  Value weights = unsqueeze(b, b.getSaved(1), loss.classDim);
  double smoothing = getLabelSmoothing().convertToDouble();
  Value p = expr::exp(b, logits);
  Value scale = mul(b, mul(b, g, weights), 1 - smoothing);
  Value minusTarget = sub(b, p, castTo(b, loss.getIsTarget(), element));
  Value gradient = mul(b, scale, minusTarget);
  if (smoothing != 0) {
    // Of -Σ_c w_c * log(p_c): p * Σ w - w.
    Value rest;
    if (loss.weight) {
      Value w = loss.getClassWeights(element);
      Value sum = reduce(b, ReduceKind::Sum, castTo(b, loss.weight, element),
                         {0}, false);
      rest = sub(b, mul(b, p, sum), w);
    } else {
      rest = add(b, mul(b, p, static_cast<double>(loss.numClasses)), -1.0);
    }
    Value counted = unsqueeze(b, loss.getCounted(), loss.classDim);
    Value smooth =
        keep(b, counted,
             mul(b, g, smoothing / static_cast<double>(loss.numClasses)));
    gradient = add(b, gradient, mul(b, smooth, rest));
  }
  b.setGradient(0, castTo(b, gradient, elementOf(getInput())));
}

SmallVector<Value> NLLLossOp::buildForward(ForwardBuilder &b) {
  ClassLoss loss(b, *this);
  Value x = castTo(b, getInput(), getWideElement(elementOf(getInput())));
  return {loss.build(b, x, 0, getType().getElementType())};
}

void NLLLossOp::buildGradient(GradientBuilder &b) {
  if (!b.wants(0))
    return;
  ClassLoss loss(b, *this);
  Value g = loss.getPerTarget(b, elementOf(b.getSaved(0)));
  Value scale = mul(b, g, unsqueeze(b, b.getSaved(1), loss.classDim));
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
    Value part = IotaOp::create(b, RankedTensorType::get(along, b.getI64Type()),
                                b.getI64IntegerAttr(dim), b.getF64FloatAttr(0),
                                b.getF64FloatAttr(static_cast<double>(stride)));
    index = index ? add(b, index, part) : part;
    stride *= shape[dim];
  }
  if (!index)
    index = filled(b, RankedTensorType::get({}, b.getI64Type()), 0);
  Value random = RandomUniformOp::create(
      b, RankedTensorType::get(shape, b.getF32Type()), b.getStep(), index,
      b.getI64IntegerAttr(b.getSeed()), b.getI64IntegerAttr(b.getNextStream()));
  Value isKept = compare(b, ComparePredicate::GE, random, p);
  b.save(isKept);
  // With p = 1 nothing is kept, and nothing divided by 0.
  double scale = p < 1 ? 1 / (1 - p) : 0;
  return {keep(b, isKept, mul(b, getInput(), scale))};
}

void DropoutOp::buildGradient(GradientBuilder &b) {
  double p = getP().convertToDouble();
  Value g = mul(b, b.getGradient(), p < 1 ? 1 / (1 - p) : 0);
  b.setGradient(0, keep(b, b.getSaved(0), g));
}
