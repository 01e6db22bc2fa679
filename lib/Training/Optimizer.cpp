//===- Optimizer.cpp - the update of a training step ----------------------===//

#include "Optimizer.h"
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
  /// The op behind which the next is built.
  Operation *getLast() {
    auto next = b.getInsertionPoint();
    return next == b.getInsertionBlock()->begin() ? nullptr : &*std::prev(next);
  }

  /// What was built behind `last` for a parameter, and is of its shape, belongs
  /// to it: so do the reductions of its gradient that this asks for.
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
      // At the end it stays at the least.
      Value progress = nn::MinimumOp::create(
          b, time.getType(), mul(b, add(b, time, -warmup), 1 / length),
          scalar(1));
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

  /// The norm of all gradients together. What is split is summed over its ranks
  /// by its type, what is replicated counts once.
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
    Value power =
        nn::PowOp::create(b, time.getType(), scalar(beta), add(b, time, 1.0));
    return castTo(b, subFrom(b, 1, power), element);
  }

  void update(const TrainedParameter &parameter, Value lr) {
    nn::ParameterOp w = parameter.op;
    StringRef fqn = w.getFqn();
    Type element = elementOf(w);
    double decay = parameter.decays ? optimizer.weightDecay : 0;
    auto [it, isNew] = scalars.try_emplace(element);
    Scalars &shared = it->second;
    if (isNew) {
      shared.lr = castTo(b, lr, element);
      if (optimizer.kind != OptimizerConfig::SGD) {
        shared.correction1 = getCorrection(optimizer.beta1, element);
        shared.correction2 = getCorrection(optimizer.beta2, element);
      }
    }
    if (optimizer.kind == OptimizerConfig::SGD) {
      if (optimizer.momentum == 0) {
        Value g = parameter.gradient;
        if (decay != 0)
          g = add(b, g, mul(b, w, decay));
        return assign(fqn, sub(b, w, mul(b, g, shared.lr)), std::nullopt);
      }
      auto next = nn::SGDOp::create(
          b, w, parameter.gradient, getState("momentum_buffer", w), shared.lr,
          b.getF64FloatAttr(optimizer.momentum), b.getF64FloatAttr(decay),
          optimizer.nesterov);
      assign(fqn, next.getNewParameter(), std::nullopt);
      return assign(getStateName("momentum_buffer", w), next.getNewVelocity(),
                    0.0);
    }
    auto next = nn::AdamOp::create(
        b, w, parameter.gradient, getState("exp_avg", w),
        getState("exp_avg_sq", w), shared.lr, shared.correction1,
        shared.correction2, b.getF64FloatAttr(optimizer.beta1),
        b.getF64FloatAttr(optimizer.beta2), b.getF64FloatAttr(optimizer.eps),
        b.getF64FloatAttr(decay), optimizer.kind == OptimizerConfig::AdamW);
    assign(fqn, next.getNewParameter(), std::nullopt);
    assign(getStateName("exp_avg", w), next.getNewAverage(), 0.0);
    assign(getStateName("exp_avg_sq", w), next.getNewSquare(), 0.0);
  }

  struct Scalars {
    Value lr, correction1, correction2;
  };

  ImplicitLocOpBuilder &b;
  const TrainingConfig &config;
  const OptimizerConfig &optimizer;
  Value step;
  Type f64;
  Value time;
  /// By element type of the parameters.
  DenseMap<Type, Scalars> scalars;
};

} // namespace

StepMetrics tp::buildUpdate(ImplicitLocOpBuilder &b,
                            const TrainingConfig &config,
                            ArrayRef<TrainedParameter> parameters, Value step) {
  return UpdateBuilder(b, config, step).build(parameters);
}
