//===- tp-run.cpp - Execution of a program on its ranks -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../NextCommand.h"
#include "../StandardStreams.h"
#include "../Usage.h"
#include "Cache.h"
#include "CommandLine.h"
#include "Communication.h"
#include "Generate.h"
#include "Launch.h"
#include "Random.h"
#include "Train.h"
#include "tprt/Calibrate.h"
#include "tprt/Compare.h"
#include "tprt/Npy.h"
#include "tprt/Report.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <iostream>

using namespace tprt;

static constexpr const char *footer = R"(
NAME=PATH: the NAME= may be left out where the program has one input or output.
Files of inputs, outputs and expected outputs are .npy. bf16 is stored as '<V2'.
bf16 inputs may also be f4, which is rounded. Expected outputs may be f4, which
is compared unrounded.

Exit codes:
  0  success
  1  bad input: a file is missing, malformed, or doesn't fit the program
  2  wrong usage
  3  an output differs from its --expect file (outputs are written nevertheless)
  4  a rank failed, the ranks made no progress, a loss isn't finite, or there is
     not enough memory
  5  SIGINT or SIGTERM ended a training after a step; its checkpoint is written

Examples:
  tp-run model.tpx --weights model.safetensors --input ids=ids.npy --output y.npy
  tp-run model.tpx --weights model.safetensors --input ids=ids.npy
      --expect y_ref.npy --rtol 1e-4 --atol 1e-5
  tp-run ranks.mlir --weights model.safetensors --input ids=ids.npy
      --warmup 3 --repeat 20 --json -
  tp-run train.tpx --weights model.safetensors --data x=x.npy --data target=y.npy
      --steps 1000 --checkpoint-dir run --checkpoint-every 100
      --metrics metrics.jsonl --html run.html
  tp-run train.tpx --weights model.safetensors --data tokens.bin --token-type u16
      --steps 1000 --output-weights trained.safetensors
  tp-run model.tpx --weights model.safetensors --input ids=ids.npy
      --warmup 3 --repeat 20 --trace trace.json --profile --machine machine.json
  tp-run model.tpx --weights model.safetensors --input ids=ids.npy --pad ids=0
  tp-run model.tpx --weights model.safetensors --generate --prompt-ids ids.npy
      --max-new-tokens 64 --temperature 0.8 --top-p 0.95 --eos 2
  tp-run model.tpx --describe
  tp-run --calibrate machine.json
)";

static std::string toString(const Shape &index) {
  std::string text = "[";
  for (size_t d = 0; d < index.size(); ++d)
    text += (d ? ", " : "") + std::to_string(index[d]);
  return text + "]";
}

