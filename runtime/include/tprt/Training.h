//===- Training.h - Execution of training programs --------------*- C++ -*-===//
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

namespace tprt {

/// The result of one step. Steps count from 1.
struct StepReport {
  int64_t step = 0;
  double loss = 0;
  std::optional<double> learningRate, gradNorm; ///< if the program has them
  double seconds = 0; ///< from batch to result, without checkpoints
  int64_t numExamples = 0;
};

struct TrainingOptions {
  int64_t steps = 0; ///< last step, counted from the start of training
  std::optional<uint64_t> seed = 0; ///< for the order of examples; none: files'
  TensorMap constants;              ///< inputs that are the same for all steps
  bool allowNonfinite = false;      ///< go on when the loss is NaN or infinite

  CheckpointDirectory *checkpoints = nullptr; ///< null: none are written
  int64_t checkpointEvery = 0; ///< steps; 0: only when training ends
  int64_t checkpointKeep = 0;  ///< how many are kept; 0: all
  /// Whether those of checkpointEvery are written beside the steps, from a copy
  /// of all parameters in the memory of the process that has `checkpoints`. A
  /// step then waits only for the copy, and for the checkpoint before it. If
  /// writing fails, training ends with the error before its next step. The
  /// other ranks' processes must have the same value.
  bool checkpointAsync = false;
  /// After every so many steps, and before a checkpoint, the ranks compare the
  /// parameters that several of them hold; see Session::findDivergence(). 0:
  /// never.
  int64_t checkReplicasEvery = 0;
  /// Needed if other processes host ranks and checkpoints are written. Rank 0,
  /// the only one that has `checkpoints`, writes them, and this function
  /// collects the parameters there, like Connection::withParameters.
  std::function<void(const UseParameters &)> withParameters;

  /// If given, the ranks' work in each step is appended to it.
  Recording *recording = nullptr;

  std::function<void(const StepReport &)> onStep;
  /// Called by the thread that calls train(), when a checkpoint is complete.
  std::function<void(const std::string &path)> onCheckpoint;
  /// Asked before each step; true ends training there.
  std::function<bool()> shouldStop;
};

struct TrainingResult {
  int64_t step = 0;        ///< the last completed step
  bool wasStopped = false; ///< by shouldStop, before the last step
  std::string checkpoint;  ///< of that step; empty if none was written
};

/// Throws an input error unless there is one program, which updates parameters
/// and has an output 'loss', an f32 scalar.
TPRT_API void checkTrainingProgram(const Manifest &manifest);

/// Checks that a training can continue from `checkpoint` with `data`. Throws an
/// input error if the number of examples or their order differs.
TPRT_API void checkSameData(const Checkpoint &checkpoint, const Dataset &data,
                            std::optional<uint64_t> seed);

/// Runs the steps from `start` to options.steps. `start` is 0, or the step of a
/// checkpoint that has been loaded into the session. `position` is the first
/// example to use. Writes a checkpoint when the options say so and at the end;
/// none is being written when it returns or throws. Throws an execution error
/// when a rank fails, the loss isn't finite, or ranks hold different values of
/// the same parameter; checkpoints written before that stay.
TPRT_API TrainingResult train(Session &session, const Dataset &data,
                              int64_t start, int64_t position,
                              const TrainingOptions &options);

} // namespace tprt

#endif // TPRT_TRAINING_H
