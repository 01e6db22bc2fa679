//===- Training.cpp - Execution of training programs ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Training.h"

#include "train/Snapshot.h"

#include <chrono>
#include <cmath>

using namespace tprt;

static const TensorInfo *findOutput(const Manifest &manifest,
                                    std::string_view name) {
  for (const TensorInfo &output : manifest.programs.front().outputs)
    if (output.name == name)
      return &output;
  return nullptr;
}

void tprt::checkTrainingProgram(const Manifest &manifest) {
  if (manifest.programs.size() > 1)
    throw inputError("the artifact has " +
                     std::to_string(manifest.programs.size()) +
                     " programs, expected one, a training step");
  if (!manifest.hasState())
    throw inputError("the program updates no parameter, so that steps change "
                     "nothing: compile a training step");
  const TensorInfo *loss = findOutput(manifest, "loss");
  if (!loss || loss->getTypeString() != "f32")
    throw inputError("the program has " +
                     (loss ? "output 'loss' of type " + loss->getTypeString()
                           : std::string("no output 'loss'")) +
                     ", expected an f32 scalar");
}

static std::string describeOrder(int64_t numExamples,
                                 std::optional<uint64_t> seed) {
  return std::to_string(numExamples) + " examples " +
         (seed ? "shuffled with seed " + std::to_string(*seed)
               : std::string("in the order of the files"));
}

void tprt::checkSameData(const Checkpoint &checkpoint, const Dataset &data,
                         std::optional<uint64_t> seed) {
  const DataState &state = checkpoint.data;
  if (state.numExamples == data.getNumExamples() && state.seed == seed)
    return;
  throw inputError("checkpoint '" + checkpoint.path + "' was trained on " +
                   describeOrder(state.numExamples, state.seed) + ", found " +
                   describeOrder(data.getNumExamples(), seed));
}

static std::optional<double> getScalar(const RunResult &result,
                                       const std::string &name) {
  auto found = result.outputs.find(name);
  if (found == result.outputs.end() || found->second.getNumElements() != 1)
    return std::nullopt;
  return loadAsDouble(found->second.dtype, found->second.data.get(), 0);
}

TrainingResult tprt::train(Session &session, const Dataset &data, int64_t start,
                           int64_t position, const TrainingOptions &options) {
  using Clock = std::chrono::steady_clock;
  const Manifest &manifest = session.getManifest();
  checkTrainingProgram(manifest);
  TrainingResult training;
  training.step = start;
  auto withParameters = [&](const UseParameters &work) {
    if (options.withParameters)
      options.withParameters(work);
    else if (options.checkpoints)
      work([&](const std::string &name) { return session.getParameter(name); });
  };
  auto noteCheckpoint = [&](const std::string &path) {
    training.checkpoint = path;
    if (options.onCheckpoint)
      options.onCheckpoint(path);
  };
  std::future<std::string> beside; // the checkpoint that is being written
  auto awaitBeside = [&] {
    if (beside.valid())
      noteCheckpoint(beside.get());
  };
  auto write = [&](const GetParameter &getParameter) {
    awaitBeside();
    std::string path = options.checkpoints->write(
        manifest, getParameter, training.step,
        {data.getNumExamples(), position, options.seed}, manifest.worldSize);
    if (options.checkpointKeep > 0)
      options.checkpoints->keepLast(options.checkpointKeep, training.step);
    noteCheckpoint(path);
  };
  auto writeBeside = [&](const GetParameter &getParameter) {
    awaitBeside(); // so that there is one snapshot at a time
    beside = writeSnapshot(
        *options.checkpoints, manifest,
        takeSnapshot(manifest, getParameter, manifest.worldSize), training.step,
        {data.getNumExamples(), position, options.seed},
        options.checkpointKeep);
  };
  int64_t comparedStep = start;
  auto compareReplicas = [&] {
    if (options.checkReplicasEvery == 0 || comparedStep == training.step)
      return;
    comparedStep = training.step;
    std::string divergence = session.findDivergence();
    if (!divergence.empty())
      throw executionError("after step " + std::to_string(training.step) + " " +
                           divergence);
  };
  int64_t savedStep = start;
  bool isBeside = false; // that of savedStep, in all processes
  auto save = [&](bool goesOn) {
    compareReplicas();
    savedStep = training.step;
    isBeside = options.checkpointAsync && goesOn;
    if (isBeside)
      withParameters(writeBeside);
    else
      withParameters(write);
  };
  auto trainSteps = [&] {
    while (training.step < options.steps) {
      training.wasStopped = options.shouldStop && options.shouldStop();
      if (training.wasStopped)
        break;
      if (beside.valid() &&
          beside.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
        awaitBeside();
      Clock::time_point before = Clock::now();
      TensorMap inputs =
          data.getBatch(position, options.seed, manifest, session.getRanks());
      inputs.insert(options.constants.begin(), options.constants.end());
      RunResult result = session.run(inputs, {.recording = options.recording});
      position += data.getBatchSize();
      ++training.step;
      training.checkpoint.clear();
      StepReport report{
          .step = training.step,
          .loss = *getScalar(result, "loss"),
          .learningRate = getScalar(result, "lr"),
          .gradNorm = getScalar(result, "grad_norm"),
          .seconds =
              std::chrono::duration<double>(Clock::now() - before).count(),
          .numExamples = data.getBatchSize()};
      if (options.onStep)
        options.onStep(report);
      if (!std::isfinite(report.loss) && !options.allowNonfinite)
        throw executionError("the loss of step " + std::to_string(report.step) +
                             " is " +
                             (std::isnan(report.loss) ? "NaN" : "infinite"));
      if (options.checkReplicasEvery > 0 &&
          training.step % options.checkReplicasEvery == 0)
        compareReplicas();
      if (options.checkpointEvery > 0 &&
          training.step % options.checkpointEvery == 0)
        save(/*goesOn=*/training.step < options.steps);
    }
    if (savedStep != training.step)
      save(/*goesOn=*/false);
    else if (isBeside) // the other processes wait for the one that writes
      withParameters([&](const GetParameter &) { awaitBeside(); });
  };
  try {
    trainSteps();
  } catch (const Error &error) {
    std::string problem = session.recordFailure(error.what());
    if (problem.empty())
      throw;
    throw Error(error.getKind(), error.what() + problem);
  }
  return training;
}