static std::string formatNumber(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

/// Prints the first elements of each output.
static void printOutputs(const TensorMap &outputs) {
  constexpr int64_t shown = 6;
  for (const auto &[name, tensor] : outputs) {
    std::cout << name << ": " << tensor.getTypeString() << " = [";
    int64_t count = tensor.getNumElements();
    for (int64_t i = 0; i < std::min(count, shown); ++i)
      std::cout << (i ? ", " : "")
                << formatNumber(
                       loadAsDouble(tensor.dtype, tensor.data.get(), i));
    std::cout << (count > shown ? ", …]" : "]") << "\n";
  }
}

/// Compares one output, prints the result, and returns whether it matches.
static bool compareOutput(const std::string &name, const Tensor &got,
                          const Tensor &expected, const std::string &path,
                          const Options &options) {
  Comparison comparison;
  try {
    comparison = compare(got, expected, options.tolerance);
  } catch (const Error &error) {
    throw inputError("output '" + name + "' " + error.what() + " of '" + path +
                     "'");
  }
  std::string limits = "rtol " + formatNumber(options.tolerance.relative) +
                       ", atol " + formatNumber(options.tolerance.absolute);
  if (comparison.matches()) {
    getTextStream(options) << "output '" << name << "' matches '" << path
                           << "': largest difference "
                           << formatNumber(comparison.maxAbsolute) << " ("
                           << limits << ")\n";
    return true;
  }
  std::cerr << "tp-run: error: output '" << name << "' differs from '" << path
            << "' in " << comparison.numDifferent << " of "
            << comparison.numElements << " elements (" << limits
            << "); the largest differences:\n";
  for (const Difference &difference : comparison.largest)
    std::cerr << "  " << toString(difference.index) << ": got "
              << formatNumber(difference.got) << ", expected "
              << formatNumber(difference.expected) << ", difference "
              << formatNumber(std::abs(difference.got - difference.expected))
              << "\n";
  return false;
}

static std::string nameBlock(const std::string &directory,
                             const std::string &output, int64_t rank) {
  return directory + "/" + output + "." + std::to_string(rank) + ".npy";
}

/// Fails if an output can't be written, before the run that computes it. Makes
/// the directory of --blocks.
static void
checkRunOutputs(const Options &options, const Program &program,
                int64_t worldSize,
                const std::map<std::string, std::string> &outputPaths,
                std::optional<NewDirectory> &blocks) {
  std::vector<std::string> paths;
  for (const auto &[name, path] : outputPaths)
    paths.push_back(path);
  addOutput(options.json, paths);
  addOutput(options.trace, paths);
  addOutput(options.outputWeights, paths);
  addOutput(options.stateOut, paths);
  if (!options.blocks.empty()) {
    blocks.emplace(options.blocks);
    for (const TensorInfo &output : program.outputs)
      for (int64_t rank = 0; rank < worldSize; ++rank)
        paths.push_back(nameBlock(options.blocks, output.name, rank));
  }
  checkAreNoInputs(options, paths);
  checkOutputs(paths);
}

/// Draws the inputs that no file gives.
static void drawInputs(const Options &options, const Manifest &manifest,
                       TensorMap &inputs) {
  std::vector<std::string> names;
  for (const Program &program : manifest.programs) {
    names.push_back(program.name);
    if (options.programName.empty() ? manifest.programs.size() == 1
                                    : options.programName == program.name)
      return drawTensors(program.inputs, *options.random,
                         /*isParameter=*/false, inputs);
  }
  throw UsageError("--random: say for which program, --program NAME: the "
                   "artifact has " +
                   quotedList(names));
}

/// Fails if the program that the inputs choose lacks an output that another
/// program has.
static void checkNames(const Program &program,
                       const std::map<std::string, std::string> &paths) {
  for (const auto &[name, path] : paths)
    if (std::none_of(program.outputs.begin(), program.outputs.end(),
                     [&](const TensorInfo &info) { return info.name == name; }))
      throw inputError("program '" + program.name +
                       "', which takes these "
                       "inputs, has no output '" +
                       name + "'");
}

static ExitCode runRank(const Options &options,
                        const std::shared_ptr<const Artifact> &artifact,
                        const Communication &communication) {
  const auto &[backend, job, connection] = communication;
  const Manifest &manifest = artifact->getManifest();
  std::vector<std::string> outputNames = getNames(manifest, &Program::outputs);
  auto inputPaths =
      parseAssignments(options.inputs, "--input", "input",
                       getNames(manifest, &Program::inputs), false);
  auto outputPaths = parseAssignments(options.outputs, "--output", "output",
                                      outputNames, true);
  auto expectedPaths = parseAssignments(options.expected, "--expect", "output",
                                        outputNames, true);

  for (const std::string &name : outputNames)
    if (!options.blocks.empty() && name.find('/') != std::string::npos)
      throw inputError("--blocks: output '" + name +
                       "' can't be the name of a file");

  RunOptions runOptions = options.run;
  runOptions.query = getQuery(options, manifest);
  TensorMap inputs = readTensors(inputPaths);
  if (options.random)
    drawInputs(options, manifest, inputs);
  const Program &program =
      *chooseProgram(manifest, inputs, runOptions.query).program;
  checkNames(program, outputPaths);
  checkNames(program, expectedPaths);
  std::optional<NewDirectory> blocks;
  if (!job || job->rank == 0) // the one that writes
    checkRunOutputs(options, program, manifest.worldSize, outputPaths, blocks);
  TensorMap expected = readTensors(expectedPaths);
  TensorMap state = readProgramState(options, manifest);
  TensorMap weights = readProgramWeights(options, manifest);
  for (const auto &[name, tensor] : state)
    weights[name] = tensor;
  SessionOptions sessionOptions = getSessionOptions(options, communication);
  sessionOptions.gemm.file = getGemmFile(artifact->getPath(), !options.noCache);
  Session session(artifact, weights, sessionOptions);
  noteGemmChoices(session);
  runOptions.keepBlocks = !options.blocks.empty() || job;
  std::optional<Recording> recording = makeRecording(options);
  runOptions.recording = recording ? &*recording : nullptr;
  RunResult result = session.run(inputs, runOptions);
  if (job) {
    gatherResult(manifest, *job, *connection, result);
    if (job->rank != 0) { // rank 0 compares and writes
      writeProgramWeights(options, session, connection);
      writeProgramState(options, session, connection);
      return Success;
    }
  }
  std::optional<Profile> profile =
      makeProfile(options, manifest, runOptions.recording);

  bool matches = true;
  for (const auto &[name, path] : expectedPaths)
    matches &= compareOutput(name, result.outputs.at(name), expected.at(name),
                             path, options);
  // Every file is complete before the first appears.
  std::vector<OutputFile> files;
  for (const auto &[name, path] : outputPaths)
    writeNpy(files.emplace_back(path), result.outputs.at(name));
  if (!options.blocks.empty())
    for (size_t rank = 0; rank < result.blocks.size(); ++rank)
      for (const auto &[name, block] : result.blocks[rank])
        writeNpy(files.emplace_back(nameBlock(options.blocks, name, rank)),
                 block);
  if (!options.json.empty())
    files.emplace_back(options.json)
        .write(makeRunReport(options.program, session, result, options.run,
                             profile ? &*profile : nullptr));
  writeTrace(options, manifest, runOptions.recording, files);
  commit(files);
  writeProgramWeights(options, session, connection);
  writeProgramState(options, session, connection);
  std::ostream &text = getTextStream(options);
  if (options.json.empty() && options.run.repeat > 1)
    text << describe(summarize(result.seconds));
  if (options.json.empty())
    text << describe(session.getAttentionUses());
  if (options.json != "-" && profile)
    text << profile->toTable();
  if (options.outputs.empty() && options.expected.empty() &&
      options.json.empty() && options.blocks.empty() &&
      options.outputWeights.empty() && options.stateOut.empty() && !recording)
    printOutputs(result.outputs);
  return matches ? Success : Mismatch;
}

static ExitCode run(const Options &options) {
  std::shared_ptr<const Artifact> artifact = loadProgram(options);
  return withCommunication(options, artifact->getManifest(),
                           [&](const Communication &communication) {
                             return runRank(options, artifact, communication);
                           });
}

/// A run, or a training, of the program with files called like its inputs.
static void suggestRun(const Options &options, const Manifest &manifest) {
  std::vector<std::string> command = {"tp-run", options.program};
  if (std::ranges::any_of(manifest.parameters, [](const TensorInfo &parameter) {
        return !parameter.init;
      }))
    command.insert(command.end(), {"--weights", "model.safetensors"});
  const Program &program = manifest.programs.front();
  bool isTraining =
      manifest.hasState() &&
      std::ranges::any_of(program.outputs, [](const TensorInfo &output) {
        return output.name == "loss";
      });
  for (const TensorInfo &input : program.inputs)
    command.insert(command.end(), {isTraining ? "--data" : "--input",
                                   input.name + "=" + input.name + ".npy"});
  if (isTraining)
    command.insert(command.end(), {"--steps", "100"});
  suggestNext(command, options.quiet);
}

static ExitCode describeProgram(const Options &options) {
  Manifest manifest = isArtifact(options.program)
                          ? readManifest(options.program)
                          : loadProgram(options)->getManifest();
  std::cout << makePrintable(describe(manifest), /*maxLine=*/2000,
                             /*maxLines=*/SIZE_MAX);
  suggestRun(options, manifest);
  return Success;
}

static ExitCode calibrateMachine(const Options &options) {
  OutputFile file(options.calibration);
  CalibrationOptions calibration;
  calibration.onProgress = [](const std::string &what) {
    report("note", "measuring " + what);
  };
  file.write(calibrate(calibration));
  file.commit();
  if (options.calibration != "-")
    suggestNext({"tp-opt", "model.mlir",
                 "--tp-parallelize=plan=plan.yaml machine=" +
                     options.calibration + " table",
                 "-o", "ranks.mlir"},
                options.quiet);
  return Success;
}

static ExitCode trainProgram(const Options &options) {
  ExitCode exitCode = train(options);
  bool isFirst = !options.job || options.job->rank == 0;
  if (exitCode == Success && isFirst &&
      !options.training.checkpointDirectory.empty())
    suggestNext({"tp-ckpt", "list", options.training.checkpointDirectory},
                options.quiet);
  return exitCode;
}

/// The help of --comm.
static std::string describeBackends() {
  std::string text = "how ranks communicate: ", inJobs;
  for (const Backend *backend : getBackends()) {
    text +=
        "'" + std::string(backend->name) + "', " + backend->description + "; ";
    if (backend->needsProcesses)
      inJobs += (inJobs.empty() ? "" : " or ") + std::string(backend->name);
  }
  return text + "'auto': " + inJobs +
         " if a launcher has started this process, otherwise local";
}

static std::vector<std::string> getCommunicationNames() {
  std::vector<std::string> names = {"auto"};
  for (const Backend *backend : getBackends())
    names.push_back(backend->name);
  return names;
}

static void declareOptions(CLI::App &app, Options &options) {
  app.footer(footer);
  app.set_version_flag("--version", "tp-run " + std::string(getVersion()) +
                                        " (artifact version " +
                                        std::to_string(TPRT_ABI_VERSION) + ")");
  app.add_option("program", options.program,
                 "artifact (.tpx) of tp-compile, or per-rank IR, which is "
                 "compiled on the way and cached");
  app.add_option("--weights", options.weights,
                 "the program's parameters: a safetensors file, the index of "
                 "several, or a directory with model.safetensors or its index, "
                 "such as a Hugging Face model directory")
      ->type_name("PATH");
  app.add_option(
         "--random", options.random,
         "fill float parameters and inputs that have no file with random "
         "numbers of this seed, to time a program without its weights")
      ->check(isExactNumber)
      ->type_name("SEED");
  app.add_option("--output-weights", options.outputWeights,
                 "write the parameters after the last run or step, without the "
                 "optimizer's, to a safetensors file")
      ->type_name("PATH");
  app.add_option("--state-in", options.stateIn,
                 "begin with the state of a file of --state-out, instead of "
                 "the initial values of the parameters that programs update")
      ->type_name("PATH");
  app.add_option("--state-out", options.stateOut,
                 "write the state after the last run to a safetensors file: "
                 "the parameters that programs update")
      ->type_name("PATH");
  app.add_option("--input", options.inputs, "input from a .npy file")
      ->type_name("NAME=PATH")
      ->allow_extra_args(false);
  app.add_option("--program", options.programName,
                 "the program of the artifact to run; otherwise the one that "
                 "takes the inputs")
      ->type_name("NAME");
  app.add_option("--pad", options.pad,
                 "let an input grow at the end, with this value in the new "
                 "elements, to the sizes of the smallest program that it fits "
                 "into; the outputs are cut back. Only right for causal "
                 "models, or with a mask for the new elements")
      ->type_name("[NAME=]VALUE")
      ->allow_extra_args(false);
  app.add_option("--output", options.outputs,
                 "write an output to a .npy file; without --output, --blocks, "
                 "--expect and --json the first elements are printed. Here and "
                 "for all other files that are written, '-' is stdout; then "
                 "text goes to stderr")
      ->type_name("[NAME=]PATH")
      ->allow_extra_args(false);
  app.add_option("--blocks", options.blocks,
                 "write each rank's own block of every output to "
                 "DIRECTORY/NAME.RANK.npy")
      ->check(isDirectoryName)
      ->type_name("DIRECTORY");
  app.add_option("--expect", options.expected,
                 "compare an output with a .npy file")
      ->type_name("[NAME=]PATH")
      ->allow_extra_args(false);
  app.add_option("--rtol", options.tolerance.relative,
                 "relative tolerance of --expect")
      ->check(isExactNumber)
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--atol", options.tolerance.absolute,
                 "absolute tolerance of --expect")
      ->check(isExactNumber)
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--json", options.json,
                 "write the run's report (bytes, calls, seconds) to a file")
      ->type_name("PATH");
  app.add_option("--trace", options.trace,
                 "write when each rank did what in the measured runs or steps, "
                 "for Perfetto or chrome://tracing")
      ->type_name("PATH");
  app.add_flag("--profile", options.profile,
               "print where the measured runs or steps spent their time, by "
               "module; with --json it is in the report");
  app.add_option("--machine", options.machine,
                 "a file of --calibrate: --profile says which share of the "
                 "machine's limit each part reaches")
      ->type_name("PATH");
  app.add_option("--repeat", options.run.repeat, "measured runs")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 40))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--warmup", options.run.warmup,
                 "runs before the measured ones")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 40))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--gemm", options.gemm,
                 "what computes large matrix products of f32: whichever "
                 "measures better, kept beside the program; or one of "
                 "tiles, openblas, onednn for all")
      ->check(CLI::IsMember({"measure", "tiles", "openblas", "onednn"}))
      ->capture_default_str();
  app.add_flag("--no-pin", options.noPin,
               "let the system choose the ranks' cores; otherwise each rank "
               "keeps its own, where there are enough");
  app.add_option("--comm", options.communication, describeBackends())
      ->check(CLI::IsMember(getCommunicationNames()))
      ->capture_default_str();
  constexpr const char *cuda = "Programs for CUDA devices";
  app.add_option(
         "-n", options.processes,
         "start as many processes on this host, each of them one rank "
         "(of a program for CUDA devices on a device of its own), which "
         "communicate as --comm says")
      ->check(CLI::Range(int64_t(1), int64_t(4096)))
      ->type_name("N");
  app.add_option("--device", options.device,
                 "the device to compute on, as the driver counts (default: 0; "
                 "where ranks are processes: the process's number on its host)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N")
      ->group(cuda);
  app.add_flag("--tf32", options.tf32,
               "let products of f32 round their operands to TF32")
      ->group(cuda);
  app.add_flag("--no-graphs", options.noGraphs, "don't use CUDA graphs")
      ->group(cuda);
  app.add_option(
         "--attention", options.attention,
         "implementation of attention: 'auto', cuDNN if it is available and "
         "supports the case, otherwise the runtime's own kernels (the run "
         "reports the choice); 'cudnn' or 'own': only this one, or an error")
      ->check(CLI::IsMember({"auto", "cudnn", "own"}))
      ->capture_default_str()
      ->group(cuda);
  app.add_option("--timeout", options.timeout,
                 "seconds that a rank may wait for the others; 0: forever")
      ->check(isExactNumber)
      ->check(CLI::Range(0.0, 1e9))
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_flag(
      "--checksum", options.checksum,
      "with --comm=mpi or tcp: send a checksum with each message between "
      "processes, and fail if what arrives isn't what was sent");
  app.add_option("--flight-recorder", options.flightDirectory,
                 "when a run fails, write each rank's last 64 collectives to "
                 "D/flight-RANK.json")
      ->check(isDirectoryName)
      ->type_name("D");
  app.add_flag("--allow-unused-weights", options.allowUnusedWeights,
               "accept weights that the program doesn't use, also of a file");
  app.add_flag("--allow-outside-weights", options.allowOutsideWeights,
               "accept an index whose files lie outside of its directory");
  app.add_flag("--describe,--list", options.describeOnly,
               "print the program's inputs, parameters, outputs and "
               "collectives, and don't run it");
  app.add_option("--calibrate", options.calibration,
                 "measure this machine, and write a description for 'machine=' "
                 "of tp-opt; takes about a minute and no program")
      ->type_name("PATH");
  app.add_flag(
      "--no-cache", options.noCache,
      "compile the IR even if it is in the cache, and don't cache the result");
  app.add_flag("--quiet", options.quiet, "don't suggest the next command");
  declareTrainingOptions(app, options.training);
  declareGenerationOptions(app, options.generation);
}

