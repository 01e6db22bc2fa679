//===- Train.cpp - tp-run --steps -----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Train.h"

#include "../Usage.h"
#include "Cache.h"
#include "Communication.h"
#include "EventFile.h"
#include "Progress.h"
#include "tprt/File.h"
#include "tprt/Metrics.h"
#include "tprt/Report.h"
#include "tprt/TrainingPage.h"
#include "tprt/Weights.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <climits>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <iostream>

using namespace tprt;

void declareTrainingOptions(CLI::App &app, TrainingArguments &arguments) {
  constexpr const char *group = "Training";
  CLI::Option *steps = app.add_option("--steps", arguments.steps,
                                      "train until this many steps are done, "
                                      "including those before the checkpoint")
                           ->check(CLI::Range(int64_t(1), int64_t(1) << 60))
                           ->type_name("N");
  CLI::Option *data =
      app.add_option("--data", arguments.data,
                     "examples for an input, a .npy array with one row for "
                     "each; or a raw token file, with --token-type")
          ->type_name("NAME=PATH")
          ->allow_extra_args(false);
  CLI::Option *tokenType =
      app.add_option("--token-type", arguments.tokenType,
                     "--data is a file of little-endian integers: u16, u32, "
                     "i32 or i64")
          ->check(CLI::IsMember({"u16", "u32", "i32", "i64"}))
          ->type_name("TYPE")
          ->needs(data);
  CLI::Option *tokenInputs =
      app.add_option("--token-inputs", arguments.tokenInputs,
                     "the input that takes a window of tokens, and the one "
                     "that takes the window shifted by one token")
          ->delimiter(',')
          ->expected(2)
          ->type_name("NAME,NAME")
          ->default_str("ids,target")
          ->needs(tokenType);
  CLI::Option *seed =
      app.add_option(
             "--shuffle-seed", arguments.seed,
             "seed of the order of examples, which differs from epoch to epoch")
          ->check(isExactNumber)
          ->type_name("S")
          ->capture_default_str();
  CLI::Option *noShuffle =
      app.add_flag("--no-shuffle", arguments.noShuffle,
                   "take examples in the order of the files")
          ->excludes(seed);
  CLI::Option *directory =
      app.add_option("--checkpoint-dir", arguments.checkpointDirectory,
                     "write checkpoints to D/step-N, one when training ends")
          ->check(isDirectoryName)
          ->type_name("D");
  CLI::Option *every =
      app.add_option("--checkpoint-every", arguments.checkpointEvery,
                     "also write a checkpoint every K steps")
          ->check(CLI::Range(int64_t(1), int64_t(1) << 60))
          ->type_name("K")
          ->needs(directory);
  CLI::Option *keep =
      app.add_option("--checkpoint-keep", arguments.checkpointKeep,
                     "remove all checkpoints of D but the last M")
          ->check(CLI::Range(int64_t(1), int64_t(1) << 60))
          ->type_name("M")
          ->needs(directory);
  CLI::Option *async =
      app.add_flag("--checkpoint-async", arguments.checkpointAsync,
                   "write those of --checkpoint-every while the steps go on, "
                   "from a copy of all parameters in the memory of the process "
                   "that writes")
          ->needs(every);
  CLI::Option *replicas =
      app.add_option("--check-replicas", arguments.checkReplicasEvery,
                     "every K steps and before each checkpoint, compare the "
                     "values of parameters that several ranks hold, and fail "
                     "if they differ")
          ->check(CLI::Range(int64_t(1), int64_t(1) << 60))
          ->type_name("K");
  CLI::Option *restart =
      app.add_option("--restart", arguments.numRestarts,
                     "with -n: when a rank fails or is killed, start all ranks "
                     "again, up to N times; they continue from D's last "
                     "complete checkpoint")
          ->check(CLI::Range(int64_t(1), int64_t(1) << 30))
          ->type_name("N")
          ->needs(directory);
  CLI::Option *resume =
      app.add_option("--resume", arguments.resume,
                     "auto: continue from D's last complete checkpoint, if "
                     "there is one; never; or a checkpoint's path")
          ->type_name("auto|never|PATH")
          ->capture_default_str();
  CLI::Option *resetData =
      app.add_flag("--reset-data", arguments.resetData,
                   "continue from a checkpoint that was trained on other data, "
                   "and start the given data from its beginning");
  CLI::Option *metrics = app.add_option("--metrics", arguments.metrics,
                                        "write a line of JSON for each step")
                             ->type_name("PATH");
  CLI::Option *log =
      app.add_option("--log-every", arguments.logEvery,
                     "print a line every N steps; without it, every ten "
                     "seconds where the output isn't a terminal")
          ->check(CLI::Range(int64_t(1), int64_t(1) << 60))
          ->type_name("N");
  CLI::Option *curve = app.add_option("--loss-curve", arguments.lossCurve,
                                      "draw the losses, as SVG, when training "
                                      "ends")
                           ->type_name("PATH");
  CLI::Option *html =
      app.add_option("--html", arguments.html,
                     "show the curves of loss, learning rate, gradient norm "
                     "and speed on a page for a web browser, which is written "
                     "anew about once a second")
          ->type_name("PATH");
  CLI::Option *tensorboard =
      app.add_option("--tensorboard", arguments.tensorboard,
                     "write loss, learning rate, gradient norm and speed of "
                     "each step to an event file in DIR, for TensorBoard")
          ->type_name("DIR");
  CLI::Option *nonfinite =
      app.add_flag("--allow-nonfinite", arguments.allowNonfinite,
                   "go on when the loss is NaN or infinite");
  for (CLI::Option *option :
       {data, tokenType, tokenInputs, seed, noShuffle, directory, every, keep,
        async, replicas, restart, resume, resetData, metrics, log, curve, html,
        tensorboard, nonfinite})
    option->needs(steps)->group(group);
  steps->group(group);
  for (const char *other :
       {"--output", "--blocks", "--expect", "--json", "--repeat", "--warmup",
        "--program", "--pad", "--state-in", "--state-out"})
    steps->excludes(app.get_option(other));
}

