//===- TrainingFile.h - Training files --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The training file (docs/Training.md), in YAML or JSON: loss, optimizer,
// schedule. Names and defaults are PyTorch's unless stated otherwise.
//
//===----------------------------------------------------------------------===//

#ifndef TP_TRAINING_TRAININGFILE_H
#define TP_TRAINING_TRAININGFILE_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/LLVM.h"
#include "tp/Dialect/NN/NN.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::tp {

struct LossConfig {
  enum Kind {
    /// A result of the model is the loss.
    Output,
    CrossEntropy,
    MSE,
  };
  Kind kind = Output;
  /// The index of the model's result.
  int64_t output = 0;
  nn::LossReduction reduction = nn::LossReduction::Mean;
  /// For cross-entropy.
  int64_t ignoreIndex = -100;
  double labelSmoothing = 0;
  int64_t classDim = -1;
  std::vector<double> weights;
  /// The locations of the loss and its keys in the file; null if the file
  /// doesn't have them.
  FileLineColLoc loc, outputLoc, classDimLoc, weightLoc;
};

struct OptimizerConfig {
  enum Kind { SGD, Adam, AdamW };
  Kind kind = SGD;
  double lr = 0;
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  /// Whether to step along the gradient instead of against it.
  bool maximize = false;
  bool amsgrad = false;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weightDecay = 0;
  /// Parameters without weight decay.
  std::vector<std::string> noDecay;
};

/// The learning rate's course over the steps, counted from 0, as by Hugging
/// Face's get_constant_schedule_with_warmup and
/// get_cosine_schedule_with_warmup.
struct ScheduleConfig {
  enum Kind { Constant, Cosine };
  Kind kind = Constant;
  int64_t warmupSteps = 0;
  int64_t totalSteps = 0;
  /// The learning rate at which the cosine ends.
  double minLr = 0;
};

struct TrainingConfig {
  LossConfig loss;
  /// If there is none, the program only computes gradients.
  std::optional<OptimizerConfig> optimizer;
  ScheduleConfig schedule;
  /// The norm to which gradients are clipped.
  std::optional<double> clipNorm;
  /// How many batches' gradients are added up for one step.
  int64_t accumulate = 1;
  FileLineColLoc accumulateLoc;
  /// Type of the forward and backward pass; null for the model's own.
  FloatType computeType;
  /// Patterns of modules whose values the backward pass computes again.
  std::vector<std::string> checkpoint;
  /// Patterns of modules among those, or inside of them, whose values are kept
  /// nevertheless.
  std::vector<std::string> keep;
  /// Patterns of parameters that aren't trained.
  std::vector<std::string> frozen;
  /// The locations of the patterns above in the file, for errors.
  std::vector<FileLineColLoc> checkpointLocs, keepLocs, frozenLocs, noDecayLocs;
  int64_t seed = 0;
};

/// Reads the file; emits errors at the line and column at fault.
FailureOr<TrainingConfig> readTrainingFile(StringRef path,
                                           MLIRContext *context);

/// The same for `text`, the YAML or JSON in the file `path`.
FailureOr<TrainingConfig> parseTrainingFile(StringRef text, StringRef path,
                                            MLIRContext *context);

/// The JSON schema of training files.
llvm::json::Value getTrainingSchema();

} // namespace mlir::tp

#endif // TP_TRAINING_TRAININGFILE_H