static constexpr const char *usageHint =
    "\nrun 'tp-run --help' for the options";

/// Checks that the command line's library doesn't do.
static void checkUsage(const Options &options) {
  if (options.program.empty() == options.calibration.empty())
    throw UsageError((options.program.empty()
                          ? "program is required"
                          : "--calibrate takes no program") +
                     std::string(usageHint));
  if (!options.machine.empty() && !options.profile)
    throw UsageError("--machine is for --profile");
  if (options.processes > 0 &&
      (!options.calibration.empty() || options.describeOnly))
    throw UsageError("-n is for runs and trainings");
  const Backend *backend = findBackend(options.communication);
  if (options.processes > 0 && backend && !backend->needsProcesses)
    throw UsageError(
        "-n starts processes, and with --comm=" + options.communication +
        " ranks are threads of one process; leave one of them "
        "out" +
        usageHint);
  if (options.training.numRestarts > 0 && options.processes == 0)
    throw UsageError("--restart needs -n; other launchers restart their ranks "
                     "themselves" +
                     std::string(usageHint));
  if (options.training.numRestarts > 0 && options.training.resetData)
    throw UsageError(
        "--restart continues in the data where the last checkpoint "
        "was written; leave --reset-data out" +
        std::string(usageHint));
  if (options.training.numRestarts > 0 && options.training.resume != "auto")
    throw UsageError("--restart continues from the last complete checkpoint; "
                     "leave --resume out" +
                     std::string(usageHint));
  if (options.processes > 0 && backend && backend->isLaunched)
    throw UsageError(
        "-n starts processes, and those of --comm=" + options.communication +
        " are started by " + backend->launchers + "; leave -n out" + usageHint);
}