/// Set by the first SIGINT or SIGTERM. Another one, at least two seconds later,
/// ends the process. An earlier one is ignored, because a launcher may pass a
/// signal on twice.
static volatile std::sig_atomic_t isInterrupted = 0;

static void catchSignals() {
  struct sigaction action = {};
  action.sa_handler = [](int signal) {
    static volatile time_t first = 0;
    timespec now = {};
    ::clock_gettime(CLOCK_MONOTONIC, &now); // safe in a handler
    if (!isInterrupted) {
      first = now.tv_sec;
      isInterrupted = 1;
    } else if (now.tv_sec > first + 1) {
      ::signal(signal, SIG_DFL);
      ::raise(signal);
    }
  };
  action.sa_flags = SA_RESTART;
  for (int signal : {SIGINT, SIGTERM}) {
    struct sigaction before = {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) // as for a shell's background jobs
      ::sigaction(signal, &action, nullptr);
  }
  endWaitsForReaders(isInterrupted);
}

static Dataset openData(const TrainingArguments &arguments,
                        const Manifest &manifest) {
  if (!arguments.tokenType.empty()) {
    auto paths = parseAssignments(arguments.data, "--data", "token file",
                                  {"tokens"}, /*checkNames=*/true);
    return Dataset::fromTokens(
        manifest, paths.begin()->second, *parseTokenType(arguments.tokenType),
        arguments.tokenInputs[0], arguments.tokenInputs[1]);
  }
  return Dataset::fromArrays(
      manifest, parseAssignments(arguments.data, "--data", "input",
                                 getNames(manifest, &Program::inputs),
                                 /*checkNames=*/true));
}

/// Reads the inputs of --input, and checks that every input has a value.
static TensorMap readConstants(const Options &options, const Dataset &data,
                               const Manifest &manifest) {
  TensorMap constants = readTensors(parseAssignments(
      options.inputs, "--input", "input", getNames(manifest, &Program::inputs),
      /*checkNames=*/true));
  std::vector<TensorInfo> wanted;
  for (const TensorInfo &info : manifest.programs.front().inputs) {
    bool isData = data.hasInput(info.name);
    if (isData && constants.contains(info.name))
      throw UsageError("input '" + info.name +
                       "' is given by --data and by --input");
    if (!isData)
      wanted.push_back(info);
  }
  std::string problems =
      checkTensors(wanted, constants, "input", /*allowUnused=*/false);
  if (!problems.empty())
    throw inputError(problems + "\ngive --data NAME=PATH for a row of each "
                                "example, --input NAME=PATH for the same in "
                                "all steps");
  return constants;
}

