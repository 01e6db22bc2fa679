//===- TrainingStep.h - The parts of a training step ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TRAINING_TRAININGSTEP_H
#define TP_LIB_TRAINING_TRAININGSTEP_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Training/TrainingFile.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::tp {

/// The function that nothing calls, or `@main` if there are several. Emits an
/// error if there is none, or if it has several blocks.
FailureOr<func::FuncOp> findEntryPoint(ModuleOp module);

/// Sets the function's type by its arguments and `results`, which it returns
/// with `attrs`, one dictionary each.
void setResults(func::FuncOp function, ArrayRef<Value> results,
                ArrayRef<Attribute> attrs);

/// The index of the result that is marked as the loss; none if there is no such
/// result.
std::optional<unsigned> findLoss(func::FuncOp function);

/// The argument that was added for the loss; null if there is none.
BlockArgument findTarget(func::FuncOp function);

/// Makes the loss of `config` a result of `function`, besides the model's own
/// results, and marks it. Cross entropy and mse add the argument 'target'.
/// Emits an error if the loss doesn't fit the model's results.
LogicalResult addLoss(func::FuncOp function, const LossConfig &config);

/// Whether one of `patterns` matches `fqn` or a module that contains it.
bool matchesAny(ArrayRef<std::string> patterns, StringRef fqn);

/// Emits an error at each pattern of `config` that matches none of the model's
/// `modules` or `parameters`, depending on its kind.
LogicalResult checkPatterns(const TrainingConfig &config,
                            ArrayRef<std::string> modules,
                            ArrayRef<StringAttr> parameters);

/// Moves the parameters in the branches and loops of `function` to its start,
/// and unrolls each loop with constant bounds and at most kMaxIterations
/// iterations. If `hasComputeType`, emits an error at ops with regions other
/// than branches, because their types can't be changed.
LogicalResult prepareControlFlow(func::FuncOp function, bool hasComputeType);

/// Lets `block` compute in `type` what it computes in f32 from parameters and
/// arguments, as PyTorch's FSDP does with MixedPrecisionPolicy(param_dtype).
/// Parameters and float arguments keep their own type and are cast where they
/// are read. Values that depend on none of them, such as positions, are cast
/// where they meet such a value. The terminator's operands and the next values
/// of buffers keep their types, and so do the values computed from `target`,
/// the loss; `target` may be null.
void setComputeType(Block &block, FloatType type, Value target);

/// `value` as read by pass number `pass` over the model (`tp.pass`). No other
/// pass shares what a pass computes from it.
Value readAgain(OpBuilder &builder, Value value, int64_t pass);

/// Lets the backward pass of `block`, which has number `pass` and starts with
/// op `begin`, compute the forward pass's values of a group again from the
/// group's inputs, instead of keeping them. The forward pass comes after
/// `previous` (getOpsOfPass). `getGroup` returns an op's group, or null if the
/// op's results are kept.
void recompute(Block &block, Operation *previous, Operation *begin,
               int64_t pass,
               llvm::function_ref<const void *(Operation *)> getGroup);

/// Called for each batch when the ops that compute its values end the block,
/// with the values and the last op before these ops (null for the first batch).
using VisitBatch = llvm::function_ref<LogicalResult(ArrayRef<Value> values,
                                                    Operation *previous)>;

/// Makes the only block of `function`, which computes `loss` for one batch,
/// compute it for `numBatches`. The example dimension of each argument that has
/// one grows by this factor, and each batch takes its part of it. Each rank
/// takes its own next examples, so none of them moves. `visit` gets the loss of
/// each batch. Emits an error at `loc` if the ranks have different numbers of
/// examples.
LogicalResult forEachBatch(func::FuncOp function, Value loss,
                           int64_t numBatches, Location loc, VisitBatch visit);

/// Makes `function` compute its results for `numBatches` batches, likewise. The
/// ops of batch k belong to its forward pass, number 2k. Emits an error if the
/// batches of a result can't be joined.
LogicalResult splitBatch(func::FuncOp function, int64_t numBatches);

/// Marks the ops of `block` between `previous` (null: its begin) and `end` that
/// belong to no pass yet as those of `pass` (`tp.pass`).
void markPass(Block &block, Operation *previous, Operation *end, int64_t pass);

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

#endif // TP_LIB_TRAINING_TRAININGSTEP_H