static int execute(Options &options) {
  if (options.processes > 0) {
    // Load it once, not in each process.
    options.artifact = loadProgram(options);
    std::variant<int, Job> started = startProcesses(options);
    if (const int *exitCode = std::get_if<int>(&started))
      return *exitCode;
    options.job = std::get<Job>(started);
  }
  return !options.calibration.empty()  ? calibrateMachine(options)
         : options.describeOnly        ? describeProgram(options)
         : options.training.steps > 0  ? trainProgram(options)
         : options.generation.isWanted ? generate(options)
                                       : run(options);
}

static int runTool(int argc, char **argv) {
  CLI::App app("Runs a compiled tensor-parallel program, with a thread or a "
               "process for each rank",
               "tp-run");
  Options options;
  declareOptions(app, options);
  nameRankInMessages();
  try {
    int exitCode = Success;
    try {
      app.parse(argc, argv);
      refuseEmptyValues(app);
      checkUsage(options);
      if (options.processes > 0)
        restartWithOneThread(argv);
      exitCode = execute(options);
    } catch (const CLI::Success &information) { // --help, --version
      app.exit(information);
    }
    closeStandardOutput();
    return exitCode;
  } catch (const CLI::ParseError &error) {
    report("error", error.what() + suggestOptions(app) + usageHint);
    return WrongUsage;
  } catch (const Reported &reported) {
    return reported.exitCode;
  } catch (const std::exception &error) {
    report("error", error.what());
    return getExitCode(error);
  }
}

int main(int argc, char **argv) {
  reserveStandardStreams();
  reportLostPages("tp-run", RunFailed);
  leave(runTool(argc, argv));
}