/// The checkpoint that --resume=auto continues from: the last complete one.
static std::optional<Checkpoint> findLast(const CheckpointList &list,
                                          const std::string &directory) {
  auto warn = [](const std::string &problem) {
    report("warning", problem + "; this checkpoint is skipped");
  };
  for (const auto &[path, problem] : list.broken)
    warn(problem);
  for (auto last = list.complete.rbegin(); last != list.complete.rend();
       ++last) {
    std::vector<std::string> problems = verifyCheckpoint(*last);
    if (problems.empty())
      return *last;
    warn(problems.front());
  }
  if (!list.broken.empty() || !list.complete.empty())
    throw inputError("no checkpoint in '" + directory +
                     "' is usable; give another directory to start over");
  return std::nullopt;
}

/// The checkpoint that training continues from; nullopt if it starts from the
/// beginning.
static std::optional<Checkpoint>
chooseCheckpoint(const TrainingArguments &arguments) {
  CheckpointList list;
  const std::string &directory = arguments.checkpointDirectory;
  if (!directory.empty())
    list = listCheckpoints(directory);
  if (arguments.resume == "auto")
    return findLast(list, directory);

  int64_t start = 0;
  std::optional<Checkpoint> chosen;
  if (arguments.resume != "never") {
    chosen = readCheckpoint(arguments.resume);
    std::vector<std::string> problems = verifyCheckpoint(*chosen);
    if (!problems.empty())
      throw inputError(problems.front());
    start = chosen->step;
  }
  if (!list.complete.empty() && list.complete.back().step > start)
    throw inputError("--resume " + arguments.resume + " begins at step " +
                     std::to_string(start) + ", but '" + directory +
                     "' has checkpoints up to step " +
                     std::to_string(list.complete.back().step) +
                     ": give another directory, or remove them");
  return chosen;
}

/// Fails if writing checkpoints to `directory` may replace `path`, or `path`
/// may replace one of them.
static void checkOutsideCheckpoints(const std::string &path,
                                    const std::string &directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  auto getPlace = [&](const std::string &name) {
    fs::path place = fs::weakly_canonical(fs::absolute(name), error);
    return place.has_filename() ? place : place.parent_path();
  };
  fs::path inside = getPlace(path).lexically_relative(getPlace(directory));
  std::string first = inside.empty() ? "" : inside.begin()->string();
  if (first == "." || first == "lock" || first.starts_with("step-"))
    throw inputError("'" + path +
                     "' is reserved for tp-run in the checkpoint directory '" +
                     directory + "'; give another path");
}

/// Fails if a file that is written at the end of training can't be written.
static void checkTrainingOutputs(const Options &options) {
  std::vector<std::string> paths;
  addOutput(options.training.lossCurve, paths);
  addOutput(options.training.metrics, paths);
  addOutput(options.training.html, paths);
  addOutput(options.outputWeights, paths);
  addOutput(options.trace, paths);
  checkAreNoInputs(options, paths);
  if (!options.training.checkpointDirectory.empty())
    for (const std::string &path : paths)
      checkOutsideCheckpoints(path, options.training.checkpointDirectory);
  checkOutputs(paths);
  if (const std::string &directory = options.training.tensorboard;
      !directory.empty()) {
    EventFile::checkDirectory(directory);
    if (!options.training.checkpointDirectory.empty())
      checkOutsideCheckpoints(directory, options.training.checkpointDirectory);
  }
  if (!options.training.html.empty())
    TrainingPage::checkPath(options.training.html);
}

namespace {

/// The steps of this run, as the first rank reports them.
class TrainingLog {
public:
  TrainingLog(const Options &options, const Dataset &data, int64_t start)
      : options(options), start(start), tokens(data.getTokensPerExample()),
        unitsPerStep(data.getBatchSize() * tokens.value_or(1)) {
    const TrainingArguments &arguments = options.training;
    if (!arguments.html.empty())
      page.emplace(arguments.html, getProgramName(), arguments.steps, tokens);
    if (!arguments.metrics.empty()) {
      metrics.emplace(arguments.metrics, start);
      for (const StepReport &report : metrics->getHistory())
        keep(report);
    }
    if (!arguments.tensorboard.empty())
      events.emplace(arguments.tensorboard, start);
    progress.emplace(arguments.steps, tokens, arguments.logEvery,
                     getTextStream(options));
  }

  void add(const StepReport &report) {
    last = report;
    seconds += report.seconds;
    keep(report);
    if (metrics)
      metrics->write(report, tokens);
    if (events)
      events->write(report, tokens);
    if (page)
      page->update();
    progress->show(report);
  }
  void endProgress() { progress.reset(); }

