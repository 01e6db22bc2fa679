//===- Optimizer.cpp - The update of a training step ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TrainingStep.h"
#include "tp/Dialect/NN/Expressions.h"
#include <numbers>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;

namespace {

class UpdateBuilder {
public:
  UpdateBuilder(ImplicitLocOpBuilder &b, const TrainingConfig &config,
                Value step)
      : b(b), config(config), optimizer(*config.optimizer), step(step),
        f64(b.getF64Type()), time(castTo(b, step, f64)) {}

  StepMetrics build(ArrayRef<TrainedParameter> parameters) {
    StepMetrics metrics;
    Value lr = getRate();
    metrics.lr = castTo(b, lr, b.getF32Type());
    Value scale;
    if (config.clipNorm) {
      metrics.gradNorm = getNorm(parameters);
      scale = getScale(metrics.gradNorm);
    }
    for (TrainedParameter parameter : parameters) {
      Location old = b.getLoc();
      b.setLoc(parameter.op.getLoc());
      Operation *last = getLast();
      if (scale)
        parameter.gradient =
            mul(b, parameter.gradient,
                castTo(b, scale, elementOf(parameter.gradient)));
      update(parameter, lr);
      nameOps(last, parameter);
      b.setLoc(old);
    }
    assign(kStepName, add(b, step, 1.0), 0.0);
    return metrics;
  }

private:
  /// The op behind which the next op is built.
  Operation *getLast() {
    auto next = b.getInsertionPoint();
    return next == b.getInsertionBlock()->begin() ? nullptr : &*std::prev(next);
  }

  /// Ops that were built behind `last` for a parameter, and have its shape, get
  /// its FQN, and so do the reductions of its gradient that they need.
  void nameOps(Operation *last, const TrainedParameter &parameter) {
    nn::ParameterOp op = parameter.op;
    Block::iterator made = last ? std::next(Block::iterator(last))
                                : b.getInsertionBlock()->begin();
    for (; made != b.getInsertionPoint(); ++made)
      if (made->getNumOperands() && made->getNumResults() &&
          typeOf(made->getResult(0)).getShape() == op.getType().getShape())
        made->setAttr(kFqnAttr, op.getFqnAttr());
  }

  Value scalar(double value) { return constant(b, f64, value); }

  /// The learning rate of the step, as f64.
  Value getRate() {
    const ScheduleConfig &schedule = config.schedule;
    Value rate = scalar(optimizer.lr);
    auto warmup = static_cast<double>(schedule.warmupSteps);
    if (schedule.kind == ScheduleConfig::Cosine) {
      double length = static_cast<double>(schedule.totalSteps) - warmup;
      // After the last step it stays at the minimum.
      Value progress = nn::MinimumOp::create(
          b, mul(b, add(b, time, -warmup), 1 / length), scalar(1));
      Value cosine = unary<nn::CosOp>(b, mul(b, progress, std::numbers::pi));
      Value share = mul(b, add(b, cosine, 1.0), 0.5);
      rate =
          add(b, mul(b, share, optimizer.lr - schedule.minLr), schedule.minLr);
    }
    if (schedule.warmupSteps == 0)
      return rate;
    Value rising = mul(b, time, optimizer.lr / warmup);
    return select(b, compare(b, nn::ComparePredicate::LT, time, warmup), rising,
                  rate);
  }

  /// The norm of all gradients together. The placement of a gradient makes
  /// split parts add up over their ranks, and replicated ones count once.
  Value getNorm(ArrayRef<TrainedParameter> parameters) {
    Value total;
    for (const TrainedParameter &parameter : parameters) {
      Operation *last = getLast();
      Value g = castTo(b, parameter.gradient, b.getF32Type());
      auto dims = llvm::to_vector(llvm::seq<int64_t>(0, typeOf(g).getRank()));
      Value sum = reduce(b, nn::ReduceKind::Sum, mul(b, g, g), dims, false);
      nameOps(last, parameter);
      total = total ? add(b, total, sum) : sum;
    }
    return unary<nn::SqrtOp>(b, total);
  }

  /// torch.nn.utils.clip_grad_norm_.
  Value getScale(Value norm) {
    Value scale =
        div(b, constantLike(b, norm, *config.clipNorm), add(b, norm, 1e-6));
    return binary<nn::MinimumOp>(b, scale, constantLike(b, norm, 1));
  }

  Value getState(StringRef slot, nn::ParameterOp parameter) {
    auto state = nn::ParameterOp::create(
        b, parameter.getType(), getStateName(slot, parameter), /*frozen=*/true);
    if (Attribute sharding = parameter->getAttr(kShardingAttr))
      state->setAttr(kShardingAttr, sharding);
    return state;
  }
  StringAttr getStateName(StringRef slot, nn::ParameterOp parameter) {
    return b.getStringAttr("optimizer." + slot + "." + parameter.getFqn());
  }
  void assign(StringRef fqn, Value value, std::optional<double> init) {
    FloatAttr attr;
    if (init)
      attr = b.getF64FloatAttr(*init);
    nn::AssignOp::create(b, b.getStringAttr(fqn), value, attr);
  }

  /// 1 - beta^t, t counted from 1.
  Value getCorrection(double beta, Type element) {
    Value power = nn::PowOp::create(b, scalar(beta), add(b, time, 1.0));
    return castTo(b, subFrom(b, 1, power), element);
  }

