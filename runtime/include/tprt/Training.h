//===- Training.h - Running a training program step by step -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   tprt::Session session(tprt::Artifact::load("train.tpx"), weights);
//   tprt::Dataset data = tprt::Dataset::fromArrays(session.getManifest(),
//                                                  {{"x", "x.npy"}, …});
//   tprt::train(session, data, {}, {.steps = 1000});
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_TRAINING_H
#define TPRT_TRAINING_H

#include "tprt/Checkpoint.h"
#include "tprt/Dataset.h"

#include <atomic>

namespace tprt {

/// What one step did. Steps count from 1.
struct StepReport {
  int64_t step = 0;
  double loss = 0;
  std::optional<double> learningRate, gradNorm; ///< where programs have them
  double seconds = 0; ///< from batch to result, checkpoints aside
  int64_t numExamples = 0;
};

struct TrainingOptions {
  int64_t steps = 0; ///< where to stop, counted from the very beginning
  std::optional<uint64_t> seed = 0; ///< of the order of examples; none: files'
  TensorMap constants;              ///< inputs that are the same for all steps
  bool allowNonfinite = false;      ///< go on when the loss is NaN or infinite

  CheckpointDirectory *checkpoints = nullptr; ///< null: none are written
  int64_t checkpointEvery = 0; ///< steps; 0: only when training ends
  int64_t checkpointKeep = 0;  ///< how many are kept; 0: all
  /// Where other processes host ranks and checkpoints are written, by rank 0,
  /// which alone has `checkpoints`: brings parameters there, as
  /// Connection::withParameters.
  std::function<void(const UseParameters &)> withParameters;

  /// Takes, if given, what the ranks do in each step.
  Recording *recording = nullptr;

  std::function<void(const StepReport &)> onStep;
  std::function<void(const std::string &path)> onCheckpoint;
  /// Asked before each step; true ends training there.
  std::function<bool()> shouldStop;
};

struct TrainingResult {
  int64_t step = 0;        ///< the last one that was done
  bool wasStopped = false; ///< by shouldStop, before the last step
  std::string checkpoint;  ///< of that step; empty when none is written
};

/// Throws an input error unless the program updates parameters, and has an
/// output 'loss', an f32 scalar.
TPRT_API void checkTrainingProgram(const Manifest &manifest);

/// What follows a checkpoint when the same data are taken further. Throws an
/// input error where they aren't the same: number of examples, order.
TPRT_API void checkSameData(const Checkpoint &checkpoint, const Dataset &data,
                            std::optional<uint64_t> seed);

/// The steps from `start` (0, or a checkpoint's step, whose parameters the
/// session then has) to options.steps. `position` is the first example to be
/// taken. A checkpoint is written where options say so and at the end. Throws
/// an execution error when a rank fails or the loss isn't finite; what was
/// written until then stays.
TPRT_API TrainingResult train(Session &session, const Dataset &data,
                              int64_t start, int64_t position,
                              const TrainingOptions &options);

} // namespace tprt

#endif // TPRT_TRAINING_H