  void drawCurve(std::vector<OutputFile> &files) const {
    if (options.training.lossCurve.empty() || losses.empty())
      return;
    files.emplace_back(options.training.lossCurve)
        .write(drawLossCurve(losses, "Training loss of " + getProgramName()));
  }
  /// A page of earlier steps stays if there was nothing to do.
  void endPage(TrainingState state, const std::string &problem = "") {
    if (page && (state != TrainingState::Done || !losses.empty()))
      page->write(state, problem);
  }
  void printSummary(const TrainingResult &result) const {
    std::ostream &text = getTextStream(options);
    int64_t steps = result.step - start;
    if (steps == 0 && !result.wasStopped)
      text << "nothing to do: " << start << " steps are done\n";
    if (steps <= 0)
      return;
    text << "step " << result.step << ": loss " << last.loss << "; " << steps
         << (steps == 1 ? " step in " : " steps in ") << formatDuration(seconds)
         << ", " << std::llround(steps * unitsPerStep / seconds)
         << (tokens ? " tokens/s\n" : " examples/s\n");
    if (!result.checkpoint.empty())
      text << "checkpoint: " << result.checkpoint << "\n";
  }

private:
  std::string getProgramName() const {
    return std::filesystem::path(options.program).stem().string();
  }
  /// Adds a step to the curves.
  void keep(const StepReport &report) {
    losses.emplace_back(report.step, report.loss);
    if (page)
      page->add(report);
  }

  const Options &options;
  const int64_t start;
  const std::optional<int64_t> tokens; ///< per example
  const int64_t unitsPerStep;
  std::optional<MetricsFile> metrics;
  std::optional<EventFile> events;
  std::optional<TrainingPage> page;
  std::optional<Progress> progress;
  LossHistory losses;
  StepReport last;
  double seconds = 0;
};

/// Whether training must end early. The ranks of a job agree on this: if one
/// has got a signal, all end after the same step. They only ask each other
/// every few steps, as rank 0 decides, so that this doesn't slow steps down.
class Interruption {
public:
  explicit Interruption(Connection *connection) : connection(connection) {}

  /// Called by all ranks before each step.
  bool isWanted() {
    if (!connection)
      return isInterrupted != 0;
    if (stepsLeft-- > 0)
      return false;
    std::vector<std::string> all = connection->exchange(
        (isInterrupted ? "1 " : "0 ") + std::to_string(chooseSteps()),
        /*limit=*/32);
    stepsLeft =
        std::atoll(all[0].substr(std::min<size_t>(2, all[0].size())).c_str()) -
        1;
    return std::any_of(all.begin(), all.end(), [](const std::string &other) {
      return other.starts_with('1');
    });
  }

private:
  /// The number of steps that take a tenth of a second, estimated from those
  /// since the last call.
  int64_t chooseSteps() {
    using Clock = std::chrono::steady_clock;
    Clock::time_point now = Clock::now();
    double seconds = std::chrono::duration<double>(now - last).count();
    numSteps = std::clamp<int64_t>(
        std::llround(0.1 * numSteps / std::max(seconds, 1e-9)), 1,
        2 * numSteps);
    last = now;
    return numSteps;
  }