  struct Scalars {
    Value lr;
    /// For Adam.
    Value correction1, correction2;
    /// The factor of a dampened gradient.
    Value damping;
  };

  void update(const TrainedParameter &parameter, Value lr) {
    nn::ParameterOp w = parameter.op;
    double decay = parameter.decays ? optimizer.weightDecay : 0;
    Value g = parameter.gradient;
    if (optimizer.maximize)
      g = neg(b, g);
    const Scalars &shared = getScalars(getWideElement(elementOf(w)), lr);
    switch (optimizer.kind) {
    case OptimizerConfig::SGD:
      return optimizer.momentum == 0 ? descend(w, g, decay, shared)
                                     : descendWithMomentum(w, g, decay, shared);
    case OptimizerConfig::Adam:
    case OptimizerConfig::AdamW:
      return optimizer.amsgrad ? updateByAMSGrad(w, g, decay, shared)
                               : updateByAdam(w, g, decay, shared);
    }
  }

  void descend(nn::ParameterOp w, Value g, double decay,
               const Scalars &shared) {
    Type wide = elementOf(shared.lr);
    Value old = castTo(b, w, wide);
    g = castTo(b, g, wide);
    if (decay != 0)
      g = add(b, g, mul(b, old, decay));
    Value next = sub(b, old, mul(b, g, shared.lr));
    assign(w.getFqn(), castTo(b, next, elementOf(w)), std::nullopt);
  }

  void descendWithMomentum(nn::ParameterOp w, Value g, double decay,
                           const Scalars &shared) {
    if (optimizer.dampening != 0) {
      // The first step's gradient is the velocity, undampened.
      if (decay != 0)
        g = add(b, g, mul(b, w, decay));
      decay = 0;
      g = mul(b, g, castTo(b, shared.damping, elementOf(g)));
    }
    auto next =
        nn::SGDOp::create(b, w, g, getState("momentum_buffer", w), shared.lr,
                          b.getF64FloatAttr(optimizer.momentum),
                          b.getF64FloatAttr(decay), optimizer.nesterov);
    assign(w.getFqn(), next.getNewParameter(), std::nullopt);
    assign(getStateName("momentum_buffer", w), next.getNewVelocity(), 0.0);
  }

  void updateByAdam(nn::ParameterOp w, Value g, double decay,
                    const Scalars &shared) {
    assignAdam(w, nn::AdamOp::create(b, w, g, getState("exp_avg", w),
                                     getState("exp_avg_sq", w), shared.lr,
                                     shared.correction1, shared.correction2,
                                     b.getF64FloatAttr(optimizer.beta1),
                                     b.getF64FloatAttr(optimizer.beta2),
                                     b.getF64FloatAttr(optimizer.eps),
                                     b.getF64FloatAttr(decay),
                                     optimizer.kind == OptimizerConfig::AdamW));
  }

  void updateByAMSGrad(nn::ParameterOp w, Value g, double decay,
                       const Scalars &shared) {
    auto next = nn::AMSGradOp::create(
        b, w, g, getState("exp_avg", w), getState("exp_avg_sq", w),
        getState("max_exp_avg_sq", w), shared.lr, shared.correction1,
        shared.correction2, b.getF64FloatAttr(optimizer.beta1),
        b.getF64FloatAttr(optimizer.beta2), b.getF64FloatAttr(optimizer.eps),
        b.getF64FloatAttr(decay), optimizer.kind == OptimizerConfig::AdamW);
    assignAdam(w, next);
    assign(getStateName("max_exp_avg_sq", w), next.getNewLargest(), 0.0);
  }

  template <typename OpT>
  void assignAdam(nn::ParameterOp w, OpT next) {
    assign(w.getFqn(), next.getNewParameter(), std::nullopt);
    assign(getStateName("exp_avg", w), next.getNewAverage(), 0.0);
    assign(getStateName("exp_avg_sq", w), next.getNewSquare(), 0.0);
  }

  /// The scalars of a step in type `element`.
  const Scalars &getScalars(Type element, Value lr) {
    auto [it, isNew] = scalars.try_emplace(element);
    Scalars &shared = it->second;
    if (!isNew)
      return shared;
    shared.lr = castTo(b, lr, element);
    if (optimizer.kind != OptimizerConfig::SGD) {
      shared.correction1 = getCorrection(optimizer.beta1, element);
      shared.correction2 = getCorrection(optimizer.beta2, element);
    } else if (optimizer.dampening != 0) {
      Value isFirst = compare(b, nn::ComparePredicate::EQ, time, 0.0);
      shared.damping = castTo(
          b, select(b, isFirst, scalar(1), scalar(1 - optimizer.dampening)),
          element);
    }
    return shared;
  }

  ImplicitLocOpBuilder &b;
  const TrainingConfig &config;
  const OptimizerConfig &optimizer;
  Value step;
  Type f64;
  Value time;
  /// Indexed by element type of the parameters.
  DenseMap<Type, Scalars> scalars;
};

} // namespace

StepMetrics tp::buildUpdate(ImplicitLocOpBuilder &b,
                            const TrainingConfig &config,
                            ArrayRef<TrainedParameter> parameters, Value step) {
  return UpdateBuilder(b, config, step).build(parameters);
}
