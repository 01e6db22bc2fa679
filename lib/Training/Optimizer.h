//===- Optimizer.h - the update of a training step --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRAINING_OPTIMIZER_H
#define TP_LIB_TRAINING_OPTIMIZER_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Training/TrainingFile.h"

namespace mlir::tp {

/// A parameter and its gradient, of one type.
struct TrainedParameter {
  nn::ParameterOp op;
  Value gradient;
  bool decays = true;
};

/// What a step reports besides the loss; scalars of f32, or null.
struct StepMetrics {
  Value lr, gradNorm;
};

/// Builds the update of all parameters at the builder's insertion point: the
/// norm of all gradients and their clipping, the learning rate of the step, the
/// optimizer, and the assignments of parameters and state. `step` is a
/// tensor<i64> that counts from 0; it is assigned as well. State is placed like
/// its parameter.
StepMetrics buildUpdate(ImplicitLocOpBuilder &b, const TrainingConfig &config,
                        ArrayRef<TrainedParameter> parameters, Value step);

/// The parameter that counts the steps.
inline constexpr llvm::StringLiteral kStepName = "optimizer.step";

} // namespace mlir::tp

#endif // TP_LIB_TRAINING_OPTIMIZER_H