  Connection *connection;
  int64_t stepsLeft = 0, numSteps = 1;
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

} // namespace

/// The checkpoint that all ranks continue from, chosen by rank 0.
static std::optional<Checkpoint> agreeOnCheckpoint(const Options &options,
                                                   const Job *job,
                                                   Connection *connection) {
  if (!job)
    return chooseCheckpoint(options.training);
  if (job->rank > 0) {
    std::string path = connection->broadcast("", PATH_MAX);
    return path.empty() ? std::nullopt : std::optional(readCheckpoint(path));
  }
  std::optional<Checkpoint> chosen = chooseCheckpoint(options.training);
  connection->broadcast(chosen ? chosen->path : "", PATH_MAX);
  return chosen;
}

/// The options that the command line gives.
static TrainingOptions getTrainingOptions(const Options &options,
                                          const Dataset &data,
                                          const Manifest &manifest) {
  const TrainingArguments &arguments = options.training;
  TrainingOptions result;
  result.steps = arguments.steps;
  if (arguments.noShuffle)
    result.seed.reset();
  else
    result.seed = arguments.seed;
  result.constants = readConstants(options, data, manifest);
  result.allowNonfinite = arguments.allowNonfinite;
  result.checkpointEvery = arguments.checkpointEvery;
  result.checkpointKeep = arguments.checkpointKeep;
  result.checkpointAsync = arguments.checkpointAsync;
  result.checkReplicasEvery = arguments.checkReplicasEvery;
  return result;
}

/// The first example to use after `from`.
static int64_t getPosition(const std::optional<Checkpoint> &from,
                           const Dataset &data, std::optional<uint64_t> seed,
                           bool resetData) {
  if (!from || resetData)
    return 0;
  try {
    checkSameData(*from, data, seed);
  } catch (const Error &error) {
    throw inputError(std::string(error.what()) +
                     "; give the same data, or start the given data from its "
                     "beginning with --reset-data");
  }
  return from->data.position;
}

static ExitCode trainRank(const Options &options,
                          const std::shared_ptr<const Artifact> &artifact,
                          const Communication &communication) {
  const auto &[backend, job, connection] = communication;
  const TrainingArguments &arguments = options.training;
  const Manifest &manifest = artifact->getManifest();
  const bool isFirst = !job || job->rank == 0; // reports and writes
  checkTrainingProgram(manifest);
  if (isFirst)
    checkTrainingOutputs(options);
  Dataset data = openData(arguments, manifest);
  TrainingOptions trainingOptions = getTrainingOptions(options, data, manifest);
  std::optional<Recording> recording = makeRecording(options);
  trainingOptions.recording = recording ? &*recording : nullptr;

  std::optional<CheckpointDirectory> checkpoints;
  if (!arguments.checkpointDirectory.empty() && isFirst)
    checkpoints.emplace(arguments.checkpointDirectory);
  trainingOptions.checkpoints = checkpoints ? &*checkpoints : nullptr;
  std::optional<Checkpoint> from = agreeOnCheckpoint(options, job, connection);
  int64_t start = from ? from->step : 0;
  int64_t position =
      getPosition(from, data, trainingOptions.seed, arguments.resetData);
  SessionOptions sessionOptions = getSessionOptions(options, communication);
  sessionOptions.gemm.file = getGemmFile(artifact->getPath(), !options.noCache);
  Session session(artifact,
                  from ? loadCheckpoint(*from, manifest)
                       : readProgramWeights(options, manifest),
                  sessionOptions);
  if (isFirst)
    noteGemmChoices(session);
  if (!arguments.checkpointDirectory.empty())
    trainingOptions.withParameters = [&](const UseParameters &work) {
      withParameters(session, connection, work);
    };
  if (from && isFirst)
    getTextStream(options) << "resuming from '" << from->path << "': step "
                           << start << " of " << arguments.steps << std::endl;

  std::optional<TrainingLog> log;
  if (isFirst) {
    log.emplace(options, data, start);
    trainingOptions.onStep = [&](const StepReport &report) {
      log->add(report);
    };
  }
  trainingOptions.shouldStop = [interruption =
                                    Interruption(connection)]() mutable {
    return interruption.isWanted();
  };
  TrainingResult result;
  std::vector<OutputFile> files;
  try {
    result = tprt::train(session, data, start, position, trainingOptions);
  } catch (const Error &error) {
    if (log)
      log->drawCurve(files);
    commit(files);
    if (log)
      log->endPage(TrainingState::Failed, error.what());
    throw;
  }
  if (log) {
    log->endProgress();
    log->endPage(result.wasStopped ? TrainingState::Interrupted
                                   : TrainingState::Done);
    log->drawCurve(files);
    writeTrace(options, manifest, trainingOptions.recording, files);
    commit(files);
    if (std::optional<Profile> profile =
            makeProfile(options, manifest, trainingOptions.recording))
      getTextStream(options) << profile->toTable();
    getTextStream(options) << describe(session.getAttentionUses());
    log->printSummary(result);
    if (result.wasStopped)
      std::cerr << "tp-run: interrupted after step " << result.step << " of "
                << arguments.steps
                << (arguments.checkpointDirectory.empty()
                        ? "; without --checkpoint-dir nothing is kept\n"
                        : "; the same command continues from there\n");
  }
  if (result.wasStopped)
    return Interrupted;
  writeProgramWeights(options, session, connection);
  return Success;
}

ExitCode train(const Options &options) {
  if (options.training.data.empty())
    throw UsageError("--steps: give the examples, --data NAME=PATH");
  std::shared_ptr<const Artifact> artifact = loadProgram(options);
  catchSignals(); // before this there is no step to finish
  return withCommunication(options, artifact->getManifest(),
                           [&](const Communication &communication) {
                             return trainRank(options, artifact, communication);
                           });
}
